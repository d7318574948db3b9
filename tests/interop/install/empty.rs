//! Roots in which nothing is installed: one run brings the base of a system and the packages, in any order that
//! their dependencies allow.

use std::path::Path;

use support::bases;
use support::example::{GROUPS, kernels, names};
use support::tools::run;

use crate::install::rpm;
use crate::install::sets::Recipe;
use crate::install::system::System;

#[test]
fn dnf_installs_a_set_with_the_base() {
    rpm::with_empty(false, a_set_comes_with_the_base);
}

#[test]
fn zypper_installs_a_set_with_the_base() {
    rpm::with_empty(true, a_set_comes_with_the_base);
}

#[test]
fn dnf5_installs_a_set_with_the_base() {
    rpm::with_empty_in_sid(false, a_set_comes_with_the_base);
}

#[test]
fn zypper_of_sid_installs_a_set_with_the_base() {
    rpm::with_empty_in_sid(true, a_set_comes_with_the_base);
}

fn a_set_comes_with_the_base(system: &dyn System) {
    let prefix = Path::new("/opt/example/rocm-7.1");
    let set = Recipe::new("7.1.0").option("--prefix", prefix).build();
    system.offer(&[&set.out(), bases::rpm()]);
    run(&mut system.install(&["base-system", "rocm-all-gpus"]));
    assert!(GROUPS.iter().all(|group| system.names().contains(&kernels(group))));
    system.assert_whole();
    system.purge_all();
    assert!(names(&system.root().join("opt")).is_empty());
}
