//! Limits that a process is started with: of the size of files, of how many are open, of memory.

use std::process::Command;

use crate::left::Left;
use crate::publications;
use crate::room::{self, Struck, places, visible};
use crate::scenarios::Scenario;
use crate::sweep::Judge;
use crate::tools::{self, have};

/// A command as it is under a limit of prlimit.
fn under(limit: &str, command: &Command) -> Command {
    let mut run = Command::new("prlimit");
    run.arg(limit).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => run.env(name, value),
            None => run.env_remove(name),
        };
    }
    run
}

/// How runs end under limits that are too low: with words, or by a signal.
type Ends = (&'static str, Option<i32>);

/// Runs under each of `limits`, of which some are too low, and then without. Each run under them
/// gives the whole output, or ends as it may, and leaves what `judge` allows.
fn limited(scenario: &Scenario, limits: &[String], (said, signal): Ends, judge: Judge) {
    let mut ended = [0, 0];
    for limit in limits {
        let out = scenario.begin(limit);
        let output = under(limit, &scenario.command_into(&out)).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let about = format!("{} {limit}: {}\n{stderr}", scenario.name, output.status);
        let (unfinished, aside) = (room::unfinished(&out), room::aside(&out));
        let struck = Struck { output, stderr, call: None, counted: 0 };
        let left = Left { scenario, struck, tree: visible(&out), unfinished, aside, about };
        let about = &left.about;
        match left.struck.code() {
            Some(0) => left.is_new(),
            Some(2) => assert!(left.struck.stderr.contains(said), "{about}"),
            None if left.struck.signal() == signal => {}
            _ => panic!("{about}"),
        }
        judge(&left);
        ended[usize::from(left.struck.code() == Some(0))] += 1;
        (scenario.promise.also)(&out);
        tools::run(&mut scenario.command_into(&out));
        assert!(visible(&out) == scenario.whole, "{about}: the next run");
        assert_eq!(room::unfinished(&out), [""; 0], "{about}: the next run");
        scenario.end(limit);
    }
    assert!(ended.iter().all(|count| *count > 0), "{}: {ended:?}", scenario.name);
}

fn taken_back(left: &Left<'_>) {
    if left.struck.code() == Some(2) {
        left.is_taken_back();
    }
    left.left_nothing();
}

#[test]
fn a_file_that_may_not_become_so_large_is_an_error_and_no_signal() {
    if !have(&["gcc", "prlimit"]) {
        return;
    }
    let sizes = places(24, 8).into_iter().map(|kib| kib << 10).chain([1 << 30]);
    let sizes: Vec<_> = sizes.map(|size| format!("--fsize={size}")).collect();
    for scenario in [Scenario::build(), Scenario::split(), Scenario::recombine()] {
        limited(&scenario, &sizes, ("File too large (os error 27)", None), taken_back);
    }
}

/// A folder that cannot be opened cannot be cleared away either: the next run does.
#[test]
fn more_open_files_than_a_run_may_have_are_an_error() {
    if !have(&["prlimit"]) || !have(&publications::TOOLS) {
        return;
    }
    // Fewer are too few for the dynamic loader.
    let numbers: Vec<_> =
        (4..16).chain([1024]).map(|number| format!("--nofile={number}")).collect();
    for scenario in [Scenario::build, Scenario::split, publications::scenario] {
        limited(&scenario(), &numbers, ("Too many open files (os error 24)", None), |left| {
            left.has_no_part()
        });
    }
}

/// Where the system refuses memory the process ends at once, as by a kill.
#[test]
fn a_run_that_gets_no_memory_leaves_no_part() {
    if !have(&["gcc", "prlimit"]) {
        return;
    }
    let sizes = [80_u64, 128, 192, 256, 64 << 10].map(|mib| format!("--as={}", mib << 20));
    limited(&Scenario::build(), &sizes, ("os error", Some(6)), |left| left.has_no_part());
}
