//! Makes a checked configuration of the keys. Collects all faults; the default replaces a refused value.

use std::mem::take;

use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::tree::TreePath;

use super::accept::accepted;
use super::architectures::{ArchNames, components, database_rules, groups, packages};
use super::document::ConfigDocument;
use super::keys::Keys;
use super::packages::{MOVED, check_texts, former, selectors};
use super::{Config, Grouping};
use crate::prefix::plain_path;
use rockpack_split::input::database::matches_path;

/// The checked configuration; `None` only if rockpack's own defaults or shipped rules are wrong.
pub(super) fn checked(
    mut keys: Keys,
    document: ConfigDocument,
    faults: &mut Faults,
) -> Option<Config> {
    let defaults = Keys::default();
    check_global_texts(&keys, &document, faults);
    let names = ArchNames::new(&take(&mut keys.additional_architectures), &document, faults);
    let groups = groups(take(&mut keys.architecture_groups), &names, faults);
    let components = components(take(&mut keys.components), &names, faults);
    check_texts(&keys.packages, &document, faults);
    let packages = packages(&keys.packages, &names, faults);
    let selectors = selectors(take(&mut keys.selectors), &document, faults);
    let replaces = former("replaces", take(&mut keys.replaces), &document, faults);
    let moved = former(MOVED, take(&mut keys.moved), &document, faults);
    keys.wheels.each_requirement(|place, text| {
        let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !begins || text.contains(char::is_control) {
            // It cannot be a line of METADATA.
            let message = "is not a requirement such as `rocm-sdk-core == 7.1`";
            faults.add(document.fault(place, message));
        }
    });
    for (index, glob) in keys.other_machines.iter().enumerate() {
        let keys = ["other_machines", &index.to_string()];
        faults.keep(check_glob(glob).map_err(|error| document.located(&keys, &error)));
    }
    let accept = accepted(take(&mut keys.accept), &document, faults);
    let date = faults
        .keep(content_date(&keys.content_date, &document))
        .or_else(|| faults.keep(content_date(&defaults.content_date, &document)));
    let folders = Folders::new(&keys, &document, faults)?;
    let databases = database_rules(&take(&mut keys.databases), &names, faults)?;
    // dpkg stores the epoch as a signed 32-bit number.
    if keys.epoch.is_some_and(|epoch| i32::try_from(epoch).is_err()) {
        faults.add(document.fault(&["epoch"], "exceeds dpkg's limit of 2147483647"));
    }
    if keys.hip_shim.take_if(|file| file.as_os_str().is_empty()).is_some() {
        faults.add(document.fault(&["hip_shim"], "is empty"));
    }
    let grouping = Grouping { primary_shard: keys.primary_shard.take(), groups };
    Some(Config {
        keys,
        grouping,
        folders,
        databases,
        components,
        packages,
        content_date: date?,
        replaces,
        moved,
        selectors,
        accept,
        document,
    })
}

fn check_global_texts(keys: &Keys, document: &ConfigDocument, faults: &mut Faults) {
    let lines = [
        ("maintainer", Some(keys.maintainer.as_str())),
        ("vendor", keys.vendor.as_deref()),
        ("homepage", keys.homepage.as_deref()),
        ("license", Some(keys.license.as_str())),
        ("copyright", keys.copyright.as_deref()),
    ];
    single_lines(&[], lines, document, faults);
    if !is_address(&keys.maintainer) {
        let error = document.fault(&["maintainer"], "is not a name with an e-mail address");
        faults.add(error.hint("write it as in `ROCm packagers <rocm@example.org>`"));
    }
}

/// Parses `content_date` into seconds since 1970. RPM stores the time of a file in 32 bits.
fn content_date(text: &str, document: &ConfigDocument) -> Result<u32> {
    let keys = ["content_date"];
    let time: jiff::Timestamp = text.parse().map_err(|error: jiff::Error| {
        document
            .fault(&keys, "is not an RFC 3339 date")
            .cause(error)
            .hint("write it as in `2025-01-01T00:00:00Z`")
    })?;
    u32::try_from(time.as_second()).map_err(|_| {
        document.fault(&keys, "is outside of 1970 to 2106, the range that RPM can store")
    })
}

/// The folders below the prefix that loaders know, relative to it, from the keys `libdir` and `kpackdir`.
///
/// `libdir` tells where the artifacts have their libraries. It moves no library, because builds write the folder's
/// name into files (search paths, CMake targets, paths of databases). Kernel archives may be anywhere below the
/// prefix, because the marker of each binary has the relative path to them.
///
/// Paths must lead straight down from the prefix, and a shell or the loader's configuration must read the names as
/// paths only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    pub libraries: TreePath,
    pub kernels: TreePath,
}

impl Folders {
    fn new(keys: &Keys, document: &ConfigDocument, faults: &mut Faults) -> Option<Self> {
        let mut checked = |key: &str, text: &str| {
            faults.keep(folder(text).map_err(|error| document.located(&[key], &error)))
        };
        let libdir = checked("libdir", &keys.libdir);
        let kpackdir = keys.kpackdir.as_ref().and_then(|text| checked("kpackdir", text));
        let libraries = libdir.or_else(|| faults.keep(folder(&Keys::default().libdir)))?;
        let kernels = kpackdir.or_else(|| faults.keep(libraries.join(".kpack")))?;
        Some(Self { libraries, kernels })
    }

    /// Whether the dynamic linker finds the file at `path` by its name alone.
    pub fn is_public(&self, path: &TreePath) -> bool {
        path.folder() == Some(self.libraries.as_str())
    }

    /// The parent of the folder of kernel archives, as manifests name it; `.` is the prefix itself.
    pub fn manifest_prefix(&self) -> String {
        let above = self.kernels.parent();
        above.map_or_else(|| ".".to_owned(), |above| above.to_string())
    }
}

fn folder(text: &str) -> Result<TreePath> {
    let path = match text {
        "" => Err("it is empty"),
        _ if text.starts_with('/') => Err("it is absolute"),
        _ => plain_path(text),
    };
    path.map_err(|why| {
        let text = text.escape_debug();
        let message = format!("`{text}` cannot be a folder below the prefix: {why}");
        Error::new(Kind::Config, message)
            .hint("write it relative to the prefix, as in `lib64` or `lib64/rocm/kpack`")
    })
}

/// Refuses texts of several lines, because a line break would start another field. `lines` are the texts of the table
/// at `table`, by key.
pub(super) fn single_lines<'a>(
    table: &[&str],
    lines: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
    document: &ConfigDocument,
    faults: &mut Faults,
) {
    for (key, text) in lines {
        if text.is_some_and(|text| !is_line(text)) {
            let message = "must be one line of text that is not empty";
            faults.add(document.fault(&[table, &[key]].concat(), message));
        }
    }
}

fn is_line(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains(char::is_control)
}

/// Whether the text is `Name <address>` in one line.
pub fn is_maintainer(text: &str) -> bool {
    is_line(text) && is_address(text)
}

pub fn is_address(text: &str) -> bool {
    let Some((name, address)) = text.split_once(" <") else { return false };
    let address = address.strip_suffix('>').unwrap_or_default();
    !name.trim().is_empty() && address.contains('@') && !address.contains(['<', '>', ' '])
}

/// Refuses a glob that cannot match a path below the prefix.
pub fn check_glob(glob: &str) -> Result<()> {
    if glob.split('/').all(|part| !["", ".", ".."].contains(&part)) {
        return Ok(());
    }
    let message = format!("`{glob}` cannot match a path below the prefix");
    Err(Error::new(Kind::Config, message)
        .hint("write it as in `share/emulator/**/*.elf`, with `**` for any number of folders"))
}

pub fn matches_any(globs: &[String], path: &TreePath) -> bool {
    globs.iter().any(|glob| matches_path(glob, path.as_str()))
}

pub fn is_lower_or_digit(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Syntax};

    fn folders(toml: &str) -> Result<Folders> {
        Ok(Config::parse(toml, Syntax::Toml)?.folders)
    }

    #[test]
    fn kernel_archives_lie_with_the_libraries() {
        assert_eq!(shown_folders(""), ["lib", "lib/.kpack", "lib"]);
        assert_eq!(shown_folders("libdir = 'lib64'"), ["lib64", "lib64/.kpack", "lib64"]);
        let own = "libdir = 'lib64'\nkpackdir = 'lib64/rocm/kpack'";
        assert_eq!(shown_folders(own), ["lib64", "lib64/rocm/kpack", "lib64/rocm"]);
        assert_eq!(shown_folders("kpackdir = '.kpack'"), ["lib", ".kpack", "."]);
    }

    fn shown_folders(toml: &str) -> [String; 3] {
        let folders = folders(toml).unwrap();
        [folders.libraries.to_string(), folders.kernels.to_string(), folders.manifest_prefix()]
    }

    #[test]
    fn paths_that_leave_the_prefix_are_refused() {
        for key in ["libdir", "kpackdir"] {
            for text in ["", "/lib", "lib/", "../lib", "lib/../x", "./lib", "a//b", "a b", "$LIB"] {
                let error = folders(&format!("{key} = '{text}'")).unwrap_err();
                let shown = error.to_string();
                assert!(shown.contains("cannot be a folder below the prefix"), "{shown}");
                assert!(shown.contains("line 1, column"), "{shown}");
            }
        }
    }
}
