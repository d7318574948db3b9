//! Kernel packages that stay while host code changes (`kernel_relations = "code"`).

use std::sync::Arc;

use serde_json::json;
use support::tools;

use crate::install::sets::{Built, Recipe};
use crate::install::system::{System, assert_same};
use crate::install::updates::components::{
    Changed::{Code, Library},
    Revision,
};
use crate::install::updates::{
    FFT, ONE_GROUP, Versions, assert_newest, assert_verified, install, offer, updated, upgrade,
};

/// Changes of one family's host code, another family's device code, and then that family's host code.
const REVISIONS: [&[Revision]; 4] = [
    &[],
    &[(Library("blas"), "second")],
    &[(Library("blas"), "second"), (Code("fft"), "third")],
    &[(Library("blas"), "second"), (Code("fft"), "third"), (Library("fft"), "fourth")],
];

/// The packages that each release after the first changes.
const CHANGED: [(&str, &[&str]); 3] =
    [("7.1.0-2", &["rocm-blas"]), ("7.1.0-3", &[FFT[0], FFT[1]]), ("7.1.0-4", &[FFT[0]])];

fn releases() -> Vec<Arc<Built>> {
    let mut sets: Vec<Arc<Built>> = Vec::new();
    for (revisions, release) in REVISIONS.into_iter().zip(1..) {
        let set = Recipe::new("7.1.0").revisions(revisions);
        let set = set.keys(json!({ "kernel_relations": "code" }));
        let built = match sets.last() {
            Some(last) => set.on(&release.to_string(), &[last]).build(),
            None => set.build(),
        };
        sets.push(built);
    }
    sets
}

#[test]
fn kernels_are_verified_with_their_hosts() {
    let sets = releases();
    let sets: Vec<&Built> = sets.iter().map(|set| &**set).collect();
    for (at, (version, changed)) in CHANGED.iter().enumerate() {
        let made = sets[at + 1].packages("deb");
        assert_eq!(made, changed.iter().map(|name| (*name).to_owned()).collect(), "{version}");
        assert_verified(&sets[..=at], sets[at + 1], 46 - 2 * changed.len());
    }
}

/// After updates, a downgrade of one family, a new installation and a removal, host and kernels always match.
pub fn kernels_stay_where_host_code_changes(system: &dyn System) {
    let sets = releases();
    let sets: Vec<&Built> = sets.iter().map(|set| &**set).collect();
    let before = system.snapshot();
    let old = install(system, sets[0], &ONE_GROUP);
    let mut versions = old.clone();
    for (at, (version, changed)) in CHANGED.iter().enumerate() {
        versions = updated(&versions, changed, version);
        upgrade(system, &sets[..at + 2], &versions);
    }
    assert_newest(system);

    // The device code of blas is the first release's: its host can go back alone.
    tools::run(&mut system.install_versions(&[("rocm-blas", "7.1.0-1")]));
    assert_eq!(system.installed(), updated(&versions, &["rocm-blas"], "7.1.0-1"));
    let pair = [("rocm-fft", "7.1.0-1"), ("rocm-fft-gfx110x", "7.1.0-1")];
    tools::run(&mut system.install_versions(&pair));
    assert_eq!(system.installed(), old);
    system.assert_whole();
    system.purge_all();

    offer(system, &sets);
    tools::run(&mut system.install(&["rocm-fft-gfx110x"]));
    let fresh = system.installed();
    let newest = [("rocm-common", "7.1.0-1"), (FFT[0], "7.1.0-4"), (FFT[1], "7.1.0-3")];
    assert_eq!(fresh, Versions::from(newest.map(|(name, it)| (name.to_owned(), it.to_owned()))));
    // Kernels with other device code come with a matching host, or not at all.
    let told = tools::told(&mut system.install_versions(&[("rocm-fft-gfx110x", "7.1.0-1")]));
    let after = system.installed();
    let [kernels_are_old, host_is_old] = ["rocm-fft-gfx110x", "rocm-fft"]
        .map(|name| ["7.1.0-1", "7.1.0-2"].contains(&after[name].as_str()));
    assert_eq!(kernels_are_old, host_is_old, "{told}\n{after:?}");

    tools::run(&mut system.purge(&["rocm-fft"]));
    assert!(!system.names().contains("rocm-fft-gfx110x"));
    if !system.names().is_empty() {
        system.purge_all();
    }
    assert_same(&before, &system.snapshot());
}

/// All releases are updated at once, from the first one.
pub fn kernels_come_with_the_last_of_their_hosts(system: &dyn System) {
    let sets = releases();
    let sets: Vec<&Built> = sets.iter().map(|set| &**set).collect();
    let mut versions = install(system, sets[0], &["rocm-all-gpus"]);
    for (version, changed) in CHANGED {
        versions = updated(&versions, changed, version);
    }
    upgrade(system, &sets, &versions);
    assert_newest(system);
}
