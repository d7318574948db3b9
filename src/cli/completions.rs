//! `rockpack completions`: the scripts with which shells complete commands and options.

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use rockpack_core::error::{Error, Result};

use super::Outcome;
use super::progress::Terminal;

/// Print the completions for a shell: `rockpack completions bash` goes to
/// /usr/share/bash-completion/completions/rockpack, zsh to _rockpack in a folder of $fpath, and fish
/// to ~/.config/fish/completions/rockpack.fish.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(super) fn run(arguments: &Arguments, terminal: &Terminal) -> Result<Outcome> {
    let mut command = super::Arguments::command();
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "rockpack", &mut script);
    let script =
        String::from_utf8(script).map_err(|e| Error::bug("completions are no UTF-8").cause(e))?;
    terminal.print(&script)?;
    Ok(Outcome::Done)
}
