//! Options of the commands that write artifacts.

use clap::Args;

use crate::report::Findings;
use crate::settings::MemoryArguments;

/// What such a command may take, and what it prints.
#[derive(Debug, Default, Args)]
pub(super) struct WrittenArguments {
    #[command(flatten)]
    pub memory: MemoryArguments,
    /// Print every finding, not warnings only
    #[arg(long)]
    verbose: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

impl WrittenArguments {
    /// The findings that are printed as text.
    pub fn shown(&self, findings: &Findings) -> Findings {
        if self.verbose { findings.clone() } else { findings.warnings() }
    }
}
