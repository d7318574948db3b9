//! Where the time and the bytes of a run went. It depends on the machine and the hour, so it is in
//! no result.

use serde::Serialize;

use super::{Stage, Work};

/// What a run took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// From its beginning on.
    pub seconds: f64,
    /// Of the processor, over all cores; none where the system does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// The most memory in bytes that it had at a time; none where the system does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// The stages that there were, in order. Some run at the same time.
    pub stages: Vec<StageSummary>,
    /// What was compressed.
    pub compressed: Vec<WorkSummary>,
    /// Package files written.
    pub packages: u64,
    /// Their bytes.
    pub package_bytes: u64,
}

/// What a stage took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageSummary {
    /// Which.
    pub stage: Stage,
    /// While somebody worked at it.
    pub seconds: f64,
    /// Bytes that it went through.
    pub bytes: u64,
}

/// What was compressed of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkSummary {
    /// Which.
    pub work: Work,
    /// By this run.
    pub made: Sum,
    /// Found in the cache.
    pub reused: Sum,
}

/// A number of things that were compressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Sum {
    /// How many.
    pub count: u64,
    /// Their bytes before.
    pub before: u64,
    /// Their bytes after.
    pub after: u64,
}
