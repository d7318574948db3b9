//! Faults at every place of a run, one after the other.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock};

use support::sweep::is_sliced;

use crate::left::Left;
use crate::room::{ALL_AND_THREADS, Call, Fault, figures, places_of_slice};
use crate::scenarios::Scenario;

pub type Judge = fn(&Left<'_>);

/// Kinds of calls, the fault for them, its judge, and the number of places in a sample.
pub type Strikes = (&'static str, &'static str, Judge, usize);

/// Strikes every place of a run with every row of a table.
pub fn sweep(scenario: &Scenario, table: &[Strikes]) {
    let made = made(scenario);
    for (calls, act, judge, some) in table {
        let count = count(&made, calls);
        let mut sweep = Sweep::default();
        for at in places_of_slice(count, *some) {
            sweep.strike(scenario, (Fault { calls, act, at }, ""), judge);
        }
        sweep.finish(&format!("{}: {act} on {calls}, {count} calls", scenario.name));
    }
}

/// Strikes each kind of call on its own: in a sample, each has its number of places, so that rare kinds are
/// struck, too.
pub fn sweep_each_kind(scenario: &Scenario, table: &[Strikes]) {
    let made = made(scenario);
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

/// The calls of an undisturbed run, which is made once for all scenarios of one name.
fn made(scenario: &Scenario) -> Vec<Call> {
    static MADE: Mutex<BTreeMap<&str, Arc<OnceLock<Vec<Call>>>>> = Mutex::new(BTreeMap::new());
    let made = MADE.lock().unwrap().entry(scenario.name).or_default().clone();
    made.get_or_init(|| scenario.calls(ALL_AND_THREADS, "")).clone()
}

/// The number of calls of these kinds.
pub fn count(made: &[Call], kinds: &str) -> usize {
    made.iter().filter(|(kind, _)| kinds.split(',').any(|other| other == kind)).count()
}

/// Struck runs. All are tried before the first failure is reported.
#[derive(Default)]
pub struct Sweep {
    /// The number of places to strike.
    places: usize,
    /// The number of runs for each way to end.
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
        // A slice of few calls may have only the last ones, which threads do not always make.
        let may_miss = is_sliced() && places < 3;
        assert!(hits > 0 || may_miss, "{about}: no call was struck");
        if figures() {
            println!("{about}: {hits} struck, {ended:?}");
        }
    }
}
