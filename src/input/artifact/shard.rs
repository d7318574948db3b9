//! Shards and their artifacts, as they were read.

use std::path::PathBuf;

use rockpack_base::content::{Content, Inputs};
use rockpack_base::error::Result;
use rockpack_base::tree::{ArtifactName, Node, Tree};

use crate::report::Findings;

/// What lies in the folders that a build was given.
#[derive(Debug)]
pub struct Scan {
    /// The shards in name order.
    pub shards: Vec<Shard>,
    /// Every file, folder and link that was read, to be checked again at the end of the run.
    pub inputs: Inputs,
    /// What was noticed.
    pub findings: Findings,
}

impl Scan {
    /// `result`; an error gets what was noticed in the scan and in its artifacts.
    pub fn explain<T>(&self, result: Result<T>) -> Result<T> {
        let artifacts = self.shards.iter().flat_map(|shard| &shard.artifacts);
        let own = self.findings.explain(result);
        artifacts.fold(own, |result, artifact| artifact.findings.explain(result))
    }
}

/// The artifacts of one build job.
#[derive(Debug)]
pub struct Shard {
    /// The folder's name.
    pub name: String,
    /// In name order.
    pub artifacts: Vec<Artifact>,
}

/// One artifact.
#[derive(Debug)]
pub struct Artifact {
    /// The shard it belongs to.
    pub shard: String,
    /// What it is called.
    pub name: ArtifactName,
    /// Its folder, or the file that it is packed in.
    pub root: PathBuf,
    /// SHA-256 of that file; none of a folder.
    pub sha256: Option<[u8; 32]>,
    /// The stage prefixes that exist, in path order.
    pub prefixes: Vec<StagePrefix>,
    /// What was noticed.
    pub findings: Findings,
}

impl Artifact {
    /// Bytes of all its files.
    pub fn bytes(&self) -> u64 {
        let nodes = self.prefixes.iter().flat_map(|prefix| prefix.tree.iter());
        let sizes = nodes.map(|(_, node)| match node {
            Node::File { data, .. } => data.len(),
            Node::Directory { .. } | Node::Link { .. } => 0,
        });
        sizes.sum()
    }
}

/// One stage prefix.
#[derive(Debug)]
pub struct StagePrefix {
    /// As the manifest writes it, e.g. `math-libs/BLAS/rocBLAS/stage`.
    pub path: String,
    /// The path component before `stage`, e.g. `rocBLAS`.
    pub module: Option<String>,
    /// What is below.
    pub tree: Tree<Content>,
}
