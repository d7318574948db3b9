//! Options of the commands that write artifacts.

use clap::Args;

use crate::settings::MemoryArguments;

/// What such a command may take, and what it prints.
#[derive(Debug, Default, Args)]
pub(super) struct WrittenArguments {
    #[command(flatten)]
    pub memory: MemoryArguments,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}
