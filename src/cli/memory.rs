//! How much memory a command takes.

use clap::Args;

use crate::error::Result;
use crate::run::{Budget, shares, threads};

/// The budget of commands that write artifacts.
#[derive(Debug, Default, Args)]
pub(super) struct MemoryArguments {
    /// Memory to keep to, e.g. 4G; the artifacts do not depend on it. With less there are fewer
    /// threads, and more in nameless files beside the output [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = shares::parse_size)]
    memory: Option<u64>,
}

impl MemoryArguments {
    /// Does `work` within the budget, with its threads.
    pub fn within<T: Send>(&self, work: impl FnOnce(Budget) -> Result<T> + Send) -> Result<T> {
        let budget = Budget::new(shares::of_reader(self.memory, threads::count())?);
        threads::with(budget.threads(), || work(budget))
    }
}

/// The budget of commands without an option for it.
pub(super) fn by_default() -> Budget {
    Budget::new(shares::by_default())
}
