//! One package, read back whole.

use std::collections::BTreeMap;

use super::digest::Sha;
use super::facts::{Class, FileFacts};
use crate::plan::package::Format;

/// What a package installs and what it says of itself.
#[derive(Debug)]
pub(super) struct Installed {
    /// File name of the package.
    pub(super) file: String,
    /// Which of the arguments named it.
    pub(super) source: usize,
    /// Size of the package file in bytes.
    pub(super) size: u64,
    pub(super) sha256: Sha,
    pub(super) format: Format,
    pub(super) name: String,
    /// Full version as other packages name it in relations, e.g. `7.1.0-1`.
    pub(super) version: String,
    pub(super) requires: Vec<Requirement>,
    /// The archs it says it has code for, where it or the receipt says so.
    pub(super) stated_archs: Option<Vec<String>>,
    /// Absolute path → what stands there.
    pub(super) paths: BTreeMap<String, InstalledNode>,
}

/// A package that another needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Requirement {
    pub(super) name: String,
    /// The only version that will do, if it is one.
    pub(super) exact: Option<String>,
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

    /// Whether it is a kernel package: it says for which archs it is, or it has device code and
    /// nothing that belongs to a host package.
    pub(super) fn has_kernels(&self) -> bool {
        let has = |wanted: fn(&Class) -> bool| self.files().any(|(_, facts)| wanted(&facts.class));
        let device = |class: &Class| {
            matches!(class, Class::Archive(_) | Class::CodeObject(_) | Class::Bundle(_))
        };
        let host = |class: &Class| matches!(class, Class::Host(_) | Class::Manifest(_));
        self.stated_archs.is_some() || (has(device) && !has(host))
    }

    /// Whether it needs exactly this version of `other`.
    pub(super) fn is_tied_to(&self, other: &Installed) -> bool {
        let tied =
            |r: &Requirement| r.name == other.name && r.exact.as_ref() == Some(&other.version);
        self.requires.iter().any(tied)
    }

    /// How messages name one of its files.
    pub(super) fn at(&self, path: &str) -> String {
        format!("{}:{path}", self.file)
    }
}
