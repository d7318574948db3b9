//! The install prefix.
//!
//! A real directory of its own. Refused: what is shared with others (`/usr`, `/opt`), plain
//! `/opt/rocm` (often a link or a tree of alternatives, through which a package manager would
//! write over another vendor's files), and whatever a shell or a control file would read as more
//! than a path. That no folder on the way is a link can only be seen where packages are installed:
//! their scripts check it.

use crate::error::{Error, Kind, Result};
use crate::tree::TreePath;

/// Directories that belong to the distribution, and `/opt/rocm`.
const SHARED: [&str; 21] = [
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib",
    "lib64",
    "media",
    "mnt",
    "opt",
    "opt/rocm",
    "proc",
    "root",
    "run",
    "sbin",
    "srv",
    "sys",
    "tmp",
    "usr",
    "usr/local",
    "var",
];

/// Directories that do not outlive a boot, or are no places for files.
const TRANSIENT: [&str; 5] = ["dev", "proc", "run", "sys", "tmp"];

/// An absolute, normal path below which all files of a set are installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(TreePath);

impl Prefix {
    /// Checks `text`, e.g. `/opt/rocm-7.1`.
    pub fn new(text: &str) -> Result<Self> {
        let refuse = |why: &str| {
            let message = format!("`{text}` cannot be the prefix: {why}");
            Error::new(Kind::Config, message)
                .hint("the prefix is a directory of its own, such as /opt/rocm-7.1")
        };
        let Some(relative) = text.strip_prefix('/') else {
            return Err(refuse("it is not absolute"));
        };
        if relative.is_empty() {
            return Err(refuse("it is the root of the file system"));
        }
        let path = TreePath::new(relative)
            .map_err(|_| refuse("it has empty, `.` or `..` parts, or a trailing slash"))?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._+~-".contains(c);
        if !relative.chars().all(plain) {
            return Err(refuse("only letters, digits and `._+~-` are the same to every tool"));
        }
        if relative == "opt/rocm" {
            return Err(refuse(
                "it is often a symbolic link, through which packages would write over others' files",
            ));
        }
        if SHARED.contains(&relative) {
            return Err(refuse("it belongs to the distribution"));
        }
        let first = path.components().next().unwrap_or_default();
        if TRANSIENT.contains(&first) {
            return Err(refuse("files there do not last"));
        }
        Ok(Self(path))
    }

    /// Without the leading slash.
    pub fn path(&self) -> &TreePath {
        &self.0
    }

    /// With the leading slash.
    pub fn absolute(&self) -> String {
        format!("/{}", self.0)
    }

    /// Whether it lies below `/opt`, where administrators may want to move it.
    pub fn is_add_on(&self) -> bool {
        self.0.components().next() == Some("opt")
    }

    /// The folders between `/opt` and the prefix, the innermost first: no distribution has them.
    pub fn folders_above(&self) -> Vec<String> {
        let above = std::iter::successors(self.0.parent(), TreePath::parent);
        let own = above.filter(|folder| folder.as_str().starts_with("opt/"));
        own.map(|folder| format!("/{folder}")).collect()
    }
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
        let above = |text: &str| Prefix::new(text).unwrap().folders_above();
        assert_eq!(above("/opt/amd/rocm/core-7.1"), ["/opt/amd/rocm", "/opt/amd"]);
        assert_eq!(above("/opt/rocm-7.1"), Vec::<String>::new());
        assert_eq!(above("/usr/lib/rocm-7"), Vec::<String>::new());
    }

    #[test]
    fn shared_and_strange_prefixes_are_refused() {
        for text in [
            "",
            "/",
            "opt/rocm-7.1",
            "/opt/rocm",
            "/usr",
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
