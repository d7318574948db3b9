//! The command line: arguments, dispatch, progress, exit codes. Each file has one subcommand, or a few related ones,
//! and renders their results.
//!
//! The result goes to stdout, everything else to stderr: progress, findings, errors. Exit codes: 0 done, 1 done but a
//! check failed or `plan --exit-code` found differences, 2 failed, 64 refused because of the command line, the
//! environment or the configuration, 128 + N ended by signal N.

#[macro_use]
mod render;

mod about;
mod build;
mod discover;
mod distro;
mod fetch;
mod gpu;
mod help;
mod inspect;
mod members;
mod plan;
mod progress;
mod repo;
mod report;
mod signals;
mod split;
mod terminal;
mod thin;
mod verify;

use std::process::ExitCode;
use std::sync::{Arc, LazyLock};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use rockpack_core::compression::LIBLZMA_SYS;
use rockpack_core::error::{Result, printable};
use rockpack_core::run::{Budget, Limits, waiting};

use crate::settings::{
    DiscoverArguments, GivenOptions, RecombineArguments, RepoArguments, SplitArguments,
    VerifyArguments, WheelArguments,
};
use progress::{DisplayArguments, Terminal};

pub use inspect::inspect_text;
pub use verify::verified;

/// Turns ROCm build artifacts into distribution packages: one host package and one kernel package
/// per architecture group, as .deb and .rpm.
#[derive(Debug, Parser)]
#[command(name = "rockpack", version, long_version = LONG_VERSION.as_str(), max_term_width = 100)]
struct Arguments {
    #[command(flatten)]
    shown: DisplayArguments,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Build(Box<build::Arguments>),
    Plan(Box<plan::Arguments>),
    Config(build::ConfigArguments),
    Discover(DiscoverArguments),
    Fetch(fetch::Arguments),
    Split(SplitArguments),
    Recombine(RecombineArguments),
    Wheel(WheelArguments),
    Distro(distro::Arguments),
    Inspect(inspect::Arguments),
    Extract(inspect::ExtractArguments),
    Verify(VerifyArguments),
    Report(report::Arguments),
    Repo(Box<RepoArguments>),
    Gpu(gpu::Arguments),
    Thin(thin::Arguments),
    Explain(about::ExplainArguments),
    Man(about::ManArguments),
    Completions(about::CompletionsArguments),
}

/// The end of a command without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    ChecksFailed,
}

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    let mut command = help::with_groups_and_examples(Arguments::command())
        .color(terminal::colours_of_help(std::env::args_os()));
    let parsed = command.try_get_matches_from_mut(std::env::args_os()).and_then(|matches| {
        Ok((Arguments::from_arg_matches(&matches)?, GivenOptions::of(&command, &matches)))
    });
    let (arguments, given) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return report_parse_error(&with_tip(escape_arguments(error))),
    };
    let terminal = Arc::new(Terminal::new(&arguments.shown));
    let listener = Arc::clone(&terminal);
    // A silent wait looks like a hang, so --quiet does not hide it.
    waiting::listen(move |text| listener.note_always(text));
    let result = signals::watch(Arc::clone(&terminal))
        .and_then(|()| dispatch(arguments.command, &given, &terminal));
    terminal.close();
    match result {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::ChecksFailed) => ExitCode::from(1),
        Err(error) => {
            let own = ExitCode::from(if error.is_refusal() { 64 } else { 2 });
            // After a signal, an error is usually its consequence, such as a write to a pipe whose reader was killed,
            // too.
            let (error, code) = signals::interruption().unwrap_or((error, own));
            terminal.error(&error);
            code
        }
    }
}

/// Prints the requested help or version, or the error in the command line.
fn report_parse_error(said: &clap::Error) -> ExitCode {
    match (terminal::print_help(said), said.use_stderr()) {
        (_, true) => ExitCode::from(64),
        (Ok(()), false) => ExitCode::SUCCESS,
        (Err(error), false) => {
            terminal::print_error(&error, false);
            ExitCode::from(2)
        }
    }
}

/// Escapes the arguments in a command line error as [`printable`] does: a shell glob may have inserted any file name.
fn escape_arguments(error: clap::Error) -> clap::Error {
    let given: Vec<String> =
        std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    if given.iter().all(|argument| printable(argument) == argument.as_str()) {
        return error;
    }
    let escaped = given.iter().map(|argument| printable(argument).into_owned());
    Arguments::try_parse_from(escaped).err().unwrap_or(error)
}

/// Commands and options that users of other tools try: the word, the commands that it is an option of, and the tip.
const TIPS: &[(&str, &[&str], &str)] = &[
    ("publish", &[], "`rockpack repo` publishes packages"),
    (
        "doctor",
        &[],
        "`rockpack verify --installed PREFIX` checks an installation, `rockpack gpu` this machine",
    ),
    ("--dry-run", &["build"], "`rockpack plan` shows what build would write"),
    ("--arch", &["build", "plan"], ARCHITECTURES),
    ("--gpu", &["build", "plan"], ARCHITECTURES),
    ("--gfx", &["build", "plan"], ARCHITECTURES),
];

const ARCHITECTURES: &str = "the key `architecture_groups` of the configuration selects architectures; \
                             `rockpack discover PATH --propose FILE` writes it";

/// Replaces clap's tip, a word of similar spelling, by that of [`TIPS`].
fn with_tip(mut error: clap::Error) -> clap::Error {
    let kind = match error.kind() {
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        _ => return error,
    };
    let Some(ContextValue::String(word)) = error.get(kind) else { return error };
    let is_given = |command: &&str| std::env::args_os().any(|argument| argument == *command);
    let tip = TIPS.iter().find(|(own, commands, _)| {
        *own == word && (commands.is_empty() || commands.iter().any(is_given))
    });
    if let Some((_, _, tip)) = tip {
        error.remove(ContextKind::SuggestedSubcommand);
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![(*tip).into()]));
    }
    error
}

fn dispatch(command: Command, given: &GivenOptions, terminal: &Terminal) -> Result<Outcome> {
    let done = |()| Outcome::Done;
    match command {
        Command::Build(arguments) => build::run(*arguments, given, terminal).map(done),
        Command::Plan(arguments) => plan::run(*arguments, terminal),
        Command::Config(arguments) => build::run_config(arguments, given, terminal).map(done),
        Command::Discover(arguments) => discover::run(arguments, terminal).map(done),
        Command::Fetch(arguments) => fetch::run(arguments, terminal).map(done),
        Command::Split(arguments) => split::split(arguments, terminal).map(done),
        Command::Recombine(arguments) => split::recombine(arguments, terminal).map(done),
        Command::Wheel(arguments) => split::wheel(arguments, terminal),
        Command::Thin(arguments) => thin::run(arguments, terminal).map(done),
        Command::Inspect(arguments) => inspect::run(arguments, terminal).map(done),
        Command::Extract(arguments) => inspect::run_extract(arguments, terminal).map(done),
        Command::Repo(arguments) => repo::run(*arguments, terminal),
        Command::Verify(arguments) => verify::run(arguments, terminal),
        Command::Report(arguments) => report::run(&arguments, terminal).map(done),
        Command::Distro(arguments) => distro::run(&arguments, terminal).map(done),
        Command::Gpu(arguments) => gpu::run(&arguments, terminal),
        Command::Explain(arguments) => about::explain(&arguments, terminal).map(done),
        Command::Man(arguments) => about::man(&arguments, terminal).map(done),
        Command::Completions(arguments) => about::completions(&arguments, terminal).map(done),
    }
}

/// The memory budget of commands without `--memory`.
fn default_budget() -> Budget {
    Budget::new(Limits::of_machine())
}

/// The commit that this program was compiled from: `ROCKPACK_COMMIT` at compile time, or else that of the git clone
/// (`build.rs`).
const COMMIT: Option<&str> = option_env!("ROCKPACK_COMMIT");

/// The text of `--version` after the name of the program: the version, the commit if it is known, the target machine,
/// the linking, and the compressors, which decide bytes of packages.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let known = COMMIT.map(str::trim).filter(|commit| !commit.is_empty());
    let commit = known.map_or("of an unknown commit".to_owned(), |it| format!("of commit {it}"));
    let (version, zstd) = (env!("CARGO_PKG_VERSION"), zstd::zstd_safe::version_string());
    let libc = match () {
        () if cfg!(target_env = "gnu") => "-gnu",
        () if cfg!(target_env = "musl") => "-musl",
        () => "",
    };
    let machine = format!("{}-{}{libc}", std::env::consts::ARCH, std::env::consts::OS);
    let linked = if cfg!(target_feature = "crt-static") { "statically" } else { "dynamically" };
    format!(
        "{version}, {commit}\nfor {machine}, linked {linked}; zstd {zstd}, liblzma-sys {LIBLZMA_SYS}"
    )
});
