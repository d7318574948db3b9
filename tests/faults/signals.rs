//! Signals at every place of a run, and kills.

use crate::room::{ALL, Fault, places};
use crate::scenarios::{Left, Scenario, Sweep};
use crate::tools::have;

/// A run that is asked to end takes back what it began, or was done already.
fn ended(left: &Left<'_>, code: i32, name: &str) {
    match left.struck.code() {
        Some(0) => left.is_whole(),
        Some(found) => {
            assert_eq!(found, code, "{}", left.about);
            assert!(left.struck.stderr.contains(&format!("ended by {name}")), "{}", left.about);
            left.is_earlier();
            assert_eq!(left.unfinished, [""; 0], "{}", left.about);
        }
        None => panic!("{}", left.about),
    }
}

fn killed(left: &Left<'_>) {
    match left.struck.signal() {
        Some(9) => left.has_no_part(),
        _ => left.is_whole(),
    }
}

type Judge = fn(&Left<'_>);

const SIGNALS: [(&str, Judge, usize); 4] = [
    ("signal:2", |left| ended(left, 130, "SIGINT"), 8),
    ("signal:15", |left| ended(left, 143, "SIGTERM"), 4),
    ("signal:1", |left| ended(left, 129, "SIGHUP"), 2),
    ("signal:9", killed, 10),
];

fn sweep(scenario: &Scenario) {
    let count = scenario.count(ALL);
    for (act, judge, some) in SIGNALS {
        let mut sweep = Sweep::default();
        for at in places(count, some) {
            sweep.strike(scenario, Fault { calls: ALL, act, at }, judge);
        }
        sweep.finish(&format!("{}: {act}", scenario.name));
    }
}

#[test]
fn a_build_that_gets_a_signal_ends_clean() {
    if have(&["gcc"]) {
        sweep(&Scenario::build());
    }
}

#[test]
fn a_split_that_gets_a_signal_ends_clean() {
    if have(&["gcc"]) {
        sweep(&Scenario::split());
    }
}

#[test]
fn a_recombination_that_gets_a_signal_ends_clean() {
    if have(&["gcc"]) {
        sweep(&Scenario::recombine());
    }
}
