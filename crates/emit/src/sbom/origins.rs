//! Finds the artifacts that the bytes of a package come from.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_core::tree::Node;

use crate::pack::Sources;
use rockpack_package::Package;
use rockpack_plan::recombine::Recombined;
use rockpack_plan::{FileSource, Plan};
use rockpack_split::input::artifact::{Artifact, Scan};

/// The artifacts of a scan, by path.
pub(super) struct Origins<'a> {
    sources: Sources<'a>,
    artifacts: Vec<&'a Artifact>,
    /// Path of an artifact → its index.
    by_root: BTreeMap<&'a [u8], usize>,
    /// Id of a component → the indexes of its artifacts.
    by_component: BTreeMap<String, Vec<usize>>,
}

impl<'a> Origins<'a> {
    pub fn new(scan: &'a Scan, recombined: &'a Recombined, plan: &'a Plan) -> Self {
        let artifacts: Vec<_> = scan.shards.iter().flat_map(|shard| &shard.artifacts).collect();
        let roots = artifacts.iter().enumerate();
        let by_root = roots.map(|(at, artifact)| (bytes_of(&artifact.root), at)).collect();
        let mut by_component: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, artifact) in artifacts.iter().enumerate() {
            by_component.entry(artifact.name.component()).or_default().push(at);
        }
        Self { sources: Sources::new(recombined, plan), artifacts, by_root, by_component }
    }

    /// The artifacts that bytes of `package` come from, in the order of shards and names. Texts and
    /// manifests that the run makes come from none.
    pub fn of(&self, package: &Package<FileSource>) -> Result<Vec<&'a Artifact>> {
        let mut found = BTreeSet::new();
        for entry in &package.entries {
            if let Node::File { data, .. } = &entry.node {
                self.add(data, &mut found)?;
            }
        }
        Ok(found.into_iter().filter_map(|at| self.artifacts.get(at).copied()).collect())
    }

    fn add(&self, source: &FileSource, found: &mut BTreeSet<usize>) -> Result<()> {
        match source {
            FileSource::Host { component, .. }
            | FileSource::Fat { component, .. }
            | FileSource::Database { component, .. } => {
                let content = self.sources.original(source)?.unwrap_or_default();
                self.add_content(&content, component, None, found);
            }
            FileSource::Archive { archives, arch } => {
                let set = self.sources.archive_set(archives)?;
                let components: BTreeSet<&String> = set.binaries.iter().map(|(id, _)| id).collect();
                for kernel in self.sources.kernels(set).filter(|k| k.target.base() == arch) {
                    for component in &components {
                        self.add_content(&kernel.content, component, Some(&kernel.shard), found);
                    }
                }
            }
            FileSource::Manifest { .. } | FileSource::Text(_) | FileSource::Changelog(_) => {}
        }
        Ok(())
    }

    /// Adds the artifacts of the files that `content` comes from. Content that was put together from several
    /// files has no file of origin: then all artifacts of its component are added, limited to one shard if
    /// that is known.
    fn add_content(
        &self,
        content: &Content,
        component: &str,
        shard: Option<&str>,
        found: &mut BTreeSet<usize>,
    ) {
        let known: BTreeSet<usize> =
            content.files().filter_map(|file| self.artifact_with(&file)).collect();
        if !known.is_empty() {
            return found.extend(known);
        }
        let of_component = self.by_component.get(component).into_iter().flatten().copied();
        found.extend(of_component.filter(|at| {
            let artifact = self.artifacts.get(*at);
            shard.is_none_or(|shard| artifact.is_some_and(|artifact| artifact.shard == shard))
        }));
    }

    /// The artifact that `file` is in: below its folder, or a member of its archive, which is called
    /// `archive(member)`.
    fn artifact_with(&self, file: &Path) -> Option<usize> {
        let path = bytes_of(file);
        let ends = (0..path.len()).rev().filter(|at| matches!(path[*at], b'/' | b'('));
        let mut roots = ends.filter_map(|at| self.by_root.get(&path[..at]));
        roots.next().or_else(|| self.by_root.get(path)).copied()
    }
}

fn bytes_of(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}
