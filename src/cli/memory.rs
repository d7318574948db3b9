//! How much memory a command takes.

use clap::Args;

use crate::content;
use crate::error::Result;
use crate::policy::{self, ReaderShares};
use crate::{records, threads};

/// The budget of commands that write artifacts.
#[derive(Debug, Default, Args)]
pub(super) struct MemoryArguments {
    /// Memory to keep to, e.g. 4G; the artifacts do not depend on it. With less there are fewer
    /// threads, and more in nameless files beside the output [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = policy::parse_size)]
    memory: Option<u64>,
}

impl MemoryArguments {
    /// Does `work` within the budget. It is told how many bytes of compressed code objects it may
    /// hold.
    pub fn within<T: Send>(&self, work: impl FnOnce(u64) -> Result<T> + Send) -> Result<T> {
        let ReaderShares { frames, records, held, threads } = policy::reader_shares(self.memory)?;
        let cores = threads::count();
        let threads = cores.min(threads);
        content::limit_held(held);
        let _limited = records::limit(records, held, threads);
        threads::with(threads, || work(frames))
    }
}

/// The limit of what is held by commands without a budget of their own: that of a quarter of the
/// machine's memory. Where the system does not say how much that is, each stream has its limit.
pub(super) fn limit_by_default() {
    if let Ok(shares) = policy::reader_shares(None) {
        content::limit_held(shares.held);
    }
}
