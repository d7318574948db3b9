//! The time and bytes that a run took. They depend on the machine and its load, so they are in no result.

use serde::Serialize;

use super::{Stage, Work};

/// The cost of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Seconds since the start.
    pub seconds: f64,
    /// CPU time in seconds, over all cores; `None` if the system does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// Peak memory in bytes; `None` if the system does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// The stages of the run, in order. Some run at the same time.
    pub stages: Vec<StageSummary>,
    /// The compression work.
    pub compressed: Vec<WorkSummary>,
    /// Number of package files written.
    pub packages: u64,
    /// Size of all package files in bytes.
    pub package_bytes: u64,
}

/// The cost of a stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageSummary {
    /// The stage.
    pub stage: Stage,
    /// Seconds with at least one worker at the stage.
    pub seconds: f64,
    /// Bytes processed.
    pub bytes: u64,
}

/// The compression work of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkSummary {
    /// The kind of work.
    pub work: Work,
    /// Work done by this run.
    pub made: Sum,
    /// Results found in the cache.
    pub reused: Sum,
}

/// A number of compressed things.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Sum {
    /// Number of things.
    pub count: u64,
    /// Bytes before compression.
    pub before: u64,
    /// Bytes after compression.
    pub after: u64,
}
