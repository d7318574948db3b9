//! The command line: arguments, wiring, progress bars, exit codes. One file per subcommand.
//!
//! The result goes to stdout, everything else to stderr: progress, findings, errors. Exit codes: 0 done, 1
//! done with failed checks or with requested differences, 2 failed, 64 refused because of the command line,
//! the environment or the configuration, 128 and the signal's number ended by a signal.

mod build;
mod completions;
mod config;
mod discover;
mod explain;
mod explained;
mod extract;
mod inspect;
mod man;
mod memory;
mod plan;
mod progress;
mod recombine;
pub mod render;
mod repo;
mod signals;
mod split;
mod terminal;
mod verify;
mod version;
mod wheel;

use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use rockpack_core::error::{Error, Result, printable};
use rockpack_core::run::waiting;

use crate::settings::GivenOptions;
use progress::{ShownArguments, Terminal};

/// Turns ROCm build artifacts into distribution packages: one host package and one kernel package
/// per architecture group, as .deb and .rpm.
#[derive(Debug, Parser)]
#[command(name = "rockpack", version, long_version = version::long(), max_term_width = 100)]
struct Arguments {
    #[command(flatten)]
    shown: ShownArguments,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Build(Box<build::Arguments>),
    Plan(Box<plan::Arguments>),
    Config(config::Arguments),
    Discover(discover::Arguments),
    Split(split::Arguments),
    Recombine(recombine::Arguments),
    Wheel(wheel::Arguments),
    Inspect(inspect::Arguments),
    Extract(extract::Arguments),
    Repo(Box<repo::Arguments>),
    Verify(verify::Arguments),
    Explain(explain::Arguments),
    Man(man::Arguments),
    Completions(completions::Arguments),
}

/// The end of a command without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    ChecksFailed,
}

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    let command = Arguments::command().color(terminal::colours_of_help(std::env::args_os()));
    let parsed = command.clone().try_get_matches().and_then(|matches| {
        Ok((Arguments::from_arg_matches(&matches)?, GivenOptions::of(&command, &matches)))
    });
    let (arguments, given) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return unparsed(&plain(error)),
    };
    let terminal = Arc::new(Terminal::new(&arguments.shown));
    let listener = Arc::clone(&terminal);
    // A silent wait looks like a hang, so --quiet does not hide it.
    waiting::listen(move |text| listener.say(text));
    let result = signals::watch(Arc::clone(&terminal))
        .and_then(|()| dispatch(arguments.command, &given, &terminal));
    terminal.close();
    match result {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::ChecksFailed) => ExitCode::from(1),
        Err(error) => match signals::ended() {
            // A failure after a signal is due to it: a write to a pipe, for example, whose reader got the
            // signal, too.
            Some((signal, code)) => {
                terminal.error(&signal);
                code
            }
            None => failed(&terminal, &error),
        },
    }
}

/// Shows the requested help or version, or the fault of the command line.
fn unparsed(said: &clap::Error) -> ExitCode {
    match (terminal::print_help(said), said.use_stderr()) {
        (_, true) => ExitCode::from(64),
        (Ok(()), false) => ExitCode::SUCCESS,
        (Err(error), false) => {
            terminal::print_error(&error, false);
            ExitCode::from(2)
        }
    }
}

/// The fault of the arguments, with them escaped as by [`printable`]: a glob of the shell may have put any
/// file name among them.
fn plain(error: clap::Error) -> clap::Error {
    let given: Vec<String> =
        std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    if given.iter().any(|argument| printable(argument) != argument.as_str()) {
        Arguments::try_parse_from(given.iter().map(|argument| printable(argument).into_owned()))
            .err()
            .unwrap_or(error)
    } else {
        error
    }
}

fn failed(terminal: &Terminal, error: &Error) -> ExitCode {
    terminal.error(error);
    ExitCode::from(if error.is_refusal() { 64 } else { 2 })
}

fn dispatch(command: Command, given: &GivenOptions, terminal: &Terminal) -> Result<Outcome> {
    match command {
        Command::Build(arguments) => build::run(*arguments, given, terminal),
        Command::Plan(arguments) => plan::run(*arguments, terminal),
        Command::Config(arguments) => config::run(arguments, given, terminal),
        Command::Discover(arguments) => discover::run(arguments, terminal),
        Command::Split(arguments) => split::run(arguments, terminal),
        Command::Recombine(arguments) => recombine::run(arguments, terminal),
        Command::Wheel(arguments) => wheel::run(arguments, terminal),
        Command::Inspect(arguments) => inspect::run(arguments, terminal),
        Command::Extract(arguments) => extract::run(arguments, terminal),
        Command::Repo(arguments) => repo::run(*arguments, terminal),
        Command::Verify(arguments) => verify::run(arguments, terminal),
        Command::Explain(arguments) => explain::run(&arguments, terminal),
        Command::Man(arguments) => man::run(&arguments, terminal),
        Command::Completions(arguments) => completions::run(&arguments, terminal),
    }
}
