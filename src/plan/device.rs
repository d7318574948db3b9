//! The device side of a bundle: its kernel archives and database files by group.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::layout::{KERNEL_FOLDER, KERNEL_PREFIX, file_mode};
use super::naming::short_name;
use super::selectors::{Bundle, Owned};
use super::{ArchiveSet, Source};
use crate::error::{Error, Kind, Result};
use crate::gfx::BaseArch;
use crate::recombine::{Component, Group};
use crate::split::{DatabaseFile, HostFile, HostKind};
use crate::tree::{Node, TreePath};

/// The device side of a bundle.
pub(super) struct Contents {
    pub archives: Option<ArchiveSet>,
    /// Group → install-relative files.
    pub groups: BTreeMap<usize, BTreeMap<TreePath, Node<Source>>>,
    /// Group → archs with content.
    pub archs: BTreeMap<usize, BTreeSet<BaseArch>>,
}

/// What a bundle's code objects and databases become.
pub(super) fn contents(bundle: &Bundle<'_>, groups: &[Group]) -> Result<Contents> {
    let archives = archive_set(bundle)?;
    let mut contents = Contents { archives: None, groups: BTreeMap::new(), archs: BTreeMap::new() };
    for arch in archives.iter().flat_map(|set| &set.archs) {
        let set = archives.as_ref().map(|set| set.name.clone()).unwrap_or_default();
        let path = TreePath::new(format!("{KERNEL_FOLDER}/{set}_{arch}.kpack"))?;
        let data = Source::Archive { archives: set, arch: arch.clone() };
        let group = group_of(groups, arch, &path)?;
        let node = Node::File { data, mode: file_mode(0) };
        contents.add((group, std::slice::from_ref(arch)), (path, node))?;
    }
    for (component, file) in &bundle.databases {
        let data = Source::Database { component: component.id(), path: file.path.clone() };
        let node = Node::File { data, mode: file_mode(file.mode) };
        let group = only_group(groups, component, file)?;
        contents.add((group, &file.archs), (file.path.clone(), node))?;
    }
    contents.archives = archives;
    Ok(contents)
}

impl Contents {
    fn add(
        &mut self,
        (group, archs): (usize, &[BaseArch]),
        (path, node): (TreePath, Node<Source>),
    ) -> Result<()> {
        self.archs.entry(group).or_default().extend(archs.iter().cloned());
        match self.groups.entry(group).or_default().entry(path) {
            Entry::Vacant(slot) => {
                slot.insert(node);
                Ok(())
            }
            Entry::Occupied(slot) => Err(claimed_twice(slot.key(), slot.get(), &node)),
        }
    }
}

/// The group of `arch`: recombination passes on grouped archs only.
fn group_of(groups: &[Group], arch: &BaseArch, path: &TreePath) -> Result<usize> {
    let group = groups.iter().position(|group| group.archs.contains(arch));
    group.ok_or_else(|| Error::bug(format!("{path} is for {arch}, which is in no group")))
}

/// The group that has all archs of a database file.
fn only_group(groups: &[Group], component: &Component, file: &DatabaseFile) -> Result<usize> {
    let path = &file.path;
    let found = file.archs.iter().map(|arch| group_of(groups, arch, path));
    let found = found.collect::<Result<BTreeSet<usize>>>()?;
    match (found.first(), found.len()) {
        (Some(group), 1) => Ok(*group),
        (None, _) => Err(Error::bug(format!("{path} is for no arch"))),
        _ => {
            let names = found.iter().filter_map(|group| Some(groups.get(*group)?.name.as_str()));
            let names: Vec<&str> = names.collect();
            let message = format!("serves the groups {} at once", names.join(", "));
            Err(Error::unsupported(message)
                .structure(format!("{}/{path}", component.id()))
                .hint("put its archs into one group: a file can be in one kernel package only"))
        }
    }
}

/// Two components of one package have device code at one path.
fn claimed_twice(path: &TreePath, one: &Node<Source>, other: &Node<Source>) -> Error {
    let owner = |node: &Node<Source>| match node {
        Node::File { data: Source::Database { component, .. }, .. } => component.clone(),
        _ => "a kernel archive of this package".to_owned(),
    };
    let message = format!("{path} comes from {} and from {}", owner(one), owner(other));
    Error::new(Kind::Conflict, message)
        .hint("a package holds a path once: take the file out of one of the components")
}

/// The archives of a bundle's fat binaries; every marker needs a name, even without any code.
fn archive_set(bundle: &Bundle<'_>) -> Result<Option<ArchiveSet>> {
    let fat = bundle.files.iter().filter(|(_, owned)| is_fat(owned));
    let binaries: BTreeSet<(String, TreePath)> =
        fat.map(|(path, owned)| (owned.component.id(), (*path).clone())).collect();
    if binaries.is_empty() {
        return Ok(None);
    }
    let archs: BTreeSet<&BaseArch> =
        bundle.kernels.iter().map(|kernel| kernel.target.base()).collect();
    Ok(Some(ArchiveSet {
        name: format!("{}_{}", short_name(&bundle.family), bundle.part.archives),
        folder: TreePath::new(KERNEL_FOLDER)?,
        manifest_prefix: KERNEL_PREFIX.to_owned(),
        binaries,
        archs: archs.into_iter().cloned().collect(),
    }))
}

fn is_fat(owned: &Owned<'_>) -> bool {
    let is_fat = |file: &HostFile| matches!(file.kind, HostKind::Fat(_));
    matches!(owned.node, Node::File { data, .. } if is_fat(data))
}
