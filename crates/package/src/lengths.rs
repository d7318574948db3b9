//! Lengths of names and paths that package managers can unpack.
//!
//! | bytes at most | dpkg | rpm |
//! |---|---|---|
//! | name of a file or link | 246: it is written as `NAME.dpkg-new` | 246: it is written as `NAME;xxxxxxxx` |
//! | name of a folder | 246: likewise | 255, as the file system takes |
//! | path with its leading slash | 4086: `PATH.dpkg-new` and a byte that ends it | 4086, by rpm before 4.18 |
//!
//! Source: tried with dpkg 1.21.23 and rpm 4.18.0 on ext4 and tmpfs (NAME_MAX 255, PATH_MAX 4096). rpm 4.18
//! and later open one folder after the other, and so take longer paths, which no program can open.

use std::collections::BTreeMap;

use rockpack_core::content::NAME_MAX;
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::tree::Node;

use super::{Format, Package};

/// Bytes that `.dpkg-new` and `;xxxxxxxx` add to a name while a file is written.
const ADDED: usize = 9;

/// Longest path on Linux in bytes, without the terminating byte.
const PATH_LIMIT: usize = 4095;

/// A name or path that is too long for a package manager to unpack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlong<'a> {
    /// The path, up to and including the part that is too long.
    pub path: &'a str,
    /// Whether the last name of `path` is too long, rather than the whole path.
    pub is_name: bool,
    pub bytes: usize,
    /// The longest length in bytes that can be unpacked.
    pub limit: usize,
}

/// The first part of the absolute `path` that is too long for the package manager of `format`.
pub fn overlong(format: Format, path: &str, is_folder: bool) -> Option<Overlong<'_>> {
    let folder_limit = format.select(NAME_MAX - ADDED, NAME_MAX);
    let mut end = 0;
    for name in path.split('/') {
        end += name.len();
        let is_last = end == path.len();
        let limit = if is_last && !is_folder { NAME_MAX - ADDED } else { folder_limit };
        if name.len() > limit {
            let path = path.get(..end).unwrap_or(path);
            return Some(Overlong { path, is_name: true, bytes: name.len(), limit });
        }
        end += 1;
    }
    let limit = PATH_LIMIT - ADDED;
    let bytes = path.len();
    (bytes > limit).then_some(Overlong { path, is_name: false, bytes, limit })
}

/// Refuses packages with a name or path that is too long for their package manager.
pub fn refuse_overlong<F>(packages: &[Package<F>]) -> Result<()> {
    let mut faults = Faults::default();
    for package in packages {
        let mut found = BTreeMap::new();
        for entry in &package.entries {
            let path = format!("/{}", entry.path);
            let is_folder = matches!(entry.node, Node::Directory { .. });
            for format in package.formats().filter(|format| entry.formats.has(*format)) {
                if let Some(overlong) = overlong(format, &path, is_folder) {
                    found.entry(overlong.path.to_owned()).or_insert_with(|| fault(&overlong));
                }
            }
        }
        found.into_values().for_each(|fault| faults.add(fault.structure(&package.id)));
    }
    faults.finish()
}

fn fault(overlong: &Overlong<'_>) -> Error {
    let Overlong { path, is_name, bytes, limit } = overlong;
    let what = if *is_name { "name" } else { "path" };
    let message = format!(
        "{path}: the {what} has {bytes} bytes, and package managers can unpack at most {limit}, because \
         they append {ADDED} bytes to it while they write the file"
    );
    Error::new(Kind::Limit, message).hint("shorten it in the build that creates it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_overlong(format: Format, length: usize, is_folder: bool) -> bool {
        overlong(format, &format!("/opt/{}", "x".repeat(length)), is_folder).is_some()
    }

    #[test]
    fn names_are_as_long_as_package_managers_unpack() {
        for (format, is_folder, limit) in [
            (Format::Deb, false, 246),
            (Format::Deb, true, 246),
            (Format::Rpm, false, 246),
            (Format::Rpm, true, 255),
        ] {
            assert!(!is_overlong(format, limit, is_folder), "{format} {is_folder}");
            assert!(is_overlong(format, limit + 1, is_folder), "{format} {is_folder}");
        }
    }

    #[test]
    fn a_folder_on_the_way_is_named_by_its_path() {
        let folder = format!("/opt/{}", "x".repeat(250));
        let path = format!("{folder}/file");
        let found = overlong(Format::Deb, &path, false).unwrap();
        assert_eq!((found.path, found.bytes, found.limit), (&*folder, 250, 246));
        assert_eq!(overlong(Format::Rpm, &path, false), None);
    }

    #[test]
    fn paths_leave_room_for_what_is_added() {
        for format in Format::ALL {
            assert_eq!(overlong(format, &"/x".repeat(4086 / 2), false), None);
            let long = "/x".repeat(4088 / 2);
            let found = overlong(format, &long, false).unwrap();
            assert_eq!((found.is_name, found.bytes, found.limit), (false, 4088, 4086));
        }
    }
}
