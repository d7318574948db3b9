//! Packages and indexes of a repository are read within the budget of the run that publishes or checks them.

use std::path::PathBuf;

use rockpack_core::run::{Budget, Limits};
use rockpack_report::Silent;
use rockpack_signing::Trust;
use rockpack_verify::{self as verify, Extent, Options};
use support::tools::need;

use super::broken_off::{Failing, Room};

const REFUSED: &str = "that --memory allows";

#[test]
fn packages_are_read_within_the_budget_of_the_run() {
    need(&["dpkg-deb", "rpmbuild"]);
    let room = Room::new();
    let (packages, out) = (room.packages("1"), room.path("out"));
    // Each thread may take 96 bytes beside the budget.
    let little = Budget::new(Limits { structures: 0, threads: 1 << 20, ..Limits::default() });
    let enough = Budget::new(Limits { structures: 0, threads: 1, ..Limits::default() });
    let [refused, published] = [&little, &enough].map(|budget| {
        let store = Failing::within(budget, &out, usize::MAX);
        room.publish_to(&store, (&[&packages], &out), 0, "stable")
    });
    let error = refused.unwrap_err().to_string();
    assert!(error.contains(REFUSED), "{error}");
    published.unwrap();
    let said = checked_within(&little, std::slice::from_ref(&out));
    assert!(said.contains("an index") && said.contains(REFUSED), "{said}");
    assert!(!checked_within(&enough, &[out]).contains(REFUSED));
}

fn checked_within(budget: &Budget, repositories: &[PathBuf]) -> String {
    let (installed, budget) = (false, budget.clone());
    let (extent, trust) = (Extent::Whole, Trust::default());
    let (binaries, wheels, sysfs) = (Vec::new(), Vec::new(), PathBuf::new());
    let options =
        Options { installed, against: None, binaries, wheels, extent, trust, budget, sysfs };
    match verify::verify(repositories, &options, &Silent) {
        Ok(report) => serde_json::to_string(&report).unwrap(),
        Err(error) => error.to_string(),
    }
}
