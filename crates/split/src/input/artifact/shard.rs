//! Shards and their artifacts after reading.

use std::path::PathBuf;

use rockpack_core::content::{Content, Inputs};
use rockpack_core::error::Result;
use rockpack_core::tree::{ArtifactName, Node, Tree};

use rockpack_report::Findings;

/// The content of the folders given to a build.
#[derive(Debug)]
pub struct Scan {
    /// The shards in name order.
    pub shards: Vec<Shard>,
    /// Every file, folder and link that was read, for the check at the end of the run.
    pub inputs: Inputs,
    /// The findings of the scan.
    pub findings: Findings,
}

impl Scan {
    /// Returns `result`; an error gets the findings of the scan and of its artifacts.
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
    /// The artifacts in name order.
    pub artifacts: Vec<Artifact>,
}

/// One artifact.
#[derive(Debug)]
pub struct Artifact {
    /// The shard it belongs to.
    pub shard: String,
    /// The name of the artifact.
    pub name: ArtifactName,
    /// The folder of the artifact, or its archive.
    pub root: PathBuf,
    /// The SHA-256 of the archive; `None` for a folder.
    pub sha256: Option<[u8; 32]>,
    /// The stage prefixes that exist, in path order.
    pub prefixes: Vec<StagePrefix>,
    /// The findings of the artifact.
    pub findings: Findings,
}

impl Artifact {
    /// The bytes of all its files.
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
    /// The path in the manifest, e.g. `math-libs/BLAS/rocBLAS/stage`.
    pub path: String,
    /// The path component before `stage`, e.g. `rocBLAS`.
    pub module: Option<String>,
    /// The files below the prefix.
    pub tree: Tree<Content>,
}
