//! The reading of an artifact's manifest and files, regardless of how they are stored.

use std::path::{Path, PathBuf};

use rockpack_core::content::Content;
use rockpack_core::error::{Faults, is_unseen};
use rockpack_core::tree::{ArtifactName, Node, Tree, TreePath};

use super::manifest::{ArtifactManifest, module_of};
use super::shard::{Artifact, StagePrefix};
use rockpack_report::{Finding, Findings, InputArtifact};

/// The files of an artifact. Problems with them are added to the faults.
pub(super) trait Contents {
    /// Reads the manifest.
    fn manifest(&mut self, faults: &mut Faults) -> Option<ArtifactManifest>;
    /// Reads the files below a stage prefix.
    fn prefix(&mut self, prefix: &TreePath, faults: &mut Faults) -> PrefixContent;
    /// The files outside all of `prefixes` except the manifest, by their paths, folder by folder.
    fn outside(&mut self, prefixes: &[TreePath], faults: &mut Faults) -> Vec<String>;
}

/// The content of a stage prefix.
pub(super) enum PrefixContent {
    Tree(Tree<Content>),
    Absent,
    /// The prefix exists; the faults say what is wrong with it.
    Faulty,
}

/// The name and place of an artifact.
pub(super) struct Whereabouts<'a> {
    pub shard: &'a str,
    pub name: ArtifactName,
    pub root: &'a Path,
}

/// Reads an artifact; `None` without a manifest.
pub(super) fn assemble(
    whereabouts: Whereabouts<'_>,
    contents: &mut dyn Contents,
    faults: &mut Faults,
) -> Option<Artifact> {
    let manifest = contents.manifest(faults)?;
    let mut artifact = Artifact {
        shard: whereabouts.shard.to_owned(),
        name: whereabouts.name,
        root: PathBuf::from(whereabouts.root),
        sha256: None,
        prefixes: Vec::new(),
        findings: Findings::default(),
    };
    let named = InputArtifact::new(&artifact.shard, &artifact.name);
    for path in &manifest.prefixes {
        match contents.prefix(path, faults) {
            PrefixContent::Tree(tree) => artifact.prefixes.push(StagePrefix {
                path: path.to_string(),
                module: module_of(path),
                tree,
            }),
            PrefixContent::Absent => {
                let (named, prefix) = (named.clone(), path.clone());
                artifact.findings.add(Finding::PrefixAbsent { artifact: named, prefix });
            }
            PrefixContent::Faulty => {}
        }
    }
    if artifact.prefixes.is_empty() {
        artifact.findings.add(Finding::ArtifactEmpty { artifact: named.clone() });
    }
    let unseen = unseen(&artifact.prefixes);
    if !unseen.is_empty() {
        artifact.findings.add(Finding::NamesUnseen { artifact: named.clone(), files: unseen });
    }
    let files = contents.outside(&manifest.prefixes, faults);
    if !files.is_empty() {
        artifact.findings.add(Finding::OutsidePrefixes { artifact: named, files });
    }
    Some(artifact)
}

/// The paths below `prefixes`, and the texts of links there, that have invisible characters.
fn unseen(prefixes: &[StagePrefix]) -> Vec<String> {
    let nodes = prefixes.iter().flat_map(|prefix| prefix.tree.iter());
    let odd = nodes.filter(|(path, node)| {
        let target = match node {
            Node::Link { target } => target.as_str(),
            Node::File { .. } | Node::Directory { .. } => "",
        };
        path.as_str().contains(is_unseen) || target.contains(is_unseen)
    });
    odd.map(|(path, _)| path.to_string()).collect()
}
