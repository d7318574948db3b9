//! The device side of a portion: its kernel archives and database files by group.
//!
//! A database file that serves archs of several groups belongs to all of them. Such files are collected per
//! *set* of groups, so that no group gets files that only other groups need.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::{Node, TreePath};

use crate::contents::{OwnedDatabase, Portion};
use crate::layout::file_mode;
use crate::outcome::{ArchiveSet, FileSource, KeptArchives};
use crate::recombine::Group;
use crate::runtime::uses_shim;
use crate::settings::PlanSettings;

pub(crate) type GroupIndexes = BTreeSet<usize>;

#[derive(Debug, Default)]
pub(crate) struct DeviceFiles {
    pub files: BTreeMap<TreePath, Node<FileSource>>,
    pub archs: BTreeSet<BaseArch>,
}

#[derive(Debug, Default)]
pub(crate) struct DeviceContents {
    pub archives: Option<ArchiveSet>,
    /// Whether a binary finds its code only by a HIP runtime that reads archives.
    pub needs_runtime: bool,
    /// Kernel packages by the groups they serve: one group for its own package, several for shared content. A group
    /// that shares content has a package of its own, even an empty one.
    pub packages: BTreeMap<GroupIndexes, DeviceFiles>,
}

pub(crate) fn contents(
    setting: &PlanSettings,
    groups: &[Group],
    portion: &Portion<'_>,
) -> Result<DeviceContents> {
    let archives = archive_set(setting, portion)?;
    let mut contents = DeviceContents::default();
    for arch in archives.iter().flat_map(|set| &set.archs) {
        let set = archives.as_ref().map(|set| set.name.clone()).unwrap_or_default();
        let path = setting.config.folders.kernels.join(&format!("{set}_{arch}.kpack"))?;
        let data = FileSource::Archive { archives: set, arch: arch.clone() };
        let node = Node::File { data, mode: file_mode(0) };
        contents.add(groups, std::slice::from_ref(arch), path, node)?;
    }
    for OwnedDatabase { component, file, archs } in &portion.databases {
        let data =
            FileSource::Database { component: Arc::clone(&component.id), path: file.path.clone() };
        let node = Node::File { data, mode: file_mode(file.mode) };
        contents.add(groups, archs, file.path.clone(), node)?;
    }
    contents.archives = archives;
    for fat in portion.files.values().filter_map(|owned| owned.node.data()?.fat()) {
        contents.needs_runtime |= !uses_shim(fat, setting.shim.is_some())?;
    }
    Ok(contents)
}

impl DeviceContents {
    fn add(
        &mut self,
        groups: &[Group],
        archs: &[BaseArch],
        path: TreePath,
        node: Node<FileSource>,
    ) -> Result<()> {
        let mut served = GroupIndexes::new();
        for arch in archs {
            let group = groups.iter().position(|group| group.archs.contains(arch));
            // Recombination passes on grouped archs only.
            let group = group
                .ok_or_else(|| Error::bug(format!("{path} is for {arch}, which is in no group")))?;
            served.insert(group);
            let own = self.packages.entry(GroupIndexes::from([group])).or_default();
            own.archs.insert(arch.clone());
        }
        let package = self.packages.entry(served).or_default();
        package.archs.extend(archs.iter().cloned());
        match package.files.entry(path) {
            Entry::Vacant(slot) => {
                slot.insert(node);
                Ok(())
            }
            Entry::Occupied(slot) => {
                let (path, one, other) = (slot.key(), origin(slot.get()), origin(&node));
                let message = format!("{path} comes from {one} and from {other}");
                let hint = "a package can hold a path once: remove the file from one component";
                Err(Error::new(Kind::Conflict, message).hint(hint))
            }
        }
    }

    pub fn groups(&self) -> impl Iterator<Item = usize> {
        let single = self.packages.keys().filter(|served| served.len() == 1);
        single.flatten().copied()
    }

    pub fn has_group(&self, group: usize) -> bool {
        self.packages.contains_key(&GroupIndexes::from([group]))
    }

    pub fn shared(&self) -> impl Iterator<Item = &GroupIndexes> {
        self.packages.keys().filter(|served| served.len() > 1)
    }
}

fn origin(node: &Node<FileSource>) -> String {
    match node {
        Node::File { data: FileSource::Database { component, .. }, .. } => component.to_string(),
        _ => "a kernel archive of this package".to_owned(),
    }
}

/// The archives of a portion's fat binaries, if any. Every marker needs a name, even without any code.
fn archive_set(setting: &PlanSettings, portion: &Portion<'_>) -> Result<Option<ArchiveSet>> {
    let (names, config) = (&setting.names, &setting.config);
    let files = portion.files.iter();
    let fat = files.filter(|(_, owned)| owned.node.data().is_some_and(|file| file.fat().is_some()));
    let binaries: BTreeSet<(String, TreePath)> =
        fat.map(|(path, owned)| (owned.component.id.to_string(), (*path).clone())).collect();
    if binaries.is_empty() {
        return Ok(None);
    }
    let archs: BTreeSet<&BaseArch> =
        portion.kernels.iter().map(|kernel| kernel.target.base()).collect();
    let search =
        names.scheme.archive_search.iter().map(TreePath::new).collect::<Result<Vec<_>>>()?;
    Ok(Some(ArchiveSet {
        name: format!("{}_{}", names.without_vendor(&portion.family), portion.part.name),
        folder: config.folders.kernels.clone(),
        search: search.into_iter().filter(|folder| *folder != config.folders.kernels).collect(),
        manifest_prefix: config.folders.manifest_prefix(),
        binaries,
        archs: archs.into_iter().cloned().collect(),
        kept: KeptArchives::default(),
    }))
}
