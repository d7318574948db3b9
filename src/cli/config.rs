//! `rockpack config`: the settings of a build, and the schema of configurations.

use clap::{Args, Subcommand};
use rockpack_core::error::Result;

use super::Outcome;
use super::progress::Terminal;
use crate::cli::render;
use crate::settings::{self, BuildArguments, Environment, GivenOptions};

/// Show the settings of a build, or the schema of packaging configurations.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    Show(Box<ShowArguments>),
    /// Print the JSON Schema of packaging configurations, for editors and checks
    Schema,
}

/// Show every setting that `build` or `plan` would have with the same options, and where its value comes
/// from: an option, a place in the configuration, a variable, the naming scheme, the artifacts, or a default.
///
/// Refuses everything that `build` refuses before it reads input. Neither --artifacts nor --out is needed.
#[derive(Debug, Args)]
#[command(mut_arg("artifacts", |argument| argument.required(false)))]
#[command(mut_arg("out", |argument| argument.required(false)))]
struct ShowArguments {
    #[command(flatten)]
    build: BuildArguments,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(
    arguments: Arguments,
    given: &GivenOptions,
    terminal: &Terminal,
) -> Result<Outcome> {
    match arguments.command {
        ConfigCommand::Schema => terminal.print_json(&settings::schema())?,
        ConfigCommand::Show(arguments) => {
            let shown = arguments.build.show(given, &Environment::of_process())?;
            terminal.print_result(arguments.json, &shown, || render::settings_text(&shown))?
        }
    }
    Ok(Outcome::Done)
}
