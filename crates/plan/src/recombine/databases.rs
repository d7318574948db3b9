//! The database files of a component, from all shards.
//!
//! A file for some archs comes from one shard, or is the same in all.

use std::collections::BTreeMap;

use rockpack_core::error::{Error, Kind};
use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::{Tree, TreePath};

use super::Join;
use super::groups::ArchGrouping;
use super::host::label;
use rockpack_report::words::list;
use rockpack_report::{Finding, InputArtifact, RepeatedCode};
use rockpack_split::{DatabaseFile, HostFile, SplitArtifact};

/// A database file with its artifact.
#[derive(Clone, Copy)]
struct ArtifactDatabase<'a> {
    part: &'a SplitArtifact,
    file: &'a DatabaseFile,
}

impl Join<'_> {
    /// The database files of grouped archs, sorted by path.
    pub(super) fn databases(
        &mut self,
        host: &Tree<HostFile>,
        parts: &[SplitArtifact],
        grouping: &mut ArchGrouping,
    ) -> Vec<DatabaseFile> {
        let mut files: BTreeMap<&TreePath, ArtifactDatabase<'_>> = BTreeMap::new();
        let mut repeated: BTreeMap<(&[BaseArch], InputArtifact, InputArtifact), usize> =
            BTreeMap::new();
        for part in parts {
            for file in &part.databases {
                if !file.archs.iter().any(|arch| grouping.has(arch)) {
                    for arch in &file.archs {
                        grouping.leave_out(arch, &self.component, &file.path, &file.content);
                    }
                    continue;
                }
                if host.get(&file.path).is_some() {
                    self.faults.add(self.both_sides(file, part));
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
            self.findings.add(Finding::DuplicateCode { repeated });
        }
        let grouped = files.into_values().map(|found| {
            let archs = found.file.archs.iter().filter(|arch| grouping.has(arch));
            DatabaseFile { archs: archs.cloned().collect(), ..found.file.clone() }
        });
        grouped.collect()
    }

    /// Tells whether two files at one path are the same; otherwise adds a fault.
    fn same_database(&mut self, first: ArtifactDatabase<'_>, again: ArtifactDatabase<'_>) -> bool {
        let (known, file) = (first.file, again.file);
        let same = known.content.same_bytes(&file.content);
        let Some(same) = self.faults.keep(same) else {
            return false;
        };
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
                "the shards were built apart; take this arch's database from one of them only \
                 (error_on_duplicate_device_code is about kernels of binaries, not about databases)",
            );
        self.faults.add(error);
        false
    }

    fn both_sides(&self, file: &DatabaseFile, part: &SplitArtifact) -> Error {
        let message = format!(
            "is {}'s alone in {} and serves all archs in another shard",
            list(&file.archs),
            label(part)
        );
        Error::new(Kind::Conflict, message)
            .structure(format!("{}/{}", self.component, file.path))
            .hint("build the shards with the same version of the library")
    }
}
