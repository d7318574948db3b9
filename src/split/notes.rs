//! Findings about the files of one artifact.

use crate::artifact::Artifact;
use crate::report::{Code, Finding, Findings};
use crate::tree::TreePath;

/// Collects the findings of one artifact.
pub(super) struct Notes {
    shard: String,
    artifact: String,
    findings: Findings,
}

impl Notes {
    /// Starts with what the scan found.
    pub fn new(artifact: &Artifact) -> Self {
        Self {
            shard: artifact.shard.clone(),
            artifact: format!("{}/{}", artifact.shard, artifact.name),
            findings: artifact.findings.clone(),
        }
    }

    /// The shard of the artifact.
    pub fn shard(&self) -> &str {
        &self.shard
    }

    /// What a finding about `path` is about.
    pub fn subject(&self, path: &TreePath) -> String {
        format!("{}/{path}", self.artifact)
    }

    /// Notes something about `path`.
    pub fn add(&mut self, code: Code, path: &TreePath, message: impl Into<String>) {
        self.findings.add(Finding::new(code, self.subject(path), message));
    }

    /// Notes something about `path` that accounts for `code_objects`.
    pub fn account(
        &mut self,
        code: Code,
        path: &TreePath,
        message: impl Into<String>,
        code_objects: Vec<String>,
    ) {
        let mut finding = Finding::new(code, self.subject(path), message);
        finding.code_objects = code_objects;
        self.findings.add(finding);
    }

    /// All of them, in order.
    pub fn finish(mut self) -> Findings {
        self.findings.sort();
        self.findings
    }
}
