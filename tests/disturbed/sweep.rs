//! Faults at every place of a run, one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use support::sweep::is_sliced;

use crate::left::Left;
use crate::room::{Call, Fault, figures, places_of_slice};
use crate::scenarios::Scenario;

pub type Judge = fn(&Left<'_>);

/// What strikes which kinds of calls, how it is judged, and how many places are enough for now.
pub type Strikes = (&'static str, &'static str, Judge, usize);

/// Every row of a table at every place of a run.
pub fn sweep(scenario: &Scenario, table: &[Strikes]) {
    let made = made(scenario, table);
    for (calls, act, judge, some) in table {
        let count = count(&made, calls);
        let mut sweep = Sweep::default();
        for at in places_of_slice(count, *some) {
            sweep.strike(scenario, (Fault { calls, act, at }, ""), judge);
        }
        sweep.finish(&format!("{}: {act} on {calls}, {count} calls", scenario.name));
    }
}

/// The same, but that so many places of each kind of calls are enough: a kind that is rare is struck
/// as well.
pub fn sweep_each_kind(scenario: &Scenario, table: &[Strikes]) {
    let made = made(scenario, table);
    for (calls, act, judge, some) in table {
        let mut sweep = Sweep::default();
        for calls in calls.split(',') {
            for at in places_of_slice(count(&made, calls), *some) {
                sweep.strike(scenario, (Fault { calls, act, at }, ""), judge);
            }
        }
        let count = count(&made, calls);
        sweep.finish(&format!("{}: {act} on each of {calls}, {count} calls", scenario.name));
    }
}

/// The calls of an undisturbed run that any row of a table strikes.
fn made(scenario: &Scenario, table: &[Strikes]) -> Vec<Call> {
    let kinds: BTreeSet<&str> = table.iter().flat_map(|(calls, ..)| calls.split(',')).collect();
    scenario.calls(&kinds.into_iter().collect::<Vec<_>>().join(","), "")
}

/// How many of these calls are of these kinds.
fn count(made: &[Call], kinds: &str) -> usize {
    made.iter().filter(|(kind, _)| kinds.split(',').any(|other| other == kind)).count()
}

/// Runs that are struck, all of which are tried before the first failure is told.
#[derive(Default)]
pub struct Sweep {
    /// How many places were to be struck.
    places: usize,
    /// How often they ended how.
    pub ended: BTreeMap<String, usize>,
    failures: Vec<String>,
}

impl Sweep {
    pub fn strike(
        &mut self,
        scenario: &Scenario,
        (fault, under): (Fault<'_>, &str),
        judge: impl Fn(&Left<'_>),
    ) {
        self.places += 1;
        let result = catch_unwind(AssertUnwindSafe(|| scenario.disturb((fault, under), judge)));
        match result {
            Ok(Some(ended)) => *self.ended.entry(ended).or_default() += 1,
            // The threads of this run made fewer calls.
            Ok(None) => {}
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                self.failures.push(format!("{fault:?}: {}", text.unwrap_or_default()));
            }
        }
    }

    pub fn finish(self, about: &str) {
        let Self { places, ended, failures } = self;
        assert!(failures.is_empty(), "{about}: {} failed\n{}", failures.len(), failures.join("\n"));
        let hits: usize = ended.values().sum();
        // A slice of few calls may have the last ones alone, which threads do not always make.
        let may_miss = is_sliced() && places < 3;
        assert!(hits > 0 || may_miss, "{about}: no call was struck");
        if figures() {
            println!("{about}: {hits} struck, {ended:?}");
        }
    }
}
