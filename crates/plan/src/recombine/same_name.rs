//! Compares the host files of packed artifacts that have the same name in several shards.
//!
//! Archives with the same SHA-256 are not compared. Artifacts in folders are not compared either: every run on
//! several shards would have to read all host files. Other findings report differences in device code and kernel
//! databases.

use std::collections::BTreeMap;

use rayon::prelude::*;
use rockpack_core::error::Result;
use rockpack_core::tree::{Node, TreePath};

use super::ComponentSources;
use super::host::{Compare, Verdict, label, verdict};
use crate::config::Config;
use rockpack_report::{DifferentFile, HostDifference, found};
use rockpack_split::{HostFile, SplitArtifact};

/// Number of files that a finding names. Once this many files differ, no further content is read.
const EXAMPLES: usize = 3;

/// Compares each packed artifact with the first of its name. Skips artifacts whose host files had to match.
pub(super) fn different_artifacts(
    sources: &ComponentSources,
    config: &Config,
) -> Result<Vec<found::ArtifactsDiffer>> {
    let (mut firsts, mut pairs) = (BTreeMap::new(), Vec::new());
    for part in sources.all().filter(|part| part.sha256.is_some()) {
        let first = *firsts.entry(&part.name).or_insert(part);
        let validation = config.validation_of(&part.name.name, part.name.kind);
        if first.sha256 != part.sha256 && !validation.verify_generic_artifacts_match {
            pairs.push([first, part]);
        }
    }
    let found: Vec<_> = pairs.par_iter().map(difference).collect::<Result<_>>()?;
    Ok(found.into_iter().flatten().collect())
}

/// Compares the host files of two artifacts: first the files that need no reading, then the shortest.
fn difference(&[first, other]: &[&SplitArtifact; 2]) -> Result<Option<found::ArtifactsDiffer>> {
    let is_compared = |(path, node): &(&TreePath, &Node<HostFile>)| {
        let is_shared = first.shared.contains_key(*path) || other.shared.contains_key(*path);
        !is_shared && !matches!(node, Node::Directory { .. })
    };
    let (mut pairs, mut unpaired) = (Vec::new(), Vec::new());
    for (path, node) in first.host.iter().filter(is_compared) {
        match other.host.get(path) {
            Some(twin) => pairs.push((bytes_to_read(node, twin), path, node, twin)),
            None => unpaired.push((path, first)),
        }
    }
    let of_other = other.host.iter().filter(is_compared).map(|(path, _)| (path, other));
    unpaired.extend(of_other.filter(|(path, _)| first.host.get(path).is_none()));
    pairs.sort_by_key(|(bytes, path, ..)| (*bytes, *path));
    let [other, first] = [other, first].map(label);
    let (different, examples) = (unpaired.len(), Vec::new());
    let mut found = found::ArtifactsDiffer { other, first, different, not_compared: 0, examples };
    for (bytes, path, node, twin) in pairs {
        if bytes > 0 && found.different >= EXAMPLES {
            found.not_compared += 1;
        } else if let Verdict::OtherKind(difference) | Verdict::Differ(difference) =
            verdict(node, twin, Compare::Plain)?
        {
            found.different += 1;
            found.examples.push(DifferentFile { path: path.clone(), difference });
        }
    }
    found.examples.extend(unpaired.into_iter().map(|(path, part)| {
        let difference = HostDifference::OnlyIn(part.shard.clone());
        DifferentFile { path: path.clone(), difference }
    }));
    found.examples.truncate(EXAMPLES);
    Ok((found.different > 0).then_some(found))
}

/// The number of bytes to read from each of two files: 0 unless they have the same size and no device code.
fn bytes_to_read(one: &Node<HostFile>, other: &Node<HostFile>) -> u64 {
    match [one, other].map(|node| Some(node.data()?.plain()?.len())) {
        [Some(size), Some(other)] if size == other => size,
        _ => 0,
    }
}

#[cfg(test)]
#[path = "same_name_tests.rs"]
mod tests;
