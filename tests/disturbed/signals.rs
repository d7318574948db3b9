//! Signals and kills at every place of a run.

use support::tools::need;

use crate::left::{Left, undisturbed};
use crate::publications;
use crate::room::ALL;
use crate::scenarios::Scenario;
use crate::sweep::{Strikes, sweep, sweep_each_kind};
use crate::wheels;

/// A run that is asked to end undoes what it began, unless it was already done.
fn ended(left: &Left<'_>, code: i32, name: &str) {
    match left.struck.code() {
        Some(0) => left.is_whole(),
        Some(found) => {
            assert_eq!(found, code, "{}", left.about);
            assert!(left.struck.stderr.contains(&format!("ended by {name}")), "{}", left.about);
            left.is_taken_back();
        }
        None => panic!("{}", left.about),
    }
}

pub fn killed(left: &Left<'_>) {
    match left.struck.signal() {
        Some(9) => left.has_no_part(),
        _ => left.is_whole(),
    }
}

const SIGNALS: [Strikes; 4] = [
    (ALL, "signal:2", |left| ended(left, 130, "SIGINT"), 2),
    (ALL, "signal:15", |left| ended(left, 143, "SIGTERM"), 1),
    (ALL, "signal:1", |left| ended(left, 129, "SIGHUP"), 1),
    (ALL, "signal:9", killed, 3),
];

/// Kills at every kind of call in a commit, or in making a folder.
const KILLS: [Strikes; 1] = [("create,write,rename,make,remove,sync", "signal:9", killed, 1)];

/// Signals that the parent made the process ignore: nohup does that, and shells for `trap "" INT` and `&`.
const IGNORED: [Strikes; 3] = [
    (ALL, "ignored:2", undisturbed, 1),
    (ALL, "ignored:15", undisturbed, 1),
    (ALL, "ignored:1", undisturbed, 1),
];

#[test]
fn a_build_that_gets_a_signal_ends_clean() {
    need(&["gcc"]);
    sweep(&Scenario::build(), &SIGNALS);
}

#[test]
fn signals_that_a_build_was_started_to_ignore_do_not_end_it() {
    need(&["gcc"]);
    sweep(&Scenario::build(), &IGNORED);
}

#[test]
fn a_build_that_is_killed_leaves_no_document_without_its_set() {
    need(&["gcc"]);
    sweep_each_kind(&Scenario::build_with_document(), &KILLS);
    sweep_each_kind(&Scenario::build_without_document(), &KILLS);
}

#[test]
fn a_build_that_gets_a_signal_leaves_whole_entries_in_its_cache() {
    need(&["gcc"]);
    sweep(&Scenario::build_with_cache(), &SIGNALS);
    sweep_each_kind(&Scenario::build_with_new_cache(), &KILLS);
}

#[test]
fn a_split_that_gets_a_signal_ends_clean() {
    need(&["gcc"]);
    sweep(&Scenario::split(), &SIGNALS);
}

#[test]
fn a_recombination_that_gets_a_signal_ends_clean() {
    need(&["gcc"]);
    sweep(&Scenario::recombine(), &SIGNALS);
}

#[test]
fn an_extraction_that_gets_a_signal_leaves_whole_code_objects() {
    need(&["gcc"]);
    sweep(&Scenario::extract(), &SIGNALS);
}

#[test]
fn a_publication_that_gets_a_signal_leaves_a_repository_that_clients_can_use() {
    need(&publications::TOOLS);
    sweep(&publications::scenario(), &SIGNALS);
}

#[test]
fn wheels_whose_run_gets_a_signal_leave_the_earlier_ones() {
    need(&["gcc"]);
    let scenario = wheels::scenario();
    sweep(&scenario, &SIGNALS);
    sweep_each_kind(&scenario, &KILLS);
}
