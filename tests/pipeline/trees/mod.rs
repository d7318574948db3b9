//! Install trees as input: folders, tarballs and single files give the packages of artifacts made by hand, and
//! bad ones are refused by name.

mod changed;
mod commands;
mod equal;
mod names;
mod prefixes;
mod refused;
mod split;
mod together;

use std::sync::OnceLock;

use support::trees::{Packages, Trees};

/// The packages of the first group's artifacts, made by hand.
fn expected() -> &'static Packages {
    static MADE: OnceLock<Packages> = OnceLock::new();
    MADE.get_or_init(|| {
        let trees = Trees::default();
        let packages = trees.packages(&[trees.by_hand("by-hand", 0)], &[]);
        assert!(packages.len() > 40, "{:?}", packages.keys());
        packages
    })
}

#[track_caller]
fn assert_has(packages: &Packages, deb: &str) {
    let file = format!("{deb}_7.1.0-1_amd64.deb");
    assert!(packages.contains_key(&file), "no {file} in {:?}", packages.keys());
}
