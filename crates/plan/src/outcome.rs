//! The result of the plan stage.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::tree::TreePath;

use super::prefix::Prefix;
use super::source::{ArchiveSet, FileSource};
use rockpack_package::dependencies::script::FirstLine;
use rockpack_package::receipt::{KeptRecord, Standing};
use rockpack_package::{Package, Version};
use rockpack_report::Findings;

/// A package set, decided except for its bytes.
#[derive(Debug)]
pub struct Plan {
    /// Packages in the order of their names.
    pub packages: Vec<Package<FileSource>>,
    /// The kernel archives that the packages' files refer to, in the order of families and their parts.
    pub archives: Vec<ArchiveSet>,
    /// Install prefix of the packages.
    pub prefix: Prefix,
    /// Version of all packages.
    pub version: Version,
    /// Time of every packed file, in seconds since 1970.
    pub content_date: u32,
    /// Install-relative paths of files whose library search paths are written anew; in order.
    pub rewritten: BTreeSet<TreePath>,
    /// Install-relative paths of scripts that get another first line, with that line.
    pub first_lines: BTreeMap<TreePath, FirstLine>,
    /// The packages of earlier sets of this version.
    pub standing: Standing,
    /// The packages of earlier sets that this set keeps: all that remain of those that
    /// [`Choices::only`](super::Choices::only) leaves out.
    pub kept: KeptRecord,
    /// Install-relative paths of the input that no package has, because
    /// [`Choices::only`](super::Choices::only) leaves them out or no entry of a package list takes them; in
    /// order.
    pub left_out: Vec<TreePath>,
    /// Findings of the plan.
    pub findings: Findings,
}

impl Plan {
    /// [`Plan::left_out`] as absolute paths.
    pub fn left_out_paths(&self) -> Vec<String> {
        let prefix = self.prefix.absolute();
        self.left_out.iter().map(|path| format!("{prefix}/{path}")).collect()
    }

    /// Keeps the packages with these ids, and the archives that they refer to.
    pub fn keep(&mut self, ids: &BTreeSet<String>) {
        self.packages.retain(|package| ids.contains(&package.id));
        self.archives = used(std::mem::take(&mut self.archives), &self.packages);
    }
}

/// The archive sets that some package refers to.
pub(super) fn used(
    mut archives: Vec<ArchiveSet>,
    packages: &[Package<FileSource>],
) -> Vec<ArchiveSet> {
    let entries = packages.iter().flat_map(|package| &package.entries);
    let names: BTreeSet<&str> = entries.filter_map(|e| e.node.data()?.archives()).collect();
    archives.retain(|set| names.contains(set.name.as_str()));
    archives
}
