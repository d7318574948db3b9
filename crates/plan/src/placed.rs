//! Nodes of packages: their modes, special treatment, and places outside of the prefix.
//!
//! Modes are normalised: folders 0755, executable files 0755, other files 0644.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::tree::{Node, TreePath};

use crate::source::FileSource;
use crate::texts::licences::Licence;
use rockpack_package::{Formats, Treatment};

/// Mode of folders and executable files.
pub(crate) const EXECUTABLE: u32 = 0o755;

/// Mode of other files.
const PLAIN: u32 = 0o644;

/// The mode of a packed file.
pub(crate) fn file_mode(mode: u32) -> u32 {
    match mode & 0o111 {
        0 => PLAIN,
        _ => EXECUTABLE,
    }
}

/// A node at an absolute install path.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub node: Node<FileSource>,
    pub treatment: Treatment,
    pub formats: Formats,
}

impl Placed {
    /// A node that both formats have.
    pub fn in_all(node: Node<FileSource>, treatment: Treatment) -> Self {
        Self { node, treatment, formats: Formats::All }
    }
}

/// The content of a package besides plain files below the prefix.
#[derive(Debug, Default)]
pub(crate) struct Extras {
    /// Files outside of the prefix by absolute install path, without the leading slash.
    pub outside: BTreeMap<TreePath, Placed>,
    /// The treatment of special files below the prefix.
    pub treatments: BTreeMap<TreePath, Treatment>,
    /// Install-relative links that a debug file replaces.
    pub replaced: Vec<TreePath>,
    /// The build-ids of its debug files, in hex.
    pub build_ids: BTreeSet<String>,
    /// The licence texts of its family.
    pub licences: Vec<Licence>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_one_of_two() {
        assert_eq!(
            [0o600, 0o664, 0o4755, 0o710, 0o001].map(file_mode),
            [0o644, 0o644, 0o755, 0o755, 0o755]
        );
    }
}
