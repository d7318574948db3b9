//! Names and paths that the package manager can unpack.

use std::collections::BTreeSet;

use crate::package::lengths::overlong;
use crate::verify::own::installed::{Installed, InstalledNode};
use crate::verify::problem::{PathExcess, Problem, Problems};

/// Reports each too long part of a path once. Only packages are checked, since others are not unpacked.
pub(in crate::verify) fn check(package: &Installed, problems: &mut Problems) {
    let Some(format) = package.format else { return };
    let mut named = BTreeSet::new();
    for (path, node) in &package.paths {
        let is_folder = matches!(node, InstalledNode::Directory { .. });
        let Some(found) = overlong(format, path, is_folder) else { continue };
        if named.insert(found.path) {
            let (bytes, limit) = (found.bytes, found.limit);
            let excess = match found.is_name {
                true => PathExcess::Name { bytes, limit },
                false => PathExcess::Path { bytes, limit },
            };
            problems.add(Problem::PathTooLong { file: package.at(found.path), excess });
        }
    }
}
