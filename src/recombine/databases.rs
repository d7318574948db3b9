//! The database files of a component, from all shards.
//!
//! A file of one arch comes from one shard, or is the same in all. A file that names no arch
//! serves the archs of its own shard; where two shards have different ones, neither serves the
//! other's archs, so taking one for all would break the kernels of the rest.

use std::collections::{BTreeMap, BTreeSet};

use super::Join;
use super::groups::Grouping;
use super::host::label;
use crate::content::Content;
use crate::error::{Error, Kind};
use crate::gfx::BaseArch;
use crate::report::{Code, Finding};
use crate::split::{DatabaseFile, HostFile, HostKind, SplitArtifact};
use crate::tree::{Node, Tree, TreePath};

impl Join<'_> {
    /// The database files of grouped archs, sorted by path.
    pub(super) fn databases(
        &mut self,
        host: &Tree<HostFile>,
        parts: &[SplitArtifact],
        grouping: &mut Grouping,
    ) -> Vec<DatabaseFile> {
        self.refuse_different_shared(host, parts);
        let mut files: BTreeMap<&TreePath, (&SplitArtifact, &DatabaseFile)> = BTreeMap::new();
        let mut repeated: BTreeMap<(&[BaseArch], String, String), usize> = BTreeMap::new();
        for part in parts {
            for file in &part.databases {
                if !file.archs.iter().any(|arch| grouping.has(arch)) {
                    let place = (self.component.as_str(), &file.path);
                    for arch in &file.archs {
                        grouping.leave_out(arch, place, &file.content);
                    }
                    continue;
                }
                if host.get(&file.path).is_some() {
                    self.faults.add(self.both_sides(file, part));
                }
                match files.get(&file.path) {
                    None => drop(files.insert(&file.path, (part, file))),
                    Some((first, known)) if self.same_database((first, known), (part, file)) => {
                        let pair = (file.archs.as_slice(), label(first), label(part));
                        *repeated.entry(pair).or_default() += 1;
                    }
                    Some(_) => {}
                }
            }
        }
        for ((archs, first, again), count) in repeated {
            let archs = list(archs);
            let message = format!(
                "{count} database files of {archs} are the same in {first} and {again}, and are packed once"
            );
            let subject = self.component.clone();
            self.findings.add(Finding::new(Code::DuplicateCode, subject, message));
        }
        files.into_values().map(|(_, file)| of_grouped(file, grouping)).collect()
    }

    /// Whether two files at one path are one; otherwise a fault says why not.
    fn same_database(
        &mut self,
        (first, known): (&SplitArtifact, &DatabaseFile),
        (again, file): (&SplitArtifact, &DatabaseFile),
    ) -> bool {
        let same = known.content.same_bytes(&file.content);
        let Some(same) = self.faults.keep(same) else {
            return false;
        };
        if same && known.archs == file.archs {
            return true;
        }
        let (one, other) = (label(first), label(again));
        let message = match same {
            true => {
                let (known, file) = (list(&known.archs), list(&file.archs));
                format!("belongs to {known} in {one} and to {file} in {other}")
            }
            false => format!("differs between {one} and {other} ({})", list(&file.archs)),
        };
        let error = Error::new(Kind::Conflict, message)
            .structure(format!("{}/{}", self.component, file.path))
            .hint("the shards were built apart; take this arch's database from one of them only");
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

    /// Shared database files have to be the same in all shards that have them.
    fn refuse_different_shared(&mut self, host: &Tree<HostFile>, parts: &[SplitArtifact]) {
        let shared = Shared::of(parts);
        for (path, node) in host {
            let Some(content) = plain(node).filter(|_| shared.has(path)) else {
                continue;
            };
            let mut first = None;
            for part in parts {
                let Some(other) = part.host.get(path).and_then(plain) else {
                    continue;
                };
                let Some(first) = first else {
                    first = Some(part);
                    continue;
                };
                let same = content.same_bytes(other);
                if self.faults.keep(same) == Some(false) {
                    self.faults.add(self.shared_differs(path, first, part));
                }
            }
        }
    }

    fn shared_differs(
        &self,
        path: &TreePath,
        first: &SplitArtifact,
        again: &SplitArtifact,
    ) -> Error {
        let message = format!(
            "serves all archs of its shard, and differs between {} and {}",
            label(first),
            label(again)
        );
        Error::new(Kind::Conflict, message).structure(format!("{}/{path}", self.component)).hint(
            "neither file knows the other shard's kernels, so neither can be packed for all; \
                 build these archs in one shard, or package the shards apart",
        )
    }
}

/// The file with those of its archs that are in a group.
fn of_grouped(file: &DatabaseFile, grouping: &Grouping) -> DatabaseFile {
    let archs = file.archs.iter().filter(|arch| grouping.has(arch)).cloned().collect();
    DatabaseFile { archs, ..file.clone() }
}

fn list(archs: &[BaseArch]) -> String {
    let names: Vec<&str> = archs.iter().map(BaseArch::as_str).collect();
    names.join(", ")
}

fn plain(node: &Node<HostFile>) -> Option<&Content> {
    match node {
        Node::File { data, .. } => match &data.kind {
            HostKind::Plain(content) => Some(content),
            HostKind::Fat(_) => None,
        },
        _ => None,
    }
}

/// Which host files serve all archs of a database: those that the split reported as shared, and
/// those that lie in a folder with files of single archs.
struct Shared {
    reported: BTreeSet<String>,
    folders: BTreeSet<TreePath>,
}

impl Shared {
    fn of(parts: &[SplitArtifact]) -> Self {
        let reported = parts.iter().flat_map(|part| {
            // A finding of the split is about `<shard>/<artifact>/<path>`.
            let artifact = format!("{}/", label(part));
            let shared = |finding: &&Finding| finding.code == Code::DatabaseShared;
            let subjects = part.findings.iter().filter(shared).map(|f| &f.subject);
            subjects.filter_map(move |subject| subject.strip_prefix(artifact.as_str()))
        });
        let databases = parts.iter().flat_map(|part| &part.databases);
        Self {
            reported: reported.map(str::to_owned).collect(),
            folders: databases.filter_map(|file| file.path.parent()).collect(),
        }
    }

    fn has(&self, path: &TreePath) -> bool {
        let beside = path.parent().is_some_and(|folder| self.folders.contains(&folder));
        beside || self.reported.contains(path.as_str())
    }
}
