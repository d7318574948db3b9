//! Progress of long stages, reported to a listener, and the time and bytes that a run took.

use derive_more::Display;
use rockpack_core::named_enum;
use rockpack_core::package_format::Format;
use serde::Serialize;

use super::Finding;

named_enum! {
    /// A stage that takes long enough to be shown.
    pub enum Stage {
        /// Artifacts are fetched from addresses.
        Fetch = "fetch",
        /// Artifacts are read and taken apart.
        Split = "split",
        /// Packages are planned. No bytes are counted.
        Plan = "plan",
        /// Code objects are compressed into archives.
        Pack = "pack",
        /// Packages are written.
        Emit = "emit",
        /// Packages are synced to disk and digested.
        Seal = "seal",
        /// Finished packages are read back.
        Verify = "verify",
        /// Packages are read for the indexes of a repository.
        Index = "index",
    }
}

/// A kind of compression work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Display)]
#[display(rename_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// Code objects, each compressed alone for kernel archives.
    Kernels,
    /// Payloads of packages in a format.
    #[serde(untagged)]
    Payloads(Format),
}

/// The result of compressing one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compressed {
    /// Bytes before compression.
    pub before: u64,
    /// Bytes after compression.
    pub after: u64,
    /// Whether it came from the cache.
    pub reused: bool,
}

/// A listener for progress. Several threads call it. Methods do nothing by default.
#[allow(unused_variables, reason = "the defaults take what implementations are told")]
pub trait Progress: Sync + Send {
    /// The stage has `bytes` more to process than reported so far.
    fn expect(&self, stage: Stage, bytes: u64) {}
    /// A worker begins work at the stage. Several may do so, and a stage may begin again.
    fn begin(&self, stage: Stage) {}
    /// The stage processed `bytes` more.
    fn advance(&self, stage: Stage, bytes: u64) {}
    /// A worker ends its work at the stage.
    fn end(&self, stage: Stage) {}
    /// Something was compressed, or taken from the cache.
    fn compressed(&self, work: Work, compressed: Compressed) {}
    /// A package is complete; `name` is its file name and `bytes` its size.
    fn package(&self, name: &str, bytes: u64) {}
    /// A fault that does not change the result, and so is not in it.
    fn warn(&self, finding: &Finding) {}
    /// A decision that the person who started the run should know.
    fn note(&self, text: &str) {}
}

/// A listener that ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}

/// The cost of a run. It depends on the machine and its load, so it is in no result.
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
