//! Files that run with the rights of their owner or group. No artifact has any, and no rule makes one.

use crate::verify::own::installed::Installed;
use crate::verify::problem::{Problem, Problems};

/// The setuid and setgid bits.
const SET_ID: u32 = 0o6000;

/// Adds every file and folder of a package that has one of the bits.
pub(super) fn check(package: &Installed, problems: &mut Problems) {
    for (path, node) in &package.paths {
        let mode = node.mode();
        if mode & SET_ID != 0 {
            problems.add(Problem::SetId { file: package.at(path), mode });
        }
    }
}
