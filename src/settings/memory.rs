//! How much memory a command takes.

use clap::Args;
use rockpack_base::error::Result;
use rockpack_base::run::{Budget, BuildNeeds, Limits, parse_size, threads};

/// The option of every command that writes much.
#[derive(Debug, Default, Args)]
pub struct MemoryArguments {
    /// Memory to keep to, e.g. 4G [default: a quarter of the machine's]
    ///
    /// What is written does not depend on it. With less there are fewer threads, and more in
    /// anonymous temporary files beside the output
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<u64>,
}

impl MemoryArguments {
    /// What a build that needs this much may take.
    pub(super) fn of_build(&self, needs: BuildNeeds) -> Result<Limits> {
        Limits::of_build(self.memory, needs)
    }

    /// The budget of a command that compresses no payloads.
    pub fn budget(&self) -> Budget {
        Budget::new(Limits::of_reader(self.memory, threads::count()))
    }
}
