//! The running test program, with the paths that cargo gives to it alone.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use clap::{Args, FromArgMatches};
use rockpack::settings::{BuildArguments, BuildSettings, Environment, GivenOptions};
use rockpack_core::error::Result;
use rockpack_report::Silent;

/// The paths that [`crate::main!`] takes from the compiler's environment.
#[derive(Debug)]
pub struct Program {
    /// The path of the `rockpack` under test.
    pub rockpack: &'static str,
    /// A folder below `target` that is kept between runs.
    pub kept: &'static str,
}

static PROGRAM: OnceLock<Program> = OnceLock::new();

pub(crate) fn set(program: Program) {
    PROGRAM.set(program).expect("a test program has one main");
}

fn program() -> &'static Program {
    PROGRAM.get().expect("support::main! tells it before tests run")
}

/// The path of the `rockpack` under test.
pub fn rockpack_path() -> &'static Path {
    Path::new(program().rockpack)
}

/// A command for the program, without variables of this process that would change its output.
pub fn rockpack() -> Command {
    let mut command = Command::new(rockpack_path());
    command.env_remove("SOURCE_DATE_EPOCH").env_remove("NO_COLOR");
    command.env_remove("ROCKPACK_SIGN_PASSPHRASE");
    command
}

/// The settings of `rockpack build` with these words, for a build in this process.
pub fn build_settings(
    words: impl IntoIterator<Item = impl Into<OsString>>,
) -> Result<BuildSettings> {
    let mut command = BuildArguments::augment_args(clap::Command::new("build"));
    let words = [OsString::from("build")].into_iter().chain(words.into_iter().map(Into::into));
    let matches = command.try_get_matches_from_mut(words).unwrap();
    let arguments = BuildArguments::from_arg_matches(&matches).unwrap();
    arguments.resolve(&GivenOptions::of(&command, &matches), &Environment::default())
}

/// Runs a `rockpack build` that must succeed by the functions that it calls, without a start of the program
/// and its messages.
#[track_caller]
pub fn build_here(build: &Command) {
    let settings = build_settings(build.get_args().skip(1)).unwrap();
    rockpack::pipeline::build(&settings, &Silent).unwrap();
}

/// The path of a file to keep between runs.
pub fn kept_file(name: &str) -> PathBuf {
    Path::new(program().kept).join(name)
}

/// A folder kept between runs; if it is missing, one program at a time makes it.
pub fn kept(name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    let folder = kept_file(name);
    let lock = File::create(folder.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    if !folder.is_dir() {
        let partial = folder.with_extension("partial");
        let _ = fs::remove_dir_all(&partial);
        fs::create_dir_all(&partial).unwrap();
        make(&partial);
        fs::rename(&partial, &folder).unwrap();
    }
    folder
}

/// Makes a folder that lasts as long as this run.
pub fn scratch(purpose: &str) -> PathBuf {
    tempfile::Builder::new().prefix(purpose).tempdir().unwrap().keep()
}

/// A path of the repository.
pub fn repository(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    root.join(path)
}

/// The Rust files below `folder`, or the file itself, in order.
pub fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut waiting) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}
