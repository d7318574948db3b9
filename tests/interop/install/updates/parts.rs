//! Sets built by several machines.

use std::sync::Arc;

use crate::install::sets::{Built, Recipe};
use crate::install::system::{System, assert_same};
use crate::install::updates::components::{
    Changed::{Code, Library},
    Revision,
};
use crate::install::updates::{
    BLAS, FFT, ONE_GROUP, SPARSE, assert_newest, assert_verified, install, updated, upgrade,
};

const BLAS_CHANGED: [Revision; 1] = [(Library("blas"), "second")];
const THREE_CHANGED: [Revision; 3] =
    [BLAS_CHANGED[0], (Code("fft"), "third"), (Library("host-suite-sparse"), "third")];

/// A set in three parts.
fn parted() -> Arc<Built> {
    Recipe::new("7.1.0").revisions(&[]).parts(3).build()
}

/// The part of [`parted`] that has the package.
fn part_that_has(set: &Built, package: &str) -> String {
    let receipts = set.receipts();
    let at = receipts.iter().position(|receipt| {
        let text = std::fs::read_to_string(receipt).unwrap();
        let receipt: serde_json::Value = serde_json::from_str(&text).unwrap();
        receipt["packages"].as_array().unwrap().iter().any(|known| known["id"] == package)
    });
    format!("{}/{}", at.unwrap() + 1, receipts.len())
}

/// The only part of a hotfix with a changed package; no other part is built and published.
fn part_again(first: &Built) -> Arc<Built> {
    let part = part_that_has(first, "rocm-blas");
    let again = Recipe::new("7.1.0").revisions(&BLAS_CHANGED).on("2", &[first]);
    again.text("--partition", &part).build()
}

/// A hotfix in two parts, of a set in one piece or in parts.
fn hotfix_in_parts(release: &str, on: &Built) -> Arc<Built> {
    Recipe::new("7.1.0").revisions(&THREE_CHANGED).parts(2).on(release, &[on]).build()
}

#[test]
fn hotfixes_in_parts_are_verified() {
    let first = Recipe::new("7.1.0").revisions(&[]).build();
    let hotfix = hotfix_in_parts("2", &first);
    assert_eq!(hotfix.receipts().len(), 2);
    assert_verified(&[&first], &hotfix, 28);
}

/// One part of a set in three parts is rebuilt, and then a hotfix in two parts reads only that part's
/// receipt.
pub fn parts_are_updated(system: &dyn System) {
    let first = parted();
    let second = part_again(&first);
    let third = hotfix_in_parts("3", &second);
    let before = system.snapshot();
    let old = install(system, &first, &ONE_GROUP);
    let newer = updated(&old, &BLAS, "7.1.0-2");
    upgrade(system, &[&first, &second], &newer);
    let newest = updated(&newer, &[&FFT[..], &[SPARSE]].concat(), "7.1.0-3");
    upgrade(system, &[&first, &second, &third], &newest);
    assert_newest(system);
    system.purge_all();
    assert_same(&before, &system.snapshot());
}
