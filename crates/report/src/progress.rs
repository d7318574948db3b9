//! Progress of long stages, reported to a listener, and the resources that a run used.

use derive_more::Display;
use rockpack_core::named_enum;
use rockpack_core::package_format::Format;
use serde::Serialize;

use super::Finding;

named_enum! {
    /// A stage that takes long enough to be shown.
    pub enum Stage {
        /// Artifacts are downloaded.
        Fetch = "fetch",
        Split = "split",
        /// No bytes are counted.
        Plan = "plan",
        /// Code objects are compressed into archives.
        Pack = "pack",
        Emit = "emit",
        /// Packages are synced to disk and digested.
        Seal = "seal",
        Verify = "verify",
        /// Packages are read for the indexes of a repository.
        Index = "index",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Display)]
#[display(rename_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// Code objects, each compressed alone for kernel archives.
    Kernels,
    /// Payloads of packages.
    #[serde(untagged)]
    Payloads(Format),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compressed {
    /// Bytes before compression.
    pub before: u64,
    /// Bytes after compression.
    pub after: u64,
    /// Whether the result came from the cache.
    pub reused: bool,
}

/// A listener for progress. Several threads call it. Methods do nothing by default.
#[allow(unused_variables, reason = "the default methods ignore their arguments")]
pub trait Progress: Sync + Send {
    /// Adds `bytes` to the total that the stage will process.
    fn expect(&self, stage: Stage, bytes: u64) {}
    /// A worker starts at the stage. Several may work at once, and a stage may start again.
    fn begin(&self, stage: Stage) {}
    /// The stage processed `bytes` more.
    fn advance(&self, stage: Stage, bytes: u64) {}
    /// A worker ends its work at the stage.
    fn end(&self, stage: Stage) {}
    /// A compressed result was made, or taken from the cache.
    fn compressed(&self, work: Work, compressed: Compressed) {}
    /// A package is complete; `name` is its file name.
    fn package(&self, name: &str, bytes: u64) {}
    /// Reports a fault that does not change the result and is not part of it.
    fn warn(&self, finding: &Finding) {}
    /// Reports a decision to the user.
    fn note(&self, text: &str) {}
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}

/// The resources that a run used. They depend on the machine and its load, so results do not contain them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    pub seconds: f64,
    /// CPU time in seconds, over all cores; `None` if the system does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// Peak memory in bytes; `None` if the system does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// In order of the stages, some of which run at the same time.
    pub stages: Vec<StageSummary>,
    pub compressed: Vec<WorkSummary>,
    /// Number of package files written.
    pub packages: u64,
    /// Size of all package files in bytes.
    pub package_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageSummary {
    pub stage: Stage,
    /// Seconds with at least one worker at the stage.
    pub seconds: f64,
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkSummary {
    pub work: Work,
    /// Work done by this run.
    pub made: Sum,
    /// Results found in the cache.
    pub reused: Sum,
}

/// Totals of compressed results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Sum {
    pub count: u64,
    /// Bytes before compression.
    pub before: u64,
    /// Bytes after compression.
    pub after: u64,
}
