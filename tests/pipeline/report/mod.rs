//! `rockpack report` and `build --report`: the figures of a set, compared with what dpkg and rpm state, and
//! the pages about it.

mod figures;
mod findings;
mod pages;
mod since;
mod written;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::example::rockpack;
use support::tools;

/// `rockpack report` about a set.
fn report(set: &Path) -> Command {
    let mut command = rockpack();
    command.arg("report").arg(set);
    command
}

/// The Markdown that `rockpack report` prints about a set.
#[track_caller]
fn markdown(set: &Path) -> String {
    tools::succeed(&mut report(set))
}

/// The JSON that a command prints with `--json`.
#[track_caller]
fn json(command: &mut Command) -> Value {
    serde_json::from_str(&tools::succeed(command.arg("--json"))).unwrap()
}

/// The sum of the lengths of files.
fn length_of(files: &[PathBuf]) -> u64 {
    files.iter().map(|file| fs::metadata(file).unwrap().len()).sum()
}
