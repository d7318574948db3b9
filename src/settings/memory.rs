//! The memory that a command may use.

use clap::Args;
use rockpack_core::error::Result;
use rockpack_core::run::{Budget, BuildNeeds, Limits, parse_size, threads};

/// The memory option, shared by all commands with large outputs.
#[derive(Debug, Default, Args)]
pub struct MemoryArguments {
    /// Memory limit, e.g. 4G [default: a quarter of the machine's]
    ///
    /// The output does not depend on it. With less memory there are fewer threads, and larger anonymous
    /// temporary files beside the output
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<u64>,
}

impl MemoryArguments {
    /// The limits of a build with these needs.
    pub(super) fn of_build(&self, needs: BuildNeeds) -> Result<Limits> {
        Limits::of_build(self.memory, needs)
    }

    /// The budget of a command that compresses no payloads.
    pub fn budget(&self) -> Budget {
        Budget::new(Limits::of_reader(self.memory, threads::count()))
    }
}
