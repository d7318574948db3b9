//! Findings about the files of one artifact.

use std::collections::BTreeMap;

use rockpack_core::tree::TreePath;

use crate::input::artifact::Artifact;
use rockpack_report::{ElfMachine, Finding, Findings, InputArtifact, InputFile};

/// Collects the findings of one artifact.
pub(super) struct Notes {
    artifact: InputArtifact,
    findings: Findings,
    /// Files for other machines that are allowed, by machine.
    other_machines: BTreeMap<ElfMachine, Vec<TreePath>>,
}

impl Notes {
    /// Starts with the findings of the scan.
    pub fn new(artifact: &Artifact) -> Self {
        Self {
            artifact: InputArtifact::new(&artifact.shard, &artifact.name),
            findings: artifact.findings.clone(),
            other_machines: BTreeMap::new(),
        }
    }

    /// Continues with the `findings` of an artifact.
    pub fn resumed(artifact: InputArtifact, findings: Findings) -> Self {
        Self { artifact, findings, other_machines: BTreeMap::new() }
    }

    /// The shard of the artifact.
    pub fn shard(&self) -> &str {
        &self.artifact.shard
    }

    /// Names the artifact's file at `path` in findings.
    pub fn file(&self, path: &TreePath) -> InputFile {
        self.artifact.file(path)
    }

    /// Adds a finding.
    pub fn add(&mut self, finding: Finding) {
        self.findings.add(finding);
    }

    /// Notes that the file at `path` is for `machine` and allowed.
    pub fn other_machine(&mut self, machine: ElfMachine, path: &TreePath) {
        self.other_machines.entry(machine).or_default().push(path.clone());
    }

    /// Returns all findings, in order.
    pub fn finish(mut self) -> Findings {
        for (machine, files) in std::mem::take(&mut self.other_machines) {
            let artifact = self.artifact.clone();
            self.findings.add(Finding::OtherMachineAllowed { artifact, machine, files });
        }
        self.findings.sort();
        self.findings
    }
}
