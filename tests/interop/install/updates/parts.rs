//! Sets whose packages several machines build.

use std::sync::Arc;

use crate::install::sets::{Built, Recipe};
use crate::install::system::{System, assert_same};
use crate::install::updates::components::{
    Changed::{Code, Library},
    Revision,
};
use crate::install::updates::{
    BLAS, FFT, ONE_GROUP, SPARSE, assert_verified, install, updated, upgrade,
};

const BLAS_CHANGED: [Revision; 1] = [(Library("blas"), "second")];
const THREE_CHANGED: [Revision; 3] =
    [BLAS_CHANGED[0], (Code("fft"), "third"), (Library("host-suite-sparse"), "third")];

/// A set in three parts.
fn parted() -> Arc<Built> {
    Recipe::new("7.1.0").revisions(&[]).parts(3).build()
}

/// The part of [`parted`] that has the package.
fn part_with(set: &Built, package: &str) -> String {
    let receipts = set.receipts();
    let at = receipts.iter().position(|receipt| {
        let text = std::fs::read_to_string(receipt).unwrap();
        let receipt: serde_json::Value = serde_json::from_str(&text).unwrap();
        receipt["packages"].as_array().unwrap().iter().any(|known| known["id"] == package)
    });
    format!("{}/{}", at.unwrap() + 1, receipts.len())
}

/// Of the parts of a hotfix, all but one have nothing to make: only that one is built and published.
fn part_again() -> Arc<Built> {
    let first = parted();
    let part = part_with(&first, "rocm-blas");
    let again = Recipe::new("7.1.0").revisions(&BLAS_CHANGED).on("2", &[&first]);
    again.text("--partition", &part).build()
}

/// A hotfix in parts of a set in one piece.
fn hotfix_in_parts() -> [Arc<Built>; 2] {
    let first = Recipe::new("7.1.0").revisions(&[]).build();
    let hotfix = Recipe::new("7.1.0").revisions(&THREE_CHANGED).parts(2);
    let hotfix = hotfix.on("2", &[&first]).build();
    [first, hotfix]
}

#[test]
fn hotfixes_in_parts_are_verified() {
    let [first, hotfix] = hotfix_in_parts();
    assert_eq!(hotfix.receipts().len(), 2);
    assert_verified(&[&first], &hotfix, 28);
}

pub fn one_part_is_built_again(system: &dyn System) {
    let (first, again) = (parted(), part_again());
    let before = system.snapshot();
    let old = install(system, &first, &ONE_GROUP);
    upgrade(system, &[&first, &again], &updated(&old, &BLAS, "7.1.0-2"));
    system.purge_all();
    assert_same(&before, &system.snapshot());
}

pub fn a_hotfix_is_built_in_parts(system: &dyn System) {
    let [first, hotfix] = hotfix_in_parts();
    let before = system.snapshot();
    let old = install(system, &first, &ONE_GROUP);
    let changed = [&BLAS[..], &FFT, &[SPARSE]].concat();
    upgrade(system, &[&first, &hotfix], &updated(&old, &changed, "7.1.0-2"));
    system.purge_all();
    assert_same(&before, &system.snapshot());
}
