//! Progress of long stages, told to whoever listens.

use rockpack_base::formats::package_file::Format;
use serde::Serialize;

use super::Finding;

/// A stage that takes long enough to be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Artifacts are read and taken apart.
    Split,
    /// Packages are decided. It goes through no bytes worth counting.
    Plan,
    /// Code objects are compressed into archives.
    Pack,
    /// Packages are written.
    Emit,
    /// Packages are brought to disk and digested.
    Seal,
    /// Finished packages are read back.
    Verify,
    /// Packages are read for the indexes of a repository.
    Index,
}

impl Stage {
    /// As summaries and logs write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::Plan => "plan",
            Self::Pack => "pack",
            Self::Emit => "emit",
            Self::Seal => "seal",
            Self::Verify => "verify",
            Self::Index => "index",
        }
    }
}

/// What is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// Code objects, each by itself, into kernel archives.
    Kernels,
    /// Payloads of packages of a format.
    #[serde(untagged)]
    Payloads(Format),
}

impl Work {
    /// As summaries write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kernels => "kernels",
            Self::Payloads(format) => format.as_str(),
        }
    }
}

/// Something that is compressed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compressed {
    /// Bytes before.
    pub before: u64,
    /// Bytes after.
    pub after: u64,
    /// Whether it was found in the cache.
    pub reused: bool,
}

/// A listener; calls come from several threads. One that a listener leaves out does nothing.
#[allow(unused_variables, reason = "the defaults take what implementations are told")]
pub trait Progress: Sync + Send {
    /// The stage will go through `bytes` more than was said so far.
    fn expect(&self, stage: Stage, bytes: u64) {}
    /// Somebody begins to work at the stage. Several may, and it may begin again.
    fn begin(&self, stage: Stage) {}
    /// The stage went through `bytes` more.
    fn advance(&self, stage: Stage, bytes: u64) {}
    /// Somebody who began is done.
    fn end(&self, stage: Stage) {}
    /// Something is compressed, or need not be.
    fn compressed(&self, work: Work, compressed: Compressed) {}
    /// One package is whole (its file name and size in bytes).
    fn package(&self, name: &str, bytes: u64) {}
    /// Something went wrong that changes nothing about the result, and so is in no result.
    fn warn(&self, finding: &Finding) {}
    /// Something was decided that whoever started the run should know.
    fn note(&self, text: &str) {}
}

/// Listens to nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}
