//! Written artifact directories, for people and as JSON.

use rockpack_core::error::Error;
use serde::Serialize;
use serde_json::Value;

use super::table::TextTable;
use super::units::bytes;
use rockpack_emit::directories::{RecombineReport, SplitReport, WrittenArtifact};
use rockpack_report::Findings;

/// The JSON output of `split` and `recombine`.
#[derive(Debug, Serialize)]
pub struct DirectoriesReport<'a> {
    artifacts: &'a [WrittenArtifact],
    /// The removed artifacts of the same components from an earlier run, with their shard's folder if any.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    removed: &'a [String],
    findings: &'a Findings,
    failures: Vec<FailureRecord<'a>>,
}

#[derive(Debug, Serialize)]
struct FailureRecord<'a> {
    component: &'a str,
    error: String,
    /// The further faults, each with its context.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<String>,
    /// The findings before the component failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Value>,
}

impl<'a> DirectoriesReport<'a> {
    /// The result of joining shards.
    pub fn of_recombine(report: &'a RecombineReport) -> Self {
        let RecombineReport { artifacts, removed, findings } = report;
        Self { artifacts, removed, findings, failures: Vec::new() }
    }

    /// The result of splitting artifacts.
    pub fn of_split(report: &'a SplitReport) -> Self {
        let SplitReport { artifacts, removed, findings, failures } = report;
        let records = failures.iter().map(|(component, error)| FailureRecord {
            component,
            error: error.in_full(),
            others: error.flattened().skip(1).map(Error::in_full).collect(),
            findings: remarks(error),
        });
        Self { artifacts, removed, findings, failures: records.collect() }
    }
}

/// The findings that an error carries.
fn remarks(error: &Error) -> Vec<Value> {
    let remarks = error.remarks().into_iter();
    remarks.filter_map(|remark| serde_json::from_str(&remark.json).ok()).collect()
}

/// Artifacts as a table, then those of an earlier run that were removed.
pub fn directories_text(artifacts: &[WrittenArtifact], removed: &[String]) -> String {
    let mut table = TextTable::new(["artifact", ">files", ">size"]);
    for written in artifacts {
        let shard = written.shard.iter().map(|shard| format!("{shard}/"));
        let name: String = shard.chain([written.artifact.clone()]).collect();
        table.row([name, written.files.to_string(), bytes(written.bytes)]);
    }
    let mut text = table.render();
    text.extend(removed.iter().map(|name| text_line!("removed {name} of an earlier run")));
    text
}
