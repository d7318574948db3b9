//! Limits that a process starts with: on file sizes, open files, and memory.

use std::process::Command;

use support::tools::need;

use crate::left::Left;
use crate::publications;
use crate::room::{self, Struck, places};
use crate::scenarios::Scenario;
use crate::sweep::Judge;

/// Runs a command under a limit of prlimit.
fn under(limit: &str, command: &Command) -> Command {
    let mut run = Command::new("prlimit");
    run.arg(limit).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => run.env(name, value),
            None => run.env_remove(name),
        };
    }
    // Printing a panic's stack takes memory, and the standard library waits for itself if it gets none.
    run.env("RUST_BACKTRACE", "0");
    run
}

/// Runs under each of `limits`, even if too low, and then without. Each limited run gives the whole
/// output, or fails and leaves what `judge` allows.
fn limited(scenario: &Scenario, limits: &[String], judge: Judge) {
    let mut ended = [0, 0];
    for limit in limits {
        let out = scenario.begin(limit);
        let output = under(limit, &scenario.command_into(&out)).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let about = format!("{} {limit}: {}\n{stderr}", scenario.name, output.status);
        let (tree, unfinished, aside) = room::remains(&out);
        let struck = Struck { output, stderr, call: None, counted: 0 };
        let left = Left { scenario, struck, tree, unfinished, aside, about };
        if left.struck.code() == Some(0) {
            left.is_new();
        }
        judge(&left);
        ended[usize::from(left.struck.code() == Some(0))] += 1;
        (scenario.promise.also)(&out);
        scenario.next_run(&out, &left.about);
        scenario.end(limit);
    }
    assert!(ended.iter().all(|count| *count > 0), "{}: {ended:?}", scenario.name);
}

fn says(left: &Left<'_>, said: &str) {
    let whole = left.struck.code() == Some(0);
    let failed = left.struck.code() == Some(2) && left.struck.stderr.contains(said);
    assert!(whole || failed, "{}", left.about);
}

#[test]
fn a_file_that_may_not_become_so_large_is_an_error_and_no_signal() {
    need(&["gcc", "prlimit"]);
    let sizes: Vec<_> = places(24, 5)
        .into_iter()
        .map(|kib| kib << 10)
        .chain([1 << 30])
        .map(|size| format!("--fsize={size}"))
        .collect();
    for scenario in [Scenario::build(), Scenario::split(), Scenario::recombine()] {
        limited(&scenario, &sizes, |left| {
            left.is_whole_or_failed();
            says(left, "File too large (os error 27)");
            left.left_nothing();
        });
    }
}

/// If a folder cannot be opened, it cannot be cleaned up either: the next run does that.
#[test]
fn more_open_files_than_a_run_may_have_are_an_error() {
    need(&["prlimit"]);
    need(&publications::TOOLS);
    // The dynamic loader needs at least this many.
    let numbers: Vec<_> = places(12, 4)
        .into_iter()
        .map(|number| 3 + number)
        .chain([1024])
        .map(|number| format!("--nofile={number}"))
        .collect();
    for scenario in [Scenario::build, Scenario::split, publications::scenario] {
        limited(&scenario(), &numbers, |left| {
            says(left, "Too many open files (os error 24)");
            left.has_no_part();
        });
    }
}

/// If the system refuses memory, the process may end anywhere, without an error of its own: the allocator
/// aborts, and so do libraries.
#[test]
fn a_run_that_gets_no_memory_leaves_no_part() {
    need(&["gcc", "prlimit"]);
    let sizes = [48_u64, 64, 80, 128, 192, 256, 64 << 10].map(|mib| format!("--as={}", mib << 20));
    limited(&Scenario::build(), &sizes, |left| left.has_no_part());
}
