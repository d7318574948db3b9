//! Indexes of kernel databases that contradict each other once all shards are joined.
//!
//! Shards, and the artifacts of one, may each have files of a folder, and shared files may have moved: only
//! now is it known which files a library will find side by side.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_core::gfx::{BaseArch, generic_of};
use rockpack_core::tree::TreePath;

use super::{Component, Group};
use rockpack_report::{ComponentFile, Finding, Findings};
use rockpack_split::input::database::{
    DatabaseRules, Index, LibraryIndex, inconsistencies, read_index,
};

/// An index with its owner, as packages have it.
struct PackedIndex<'a> {
    component: &'a Component,
    path: &'a TreePath,
    /// The archs in whose kernel packages it is; empty for a host file.
    archs: &'a [BaseArch],
}

/// Notes contradictions among the indexes of all components: a library's indexes may be in several.
pub(super) fn check(
    components: &[Component],
    groups: &[Group],
    rules: &DatabaseRules,
    findings: &mut Findings,
) -> Result<()> {
    // Verify knows the built-in rules, and none of a configuration.
    let builtin = DatabaseRules::builtin()?;
    let (mut packed, mut indexes) = (Vec::new(), Vec::new());
    for component in components {
        for (file, content) in files(component) {
            let index = LibraryIndex::of(&builtin, file.path);
            let Some(mut index) = index.or_else(|| LibraryIndex::of(rules, file.path)) else {
                continue;
            };
            if index.is_mapping()
                && let Index::Described(said) = read_index(content)?
            {
                index.maps_to(said.libraries);
            }
            packed.push(file);
            indexes.push(index);
        }
    }
    let reaches = |one: usize, other: usize| match (packed.get(one), packed.get(other)) {
        (Some(one), Some(other)) => one.reaches(other, groups),
        _ => false,
    };
    for (place, fault) in inconsistencies(&indexes, &reaches) {
        if let Some(index) = packed.get(place) {
            let file = ComponentFile::new(index.component.id(), index.path);
            findings.add(Finding::DatabaseInconsistent { file, fault });
        }
    }
    components.iter().for_each(|component| note_generic_fallbacks(component, groups, findings));
    Ok(())
}

/// The rule of rocBLAS, which looks its fallback files up by the name of the GPU's own arch, also where it loads
/// other code for a generic target (rocm-libraries#9366).
const ROCBLAS: &str = "rocblas";

/// The word in the names of fallback files.
const FALLBACK: &str = "fallback";

/// Notes folders whose fallback files serve archs of a group by a generic target alone.
fn note_generic_fallbacks(component: &Component, groups: &[Group], findings: &mut Findings) {
    let mut folders: BTreeMap<TreePath, BTreeSet<&BaseArch>> = BTreeMap::new();
    for file in &component.databases {
        if let Some(folder) = file.path.parent()
            && file.rule == ROCBLAS
            && file.path.name().contains(FALLBACK)
        {
            folders.entry(folder).or_default().extend(&file.archs);
        }
    }
    for (folder, own) in &folders {
        for generic in own.iter().filter(|arch| arch.is_generic()) {
            let grouped = groups.iter().flat_map(|group| &group.archs);
            let archs: Vec<BaseArch> = grouped
                .filter(|arch| generic_of(arch) == Some(generic) && !own.contains(arch))
                .cloned()
                .collect();
            if !archs.is_empty() {
                let folder = ComponentFile::new(component.id(), folder);
                let generic = (*generic).clone();
                findings.add(Finding::FallbackFilesGeneric { folder, generic, archs });
            }
        }
    }
}

/// The files of a component that may be indexes.
fn files(component: &Component) -> impl Iterator<Item = (PackedIndex<'_>, &Content)> {
    let host = component.host.iter().filter_map(|(path, node)| {
        Some((PackedIndex { component, path, archs: &[] }, node.data()?.plain()?))
    });
    let databases = component.databases.iter().map(|file| {
        (PackedIndex { component, path: &file.path, archs: &file.archs }, &file.content)
    });
    host.chain(databases)
}

impl PackedIndex<'_> {
    /// Tells whether every user of this index has `other`, too: host files come with every kernel package,
    /// and the files of all archs of a group are in one.
    fn reaches(&self, other: &Self, groups: &[Group]) -> bool {
        let of_host = self.archs.is_empty() || other.archs.is_empty();
        of_host
            || self.archs.iter().any(|arch| other.archs.contains(arch))
            || groups.iter().any(|group| self.is_in(group) && other.is_in(group))
    }

    fn is_in(&self, group: &Group) -> bool {
        group.archs.iter().any(|arch| self.archs.contains(arch))
    }
}
