//! The database files of a component, from all shards, and indexes that contradict each other.
//!
//! A file for some archs comes from one shard, or is the same in all. Shards, and the artifacts of one, may each
//! have files of a folder, and shared files may have moved: only when all shards are joined is it known which
//! files a library will find side by side.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::gfx::{BaseArch, generic_of};
use rockpack_core::tree::{Tree, TreePath};

use super::host::label;
use super::{Component, Group, Join};
use rockpack_report::words::list;
use rockpack_report::{ComponentFile, Findings, InputArtifact, RepeatedCode, found};
use rockpack_split::input::database::{
    DatabaseRules, Index, LibraryIndex, inconsistencies, read_index,
};
use rockpack_split::{DatabaseFile, HostFile, SplitArtifact};

#[derive(Clone, Copy)]
struct ArtifactDatabase<'a> {
    part: &'a SplitArtifact,
    file: &'a DatabaseFile,
}

impl Join<'_> {
    pub(super) fn databases(
        &mut self,
        host: &Tree<HostFile>,
        parts: &[SplitArtifact],
    ) -> Vec<DatabaseFile> {
        let mut files: BTreeMap<&TreePath, ArtifactDatabase<'_>> = BTreeMap::new();
        let mut repeated: BTreeMap<(&[BaseArch], InputArtifact, InputArtifact), usize> =
            BTreeMap::new();
        for part in parts {
            for file in &part.databases {
                if !file.archs.iter().any(|arch| self.grouping.has(arch)) {
                    for arch in &file.archs {
                        self.grouping.leave_out(arch, &self.component, &file.path, &file.content);
                    }
                    continue;
                }
                if host.get(&file.path).is_some() {
                    let (archs, shard) = (list(&file.archs), label(part));
                    let message = format!(
                        "is for {archs} alone in {shard} and for all archs in another shard"
                    );
                    let structure = format!("{}/{}", self.component, file.path);
                    let error = Error::new(Kind::Conflict, message).structure(structure);
                    let hint = "build the shards with the same version of the library";
                    self.faults.add(error.hint(hint));
                }
                let again = ArtifactDatabase { part, file };
                match files.get(&file.path).copied() {
                    None => drop(files.insert(&file.path, again)),
                    Some(first) if self.same_database(first, again) => {
                        let pair = (file.archs.as_slice(), label(first.part), label(part));
                        *repeated.entry(pair).or_default() += 1;
                    }
                    Some(_) => {}
                }
            }
        }
        for ((archs, first, other), count) in repeated {
            let (component, archs) = (self.component.as_str().into(), archs.to_vec());
            let repeated = RepeatedCode::Database { component, archs, count, first, other };
            self.findings.add(found::DuplicateCode { repeated });
        }
        let grouped = files.into_values().map(|found| {
            let archs = found.file.archs.iter().filter(|arch| self.grouping.has(arch));
            DatabaseFile { archs: archs.cloned().collect(), ..found.file.clone() }
        });
        grouped.collect()
    }

    /// Whether two files at one path are equal; adds a fault if not.
    fn same_database(&mut self, first: ArtifactDatabase<'_>, again: ArtifactDatabase<'_>) -> bool {
        let (known, file) = (first.file, again.file);
        let same = known.content.same_bytes(&file.content);
        let Some(same) = self.faults.keep(same) else { return false };
        if same && known.archs == file.archs {
            return true;
        }
        let (one, other) = (label(first.part), label(again.part));
        let message = if same {
            let (known, file) = (list(&known.archs), list(&file.archs));
            format!("belongs to {known} in {one} and to {file} in {other}")
        } else {
            format!("differs between {one} and {other} ({})", list(&file.archs))
        };
        let error = Error::new(Kind::Conflict, message)
            .structure(format!("{}/{}", self.component, file.path))
            .hint(
                "the shards were built separately; keep this arch's database in only one of them \
                 (error_on_duplicate_device_code is about kernels of binaries, not about databases)",
            );
        self.faults.add(error);
        false
    }
}

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
    // `verify` knows only the built-in rules, not those of a configuration.
    let builtin = DatabaseRules::builtin()?;
    let (mut packed, mut indexes) = (Vec::new(), Vec::new());
    let (mut folder, mut has_rules) = (None, false);
    for component in components {
        for (file, content) in files(component) {
            // No rule is for most folders.
            if folder != Some(file.path.folder()) {
                folder = Some(file.path.folder());
                has_rules = [&builtin, rules].iter().any(|it| it.are_for_folder_of(file.path));
            }
            if !has_rules {
                continue;
            }
            let index = LibraryIndex::of(&builtin, file.path);
            let Some(mut index) = index.or_else(|| LibraryIndex::of(rules, file.path)) else {
                continue;
            };
            if index.is_mapping()
                && let Index::Described(described) = read_index(content)?
            {
                index.mapped = Some(described.libraries);
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
            let file = ComponentFile::new(&*index.component.id, index.path);
            findings.add(found::DatabaseInconsistent { file, fault });
        }
    }
    components.iter().for_each(|component| note_generic_fallbacks(component, groups, findings));
    Ok(())
}

/// The rule of rocBLAS. It looks up its fallback files by the GPU's own arch, even where it loads other code for a
/// generic target (rocm-libraries#9366).
const ROCBLAS: &str = "rocblas";

/// Notes folders whose fallback files serve archs of a group by a generic target alone.
fn note_generic_fallbacks(component: &Component, groups: &[Group], findings: &mut Findings) {
    let mut folders: BTreeMap<TreePath, BTreeSet<&BaseArch>> = BTreeMap::new();
    for file in &component.databases {
        if let Some(folder) = file.path.parent()
            && file.rule == ROCBLAS
            && file.path.name().contains("fallback")
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
                let folder = ComponentFile::new(&*component.id, folder);
                let generic = (*generic).clone();
                findings.add(found::FallbackFilesGeneric { folder, generic, archs });
            }
        }
    }
}

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
    /// Whether every user of this index also has `other`: host files come with every kernel package, and one kernel
    /// package holds the files of all archs of a group.
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
