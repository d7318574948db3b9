//! Partners among the kernel database files of a component that was split already.
//!
//! `X.dat` may lie in the generic artifact and `X_gfx1100.co` in that of its arch. So partners can be checked
//! only across all artifacts of the component.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::error::{Error, Result};
use rockpack_core::tree::{Node, Tree, TreePath};

use super::alone::split;
use super::parts::{SplitArtifact, SplitPolicy};
use crate::input::artifact::{Artifact, StagePrefix};
use rockpack_report::{Finding, Findings};

/// Replaces the notes about partners by those about all artifacts `split_apart` of a shard's component.
pub(super) fn look_again(
    artifacts: &[&Artifact],
    split_apart: &mut [SplitArtifact],
    options: &SplitPolicy<'_>,
) -> Result<()> {
    let is_any_lonely = split_apart.iter().any(|part| part.findings.iter().any(is_about_partners));
    if split_apart.len() < 2 || !is_any_lonely {
        return Ok(());
    }
    let Some(joined) = joined(artifacts, split_apart)? else { return Ok(()) };
    // The join of artifacts refuses trees that cannot be merged.
    let together = match split(&joined, options) {
        Ok(together) => together,
        Err(error) if error.flattened().any(Error::is_of_reading) => return Err(error),
        Err(_) => return Ok(()),
    };
    for part in split_apart.iter_mut() {
        part.findings.retain(|finding| !is_about_partners(finding));
    }
    if let Some(first) = split_apart.first_mut() {
        for finding in together.findings.iter().filter(|f| is_about_partners(f)) {
            first.findings.add(finding.clone());
        }
    }
    Ok(())
}

fn is_about_partners(finding: &Finding) -> bool {
    matches!(finding, Finding::DatabaseUnpaired { .. } | Finding::DatabaseUnresolved { .. })
}

/// One artifact with the database files of all; `None` if there is no generic artifact to name it.
fn joined(artifacts: &[&Artifact], split_apart: &[SplitArtifact]) -> Result<Option<Artifact>> {
    let own: Vec<&&Artifact> = artifacts
        .iter()
        .filter(|a| split_apart.iter().any(|part| part.shard == a.shard && part.name == a.name))
        .collect();
    let Some(generic) = own.iter().find(|artifact| artifact.name.gpu_family == GENERIC) else {
        return Ok(None);
    };
    let wanted = database_paths(split_apart);
    let mut trees: BTreeMap<(&str, Option<&str>), Tree<_>> = BTreeMap::new();
    for prefix in own.iter().flat_map(|artifact| &artifact.prefixes) {
        let tree = trees.entry((&prefix.path, prefix.module.as_deref())).or_default();
        for (path, node) in &prefix.tree {
            let file = matches!(node, Node::File { .. });
            if file && wanted.contains(path) && tree.get(path).is_none() {
                tree.insert(path.clone(), node.clone())?;
            }
        }
    }
    let prefixes = trees.into_iter().map(|((path, module), tree)| StagePrefix {
        path: path.to_owned(),
        module: module.map(str::to_owned),
        tree,
    });
    Ok(Some(Artifact {
        shard: generic.shard.clone(),
        name: generic.name.clone(),
        root: generic.root.clone(),
        sha256: generic.sha256,
        prefixes: prefixes.collect(),
        findings: Findings::default(),
    }))
}

/// The family of artifacts with host files.
const GENERIC: &str = "generic";

/// Paths of files for one arch, and of those beside them.
fn database_paths(split_apart: &[SplitArtifact]) -> BTreeSet<&TreePath> {
    let databases = split_apart.iter().flat_map(|part| &part.databases);
    let mut wanted: BTreeSet<&TreePath> = databases.map(|file| &file.path).collect();
    let folders: BTreeSet<_> = wanted.iter().filter_map(|path| path.parent()).collect();
    for (path, node) in split_apart.iter().flat_map(|part| &part.host) {
        let beside = path.parent().is_some_and(|folder| folders.contains(&folder));
        let plain = node.data().is_some_and(|file| file.plain().is_some());
        if beside && plain {
            wanted.insert(path);
        }
    }
    wanted
}
