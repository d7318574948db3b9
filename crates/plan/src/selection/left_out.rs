//! Finds the input that `--only` leaves out or a package list does not take: files and device code that no
//! kept package has.
//!
//! A finding names every such path and code object, so that a comparison of the set with its input knows
//! which content is absent on purpose.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::error::Result;
use rockpack_core::tree::{Node, TreePath};

use crate::contents::missing::Missing;
use crate::drafts::Draft;
use crate::recombine::{Component, Recombined};
use crate::source::{ArchiveSet, FileSource};
use rockpack_report::Findings;
use rockpack_split::HostKind;

/// The install-relative paths of `dropped` that no package of `kept` has, in order. Each component that lost
/// something gets a finding with its code objects.
pub(crate) fn left_out(
    recombined: &Recombined,
    archives: &[ArchiveSet],
    kept: &[&Draft],
    dropped: &[&Draft],
    findings: &mut Findings,
) -> Result<Vec<TreePath>> {
    let outside: Vec<&FileSource> = dropped
        .iter()
        .flat_map(|draft| &draft.extras.outside)
        .filter(|(path, _)| !kept.iter().any(|draft| draft.extras.outside.contains_key(*path)))
        .filter_map(|(_, placed)| placed.node.data())
        .collect();
    let kept: BTreeSet<&TreePath> = kept.iter().flat_map(|draft| draft.files.keys()).collect();
    let components = recombined.components.iter().map(|component| (component.id(), component));
    let lookup = Lookup { components: components.collect(), archives };
    let mut missing = BTreeMap::new();
    let mut paths = BTreeSet::new();
    for (path, node) in dropped.iter().flat_map(|draft| &draft.files) {
        if kept.contains(path) {
            continue;
        }
        match node {
            Node::File { data, .. } => {
                lookup.add(data, &mut missing);
                if is_of_input(data) {
                    paths.insert(path.clone());
                }
            }
            Node::Link { .. } | Node::Directory { .. } => drop(paths.insert(path.clone())),
        }
    }
    paths.extend(dropped.iter().flat_map(|draft| draft.extras.replaced.iter().cloned()));
    // A file that is installed elsewhere is listed by its path in the input.
    for source in outside {
        lookup.add(source, &mut missing);
        if let FileSource::Host { path, .. } = source {
            paths.insert(path.clone());
        }
    }
    for (component, missing) in missing {
        findings.add(missing.finding(component)?);
    }
    Ok(paths.into_iter().collect())
}

fn is_of_input(source: &FileSource) -> bool {
    matches!(source, FileSource::Host { .. } | FileSource::Fat { .. } | FileSource::Database { .. })
}

/// The places of the plan's sources: components and archive sets.
struct Lookup<'a> {
    components: BTreeMap<String, &'a Component>,
    archives: &'a [ArchiveSet],
}

impl<'a> Lookup<'a> {
    /// Adds the content behind `source` to the component that it comes from.
    fn add(&self, source: &'a FileSource, by_component: &mut BTreeMap<&'a str, Missing<'a>>) {
        match source {
            FileSource::Host { component, path } | FileSource::Fat { component, path, .. } => {
                let missing = by_component.entry(component).or_default();
                missing.files += 1;
                let node = self.components.get(component).and_then(|found| found.host.get(path));
                if let Some(Node::File { data, .. }) = node
                    && let HostKind::Plain(content) = &data.kind
                {
                    missing.plain.push(content);
                }
            }
            FileSource::Database { component, path } => {
                let missing = by_component.entry(component).or_default();
                missing.files += 1;
                let files = self.components.get(component).map(|found| &found.databases);
                let same = files.into_iter().flatten().filter(|file| file.path == *path);
                missing.plain.extend(same.map(|file| &file.content));
            }
            FileSource::Archive { archives, arch } => {
                let set = self.archives.iter().find(|set| set.name == *archives);
                for (id, binary) in set.iter().flat_map(|set| &set.binaries) {
                    let kernels = self.components.get(id).map(|found| &found.kernels);
                    let own = kernels
                        .into_iter()
                        .flatten()
                        .filter(|kernel| kernel.binary == *binary && kernel.target.base() == arch);
                    let missing = by_component.entry(id).or_default();
                    missing.kernels.extend(own.map(|kernel| &kernel.content));
                }
            }
            FileSource::Manifest { .. } | FileSource::Text(_) | FileSource::Changelog(_) => {}
        }
    }
}
