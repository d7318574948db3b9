//! Disturbances of the run that cleans up after a killed one.

use support::tools::need;

use crate::left::Left;
use crate::publications;
use crate::room::{ALL, Fault, places, places_of_slice};
use crate::scenarios::Scenario;
use crate::signals::killed;
use crate::sweep::{Judge, Sweep};
use crate::wheels;

/// Faults for the run that cleans up, with the number of places in a sample. Until the third run, the output
/// may lie between the earlier and the new one, without partial files.
const STRIKES: [(&str, Judge, usize); 4] = [
    ("signal:9", killed, 3),
    ("error:5", failed, 2),
    ("errors:5", failed, 2),
    ("signal:2", asked_to_end, 1),
];

/// The run continues if the file that it cannot remove is in nobody's way.
fn failed(left: &Left<'_>) {
    match left.struck.code() {
        Some(0) => left.is_new(),
        Some(2) => left.has_no_part(),
        _ => panic!("{}", left.about),
    }
}

fn asked_to_end(left: &Left<'_>) {
    match left.struck.code() {
        Some(130) => left.has_no_part(),
        _ => left.is_whole(),
    }
}

/// A run cleans up after the killed one before it begins anything new.
fn fails_when_it_has_cleared_up(left: &Left<'_>) {
    assert_eq!(left.struck.code(), Some(2), "{}", left.about);
    left.units();
}

/// Kills runs at some of their calls of these kinds. Then strikes each next run at its calls in the output
/// folder, up to the first one that begins something new.
fn sweep(mut scenario: Scenario, calls: &str, some: usize) {
    let deaths = scenario.calls(calls, "out").len();
    let mut sweeps = STRIKES.map(|_| (Sweep::default(), 0));
    let mut put_right = Sweep::default();
    // Each slice has all kills, and after each kill its share of the following calls.
    let kills = places(deaths, some);
    for &death in &kills {
        scenario.after_a_kill(calls, death);
        let clearing = clearing(&scenario);
        let begin = Fault { calls: ALL, act: "errors:5", at: clearing + 1 };
        put_right.strike(&scenario, (begin, "out"), fails_when_it_has_cleared_up);
        for ((act, judge, some), (sweep, count)) in STRIKES.iter().zip(&mut sweeps) {
            *count += clearing;
            for at in places_of_slice(clearing, *some) {
                sweep.strike(&scenario, (Fault { calls: ALL, act, at }, "out"), judge);
            }
        }
    }
    put_right.finish(&format!(
        "{} after {} kills: errors:5 when it begins",
        scenario.name,
        kills.len()
    ));
    for ((act, ..), (sweep, count)) in STRIKES.iter().zip(sweeps) {
        let kills = kills.len();
        let about = format!("after {kills} kills of {deaths} at {calls}: {act}, {count} calls");
        sweep.finish(&format!("{} {about}", scenario.name));
    }
}

/// The number of calls by which the next run cleans up.
fn clearing(scenario: &Scenario) -> usize {
    let made = scenario.calls(ALL, "out");
    let begins = made.iter().position(scenario.promise.begins);
    begins.unwrap_or_else(|| panic!("{} begins nothing of its own: {made:?}", scenario.name))
}

#[test]
fn a_build_that_clears_up_after_a_killed_commit_may_end_anywhere() {
    need(&["gcc"]);
    sweep(Scenario::build_with_document(), "rename", 2);
}

#[test]
fn a_recombination_that_clears_up_after_a_kill_may_end_anywhere() {
    need(&["gcc"]);
    sweep(Scenario::recombine(), "rename", 2);
}

#[test]
fn an_extraction_that_clears_up_after_a_kill_may_end_anywhere() {
    need(&["gcc"]);
    sweep(Scenario::extract(), "link", 1);
}

#[test]
fn a_publication_that_finishes_a_killed_one_may_end_anywhere() {
    need(&publications::TOOLS);
    sweep(publications::scenario(), "rename", 2);
}

#[test]
fn a_run_over_a_killed_commit_of_wheels_may_end_anywhere() {
    need(&["gcc"]);
    sweep(wheels::scenario(), "rename", 1);
}
