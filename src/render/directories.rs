//! Artifact directories that were written, for people and as JSON.

use serde::Serialize;

use super::table::{Align, Table};
use super::units::bytes;
use crate::directories::{SplitReport, Written};
use crate::error::Error;
use crate::report::{Finding, Findings, Severity};

/// What `split` and `recombine` print as JSON.
#[derive(Debug, Serialize)]
pub struct DirectoriesReport<'a> {
    artifacts: &'a [Written],
    findings: Vec<FindingRecord<'a>>,
    failures: Vec<FailureRecord<'a>>,
}

#[derive(Debug, Serialize)]
struct FindingRecord<'a> {
    name: &'static str,
    severity: Severity,
    #[serde(flatten)]
    finding: &'a Finding,
}

#[derive(Debug, Serialize)]
struct FailureRecord<'a> {
    component: &'a str,
    error: String,
}

impl<'a> DirectoriesReport<'a> {
    /// The result of joining shards.
    pub fn new(artifacts: &'a [Written], findings: &'a Findings) -> Self {
        let record = |finding: &'a Finding| FindingRecord {
            name: finding.code.name(),
            severity: finding.code.severity(),
            finding,
        };
        Self { artifacts, findings: findings.iter().map(record).collect(), failures: Vec::new() }
    }

    /// The result of taking artifacts apart.
    pub fn of_split(report: &'a SplitReport) -> Self {
        let record = |(component, error): &'a (String, Error)| FailureRecord {
            component,
            error: error.to_string(),
        };
        let failures = report.failures.iter().map(record).collect();
        Self { failures, ..Self::new(&report.artifacts, &report.findings) }
    }
}

/// Artifacts as a table, then every finding.
pub fn directories_text(artifacts: &[Written], findings: &Findings) -> String {
    let mut table =
        Table::new(&[("artifact", Align::Left), ("files", Align::Right), ("size", Align::Right)]);
    for written in artifacts {
        let shard = written.shard.iter().map(|shard| format!("{shard}/"));
        let name: String = shard.chain([written.artifact.clone()]).collect();
        table.row([name, written.files.to_string(), bytes(written.bytes)]);
    }
    let mut text = table.render();
    for finding in findings.iter() {
        let severity = match finding.code.severity() {
            Severity::Note => "note",
            Severity::Warning => "warning",
        };
        text.push_str(&format!("{severity}: {finding}\n"));
    }
    text
}
