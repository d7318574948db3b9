//! One hotfix after the other, forward and back.

use std::sync::Arc;

use support::tools;

use crate::install::sets::{Built, Recipe};
use crate::install::system::{System, assert_same};
use crate::install::updates::components::{
    Changed::{Code, Library},
    Revision,
};
use crate::install::updates::{
    BLAS, FFT, ONE_GROUP, SPARSE, Versions, assert_newest, assert_verified, install, updated,
    upgrade, upgrade_pinned,
};

const SECOND: [Revision; 1] = [(Library("blas"), "second")];
const THIRD: [Revision; 3] =
    [(Library("blas"), "second"), (Code("fft"), "third"), (Library("host-suite-sparse"), "third")];
const FOURTH: [Revision; 3] = [(Library("blas"), "fourth"), THIRD[1], THIRD[2]];

/// The packages that each release after the first changes.
const CHANGED: [(&str, &[&str]); 3] = [
    ("7.1.0-2", &BLAS),
    ("7.1.0-3", &[FFT[0], FFT[1], FFT[2], FFT[3], SPARSE]),
    ("7.1.0-4", &BLAS),
];

/// The first set, a hotfix of one family, one of two other families, and one of the first family again. Each
/// reads only the receipt of its predecessor.
pub fn releases() -> [Arc<Built>; 4] {
    let first = Recipe::new("7.1.0").revisions(&[]).build();
    let second = Recipe::new("7.1.0").revisions(&SECOND).on("2", &[&first]).build();
    let third = Recipe::new("7.1.0").revisions(&THIRD).on("3", &[&second]).build();
    let fourth = Recipe::new("7.1.0").revisions(&FOURTH).on("4", &[&third]).build();
    [first, second, third, fourth]
}

fn only<const N: usize>(sets: &[Arc<Built>; N]) -> [&Built; N] {
    sets.each_ref().map(|set| &**set)
}

#[test]
fn hotfixes_are_verified_with_and_without_what_they_keep() {
    let sets = releases();
    let sets = only(&sets);
    for (at, (version, changed)) in CHANGED.iter().enumerate() {
        let made = sets[at + 1].packages("deb");
        assert_eq!(made, changed.iter().map(|name| (*name).to_owned()).collect(), "{version}");
        assert_eq!(sets[at + 1].packages("rpm"), made, "{version}");
        assert_verified(&sets[..=at], sets[at + 1], 46 - 2 * changed.len());
    }
}

/// Hotfixes are installed as they appear. Then the fixed family is removed, and another one stays unchanged.
pub fn hotfixes_come_one_by_one(system: &dyn System) {
    let sets = releases();
    let sets = only(&sets);
    let before = system.snapshot();
    let mut versions = install(system, sets[0], &[&ONE_GROUP[..], &["rocm-fft-gfx110x"]].concat());
    assert!(!versions.keys().any(|name| name.ends_with("115x") || name.ends_with("120x")));
    for (at, (version, changed)) in CHANGED.iter().enumerate() {
        versions = updated(&versions, changed, version);
        upgrade(system, &sets[..at + 2], &versions);
    }
    assert_newest(system);

    tools::run(&mut system.purge(&["rocm-blas"]));
    tools::run(&mut system.autoremove());
    versions.retain(|name, _| name.starts_with("rocm-fft") || name == "rocm-common");
    let mut left = system.installed();
    // apt treats packages that a metapackage brought as wanted on their own.
    left.remove(SPARSE);
    assert_eq!(left, versions);
    system.assert_whole();
    system.purge_all();
    assert_same(&before, &system.snapshot());
}

/// A client skips the hotfixes except for the newest packages, with every metapackage installed.
pub fn hotfixes_come_at_once(system: &dyn System) {
    let sets = releases();
    let sets = only(&sets);
    let before = system.snapshot();
    let metapackages = ["rocm", "rocm-all-gpus", "rocm-gfx110x", "rocm-blas-all"];
    let mut versions = install(system, sets[0], &metapackages);
    for (version, changed) in CHANGED {
        versions = updated(&versions, changed, version);
    }
    upgrade(system, &sets, &versions);
    assert_newest(system);
    system.purge_all();
    assert_same(&before, &system.snapshot());
}

/// To undo a hotfix, the client names all packages of the family, or pins versions.
pub fn a_hotfix_is_taken_back(system: &dyn System) {
    let sets = releases();
    let [first, second, ..] = only(&sets);
    let old = install(system, first, &ONE_GROUP);
    let new = updated(&old, &BLAS, "7.1.0-2");
    upgrade(system, &[first, second], &new);

    take_back_host_alone(system, &old, &new);
    tools::run(&mut system.install(&ONE_GROUP));
    upgrade(system, &[first, second], &new);

    let family = [("rocm-blas", "7.1.0-1"), ("rocm-blas-gfx110x", "7.1.0-1")];
    tools::run(&mut system.install_versions(&family));
    assert_eq!(system.installed(), old);
    if system.format() == "deb" {
        upgrade(system, &[first, second], &new);
    }
    system.pin(&["rocm-blas", "rocm-blas-*"], "7.1.0-1", "7.1.0-2");
    upgrade_pinned(system, &[first, second], &old);
}

/// Only the host is named: apt removes packages that need the newer one, dnf downgrades the kernels, and
/// zypper asks.
fn take_back_host_alone(system: &dyn System, old: &Versions, new: &Versions) {
    let told = tools::told(&mut system.install_versions(&[("rocm-blas", "7.1.0-1")]));
    let after = system.installed();
    if system.format() == "deb" {
        let mut rest = old.clone();
        rest.retain(|name, _| name == "rocm-fft-gfx110x" || !name.ends_with("gfx110x"));
        assert!(told.contains("The following packages will be REMOVED:"), "{told}");
        assert_eq!(after, rest);
    } else if told.ends_with("exit status: 0\n") {
        assert_eq!(after, *old);
    } else {
        assert!(told.contains("Problem: rocm-blas-gfx110x-7.1.0-2.x86_64 requires"), "{told}");
        assert_eq!(after, *new);
    }
    system.assert_whole();
}
