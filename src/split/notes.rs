//! Findings about the files of one artifact.

use crate::input::artifact::Artifact;
use crate::report::{Finding, Findings, InputArtifact, InputFile};
use crate::tree::TreePath;

/// Collects the findings of one artifact.
pub(super) struct Notes {
    artifact: InputArtifact,
    findings: Findings,
}

impl Notes {
    /// Starts with what the scan found.
    pub fn new(artifact: &Artifact) -> Self {
        Self {
            artifact: InputArtifact::new(&artifact.shard, &artifact.name),
            findings: artifact.findings.clone(),
        }
    }

    /// The shard of the artifact.
    pub fn shard(&self) -> &str {
        &self.artifact.shard
    }

    /// Its file at `path`, for findings about it.
    pub fn file(&self, path: &TreePath) -> InputFile {
        self.artifact.file(path)
    }

    /// Notes something.
    pub fn add(&mut self, finding: Finding) {
        self.findings.add(finding);
    }

    /// All of them, in order.
    pub fn finish(mut self) -> Findings {
        self.findings.sort();
        self.findings
    }
}
