//! Faults at every place of a run, one after the other.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::left::Left;
use crate::room::{Fault, figures, places};
use crate::scenarios::Scenario;

pub type Judge = fn(&Left<'_>);

/// What strikes which kinds of calls, how it is judged, and how many places are enough for now.
pub type Strikes = (&'static str, &'static str, Judge, usize);

/// Every row of a table at every place of a run.
pub fn sweep(scenario: &Scenario, table: &[Strikes]) {
    for (calls, act, judge, some) in table {
        let count = scenario.calls(calls, "").len();
        let mut sweep = Sweep::default();
        for at in places(count, *some) {
            sweep.strike(scenario, (Fault { calls, act, at }, ""), judge);
        }
        sweep.finish(&format!("{}: {act} on {calls}, {count} calls", scenario.name));
    }
}

/// Runs that are struck, all of which are tried before the first failure is told.
#[derive(Default)]
pub struct Sweep {
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
        let Self { ended, failures } = self;
        assert!(failures.is_empty(), "{about}: {} failed\n{}", failures.len(), failures.join("\n"));
        let hits: usize = ended.values().sum();
        assert!(hits > 0, "{about}: no call was struck");
        if figures() {
            println!("{about}: {hits} struck, {ended:?}");
        }
    }
}
