//! Calls that fail.

use crate::room::{ALL, FILLING, Fault, places};
use crate::scenarios::{Left, Scenario, Sweep};
use crate::tools::have;

const EINTR: &str = "error:4";
const EIO: &str = "error:5";
const ENOSPC: &str = "error:28";
const EIO_FROM_THEN_ON: &str = "errors:5";
const ENOSPC_FROM_THEN_ON: &str = "errors:28";

/// A run that failed says why and leaves the earlier output; one that could do without the call
/// gives the whole.
fn failed_or_whole(left: &Left<'_>) {
    match left.struck.code() {
        Some(0) => left.is_whole(),
        Some(2) => {
            left.is_earlier();
            left.left_nothing();
            says_what_failed(left);
        }
        _ => panic!("{}", left.about),
    }
}

/// The message names the file, or what is around it.
fn says_what_failed(left: &Left<'_>) {
    let (_, path) = left.struck.call.as_ref().unwrap();
    let says = |text: &std::ffi::OsStr| left.struck.stderr.contains(text.to_str().unwrap());
    let around = path.ancestors().take(3).any(|path| says(path.as_os_str()));
    let said = around || says(path.file_name().unwrap());
    assert!(said && left.struck.stderr.contains("os error"), "{}", left.about);
}

/// The same, but a commit cannot be taken back where renames fail from then on: the next run does.
fn failed_or_left_to_the_next_run(left: &Left<'_>) {
    let renamed = left.struck.call.as_ref().is_some_and(|(kind, _)| kind == "rename");
    match renamed && !left.unfinished.is_empty() {
        true => nothing_in_part(left),
        false => failed_or_whole(left),
    }
}

/// The disk is gone for the clean-up, too.
fn nothing_in_part(left: &Left<'_>) {
    match left.struck.code() {
        Some(0) => left.is_whole(),
        Some(2) => left.has_no_part(),
        _ => panic!("{}", left.about),
    }
}

fn undisturbed(left: &Left<'_>) {
    assert_eq!(left.struck.code(), Some(0), "{}", left.about);
    left.is_whole();
}

type Judge = fn(&Left<'_>);

/// What strikes which calls, how it is judged, and how many places are enough for now.
const SWEEPS: [(&str, &str, Judge, usize); 8] = [
    (ALL, EIO, failed_or_whole, 18),
    (FILLING, ENOSPC, failed_or_whole, 8),
    (FILLING, ENOSPC_FROM_THEN_ON, failed_or_left_to_the_next_run, 8),
    (ALL, EIO_FROM_THEN_ON, nothing_in_part, 6),
    ("open,create,stat,list,remove", "error:13", failed_or_whole, 6),
    ("lock", "error:37", failed_or_whole, 4),
    ("read,write", EINTR, undisturbed, 4),
    ("read,write", "short", undisturbed, 4),
];

fn sweep(scenario: &Scenario) {
    for (calls, act, judge, some) in SWEEPS {
        let count = scenario.count(calls);
        let mut sweep = Sweep::default();
        for at in places(count, some) {
            sweep.strike(scenario, Fault { calls, act, at }, judge);
        }
        sweep.finish(&format!("{}: {act} on {calls}", scenario.name));
    }
}

#[test]
fn a_build_whose_calls_fail_leaves_the_earlier_set() {
    if have(&["gcc"]) {
        sweep(&Scenario::build());
    }
}

#[test]
fn a_split_whose_calls_fail_leaves_whole_components() {
    if have(&["gcc"]) {
        sweep(&Scenario::split());
    }
}

#[test]
fn a_recombination_whose_calls_fail_leaves_the_earlier_artifacts() {
    if have(&["gcc"]) {
        sweep(&Scenario::recombine());
    }
}
