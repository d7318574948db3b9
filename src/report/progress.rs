//! Progress of long stages, told to whoever listens.

use super::Finding;

/// A stage that takes long enough to be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Artifacts are read and taken apart.
    Split,
    /// Code objects are compressed into archives.
    Pack,
    /// Packages are written.
    Emit,
    /// Finished packages are read back.
    Verify,
    /// Packages are read for the indexes of a repository.
    Index,
}

/// A listener; calls come from several threads.
pub trait Progress: Sync + Send {
    /// A stage begins; `bytes` is the amount of input it will go through.
    fn begin(&self, stage: Stage, bytes: u64);
    /// The stage went through `bytes` more.
    fn advance(&self, stage: Stage, bytes: u64);
    /// The stage is done.
    fn end(&self, stage: Stage);
    /// One package is whole (its file name and size in bytes).
    fn package(&self, name: &str, bytes: u64);
    /// Something went wrong that changes nothing about the result, and so is in no result.
    fn warn(&self, finding: &Finding);
}

/// Listens to nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: Stage, _: u64) {}
    fn advance(&self, _: Stage, _: u64) {}
    fn end(&self, _: Stage) {}
    fn package(&self, _: &str, _: u64) {}
    fn warn(&self, _: &Finding) {}
}
