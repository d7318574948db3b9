//! Names and paths that the package manager can unpack.

use std::collections::BTreeSet;

use crate::own::installed::{Installed, InstalledNode};
use crate::problem::{Problem, Problems};
use rockpack_package::lengths::overlong;

/// Reports each too long part of a path once. Only packages are checked, since others are not unpacked.
pub(crate) fn check(package: &Installed, problems: &mut Problems) {
    let Some(format) = package.format else { return };
    let mut named = BTreeSet::new();
    for (path, node) in &package.paths {
        let is_folder = matches!(node, InstalledNode::Directory { .. });
        let Some(found) = overlong(format, path, is_folder) else { continue };
        if named.insert(found.path) {
            let (bytes, limit) = (found.bytes, found.limit);
            let what = if found.is_name { "name" } else { "path" };
            let reason = format!(
                "the {what} has {bytes} bytes, and the package manager unpacks {limit} at most"
            );
            problems.add(Problem::PathTooLong { file: package.at(found.path), reason });
        }
    }
}
