//! One package, read back whole.

use std::collections::BTreeMap;

use super::facts::FileFacts;
use crate::plan::package::Format;

/// What a package installs and what it says of itself.
#[derive(Debug)]
pub(super) struct Installed {
    /// File name of the package.
    pub(super) file: String,
    /// Size of the package file in bytes.
    pub(super) size: u64,
    pub(super) sha256: [u8; 32],
    pub(super) format: Format,
    pub(super) name: String,
    /// Full version as other packages name it in relations, e.g. `7.1.0-1`.
    pub(super) version: String,
    /// Packages it needs in exactly one version: name and version.
    pub(super) requires: Vec<(String, String)>,
    /// The archs a kernel package says it is for; empty if it is one that does not say, `None` if
    /// it is no kernel package.
    pub(super) kernel_archs: Option<Vec<String>>,
    /// Absolute path → what stands there.
    pub(super) paths: BTreeMap<String, InstalledNode>,
}

/// What stands at a path.
#[derive(Debug)]
pub(super) enum InstalledNode {
    Directory { mode: u32 },
    Link { target: String },
    File { mode: u32, facts: FileFacts },
}

impl Installed {
    /// The regular files in path order.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &FileFacts)> {
        self.paths.iter().filter_map(|(path, node)| match node {
            InstalledNode::File { facts, .. } => Some((path.as_str(), facts)),
            _ => None,
        })
    }
}
