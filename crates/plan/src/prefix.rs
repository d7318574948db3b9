//! The install prefix.
//!
//! The prefix is a real directory of its own. Refused: shared directories (`/usr`, `/opt`), plain `/opt/rocm`
//! (often a link or a tree of alternatives, through which a package manager would write over another vendor's
//! files), and characters that are special to a shell or a control file. Only the system where packages are
//! installed shows whether a folder on the way is a link: their scripts refuse links from the first folder
//! that is not the system's own.

use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::tree::TreePath;

use rockpack_package::Format;

/// Directories that belong to the system. Each may be a link: to `/usr/bin`, to `/var/opt` on a system that
/// is an image, or to another disk.
///
/// Source: Filesystem Hierarchy Standard 3.0; Debian's package base-files and Fedora's package
/// filesystem for `lib32`, `libx32`, `afs` and the folders of one architecture.
const SYSTEM: &str = "afs bin boot dev etc etc/opt home lib lib/x86_64-linux-gnu lib32 lib64 \
    libx32 media mnt opt proc root run sbin srv sys tmp usr usr/bin usr/games usr/include usr/lib \
    usr/lib/x86_64-linux-gnu usr/lib32 usr/lib64 usr/libexec usr/libx32 usr/local usr/local/bin \
    usr/local/etc usr/local/games usr/local/include usr/local/lib usr/local/lib64 \
    usr/local/libexec usr/local/sbin usr/local/share usr/local/src usr/sbin usr/share usr/src var \
    var/cache var/lib var/local var/opt var/spool";

/// Directories that do not survive a reboot, or that must not hold package files.
const TRANSIENT: [&str; 5] = ["dev", "proc", "run", "sys", "tmp"];

/// An absolute, normal path below which all files of a set are installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(TreePath);

impl Prefix {
    /// Checks `text`, e.g. `/opt/rocm-7.1`.
    pub fn new(text: &str) -> Result<Self> {
        Self::checked(text).map_err(|why| {
            let message = format!("`{text}` cannot be the prefix: {why}");
            Error::new(Kind::Config, message)
                .hint("give it a directory of its own, such as /opt/rocm-7.1")
        })
    }

    fn checked(text: &str) -> std::result::Result<Self, &'static str> {
        let relative = text.strip_prefix('/').ok_or("it is not absolute")?;
        if relative.is_empty() {
            return Err("it is the root of the file system");
        }
        let path = plain_path(relative)?;
        if relative == "opt/rocm" {
            return Err("it is often a symbolic link, through which packages would overwrite the \
                        files of other vendors");
        }
        if is_system_folder(relative) {
            return Err("it belongs to the distribution");
        }
        let first = path.components().next().unwrap_or_default();
        if TRANSIENT.contains(&first) {
            return Err("files there do not survive a reboot");
        }
        Ok(Self(path))
    }

    pub fn path(&self) -> &TreePath {
        &self.0
    }

    pub fn absolute(&self) -> String {
        format!("/{}", self.0)
    }

    /// Whether it is below `/opt`, where administrators may want to move it.
    pub fn is_add_on(&self) -> bool {
        self.0.components().next() == Some("opt")
    }

    /// The system's own folders, where the search for links from the prefix upwards ends: the innermost one
    /// above it, or all of them if rpm may move the prefix.
    pub fn system_folders(&self, format: Format) -> Vec<String> {
        let is_moved = format == Format::Rpm && self.is_add_on();
        let own = self.above().find(|folder| is_system_folder(folder.as_str()));
        let lasting = SYSTEM.split(' ').filter(|folder| !TRANSIENT.contains(folder));
        let ends = lasting
            .filter(|folder| is_moved || own.as_ref().is_some_and(|own| own.as_str() == *folder));
        ends.map(|folder| format!("/{folder}")).collect()
    }

    /// The folders between `/opt` and the prefix, the innermost first: no distribution has them.
    pub fn folders_above(&self) -> Vec<String> {
        let own = self.above().filter(|folder| folder.as_str().starts_with("opt/"));
        own.map(|folder| format!("/{folder}")).collect()
    }

    /// The link that leads to the prefixes of several series: this one without `-<series>` at its end, so
    /// `/opt/rocm/core` of `/opt/rocm/core-7.1`. `None` if it ends in anything else.
    pub fn series_link(&self, series: &str) -> Option<String> {
        let path = self.absolute();
        let link = path.strip_suffix(series)?.strip_suffix('-')?;
        (!link.ends_with('/')).then(|| link.to_owned())
    }

    fn above(&self) -> impl Iterator<Item = TreePath> {
        std::iter::successors(self.0.parent(), TreePath::parent)
    }
}

fn is_system_folder(path: &str) -> bool {
    SYSTEM.split(' ').any(|folder| folder == path)
}

/// The relative path `text`; the error is the reason why not every tool would read it as that path.
pub(crate) fn plain_path(text: &str) -> std::result::Result<TreePath, &'static str> {
    let path =
        TreePath::new(text).map_err(|_| "it has empty, `.` or `..` parts, or a trailing slash")?;
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._+~-".contains(c));
    is_plain.then_some(path).ok_or("it has characters other than letters, digits and `._+~-`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_ones_own_are_taken() {
        for text in ["/opt/rocm-7.1", "/opt/rocm/core-8.2", "/usr/lib/rocm-7", "/nfs/tools/rocm"] {
            assert_eq!(Prefix::new(text).unwrap().absolute(), text);
        }
    }

    #[test]
    fn folders_above_a_prefix_are_those_below_opt() {
        assert_eq!(folders_above("/opt/amd/rocm/core-7.1"), ["/opt/amd/rocm", "/opt/amd"]);
        assert_eq!(folders_above("/opt/rocm-7.1"), Vec::<String>::new());
        assert_eq!(folders_above("/usr/lib/rocm-7"), Vec::<String>::new());
    }

    fn folders_above(prefix: &str) -> Vec<String> {
        Prefix::new(prefix).unwrap().folders_above()
    }

    #[test]
    fn the_link_of_a_series_is_the_prefix_without_it() {
        for (text, link) in [
            ("/opt/rocm/core-7.1", Some("/opt/rocm/core")),
            ("/opt/rocm-7.1", Some("/opt/rocm")),
            ("/opt/rocm-17.1", None),
            ("/opt/rocm-7.1.0", None),
            ("/opt/rocm7.1", None),
            ("/opt/-7.1", None),
        ] {
            assert_eq!(Prefix::new(text).unwrap().series_link("7.1").as_deref(), link, "{text}");
        }
    }

    #[test]
    fn the_search_for_links_ends_at_the_systems_own_folders() {
        for (text, end) in [
            ("/opt/rocm-7.1", "/opt"),
            ("/opt/amd/rocm", "/opt"),
            ("/usr/lib/rocm", "/usr/lib"),
            ("/usr/lib64/rocm/7.1", "/usr/lib64"),
            ("/usr/local/rocm", "/usr/local"),
            ("/var/opt/rocm", "/var/opt"),
            ("/home/x/rocm", "/home"),
        ] {
            assert_eq!(search_ends(text, Format::Deb), [end]);
        }
        assert_eq!(search_ends("/nfs/tools/rocm", Format::Deb), Vec::<String>::new());
        assert_eq!(search_ends("/usr/lib/rocm", Format::Rpm), ["/usr/lib"], "rpm does not move it");
        assert!(search_ends("/opt/rocm-7.1", Format::Rpm).contains(&"/srv".to_owned()));
    }

    fn search_ends(prefix: &str, format: Format) -> Vec<String> {
        Prefix::new(prefix).unwrap().system_folders(format)
    }

    #[test]
    fn shared_and_strange_prefixes_are_refused() {
        for text in [
            "",
            "/",
            "opt/rocm-7.1",
            "/opt/rocm",
            "/usr",
            "/usr/lib64",
            "/var/opt",
            "/opt",
            "/opt/rocm-7.1/",
            "/opt//rocm-7",
            "/opt/../rocm",
            "/opt/./rocm",
            "/opt/a b",
            "/opt/$x",
            "/opt/a\nb",
            "/tmp/rocm",
        ] {
            let error = Prefix::new(text).unwrap_err();
            assert!(error.message().contains("cannot be the prefix"), "{text}");
        }
    }
}
