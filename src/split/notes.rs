//! Findings about the files of one artifact, and digests for them.

use sha2::{Digest, Sha256};

use crate::artifact::Artifact;
use crate::content::{Content, WINDOW};
use crate::error::Result;
use crate::report::{Code, Finding, Findings};
use crate::tree::TreePath;

/// Collects the findings of one artifact.
pub(super) struct Notes {
    artifact: String,
    findings: Findings,
}

impl Notes {
    /// Starts with what the scan found.
    pub fn new(artifact: &Artifact) -> Self {
        Self {
            artifact: format!("{}/{}", artifact.shard, artifact.name),
            findings: artifact.findings.clone(),
        }
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

/// The SHA-256 of `content` in hex.
pub(super) fn sha256(content: &Content) -> Result<String> {
    let mut digest = Sha256::new();
    let mut reader = content.reader();
    let mut window = vec![0; WINDOW];
    loop {
        match reader.read_window(&mut window)? {
            0 => break,
            len => digest.update(&window[..len]),
        }
    }
    let digest = digest.finalize();
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whether two contents are the same bytes.
pub(super) fn same_bytes(a: &Content, b: &Content) -> Result<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    let (mut a, mut b) = (a.reader(), b.reader());
    let (mut left, mut right) = (vec![0; WINDOW], vec![0; WINDOW]);
    loop {
        let len = a.read_window(&mut left)?;
        let same = b.read_window(&mut right)? == len && left[..len] == right[..len];
        if !same || len == 0 {
            return Ok(same);
        }
    }
}
