//! One package of a hotfix is installed alone, and no longer has what another one imports.

use support::tools;

use crate::install::sets::Recipe;
use crate::install::system::System;
use crate::install::updates::components::{Changed::Function, Revision};
use crate::install::updates::{install, offer, updated};

const RENAMED: [Revision; 1] = [(Function, "")];

/// `utils` of the hotfix calls the new function of `solver`, and that of the first set the old one. No symbol
/// has a version, so rpm's own dependencies do not tell the two apart.
pub fn users_of_a_lost_function_come_along(system: &dyn System) {
    let first = Recipe::new("7.1.0").revisions(&[]).build();
    let second = Recipe::new("7.1.0").revisions(&RENAMED).on("2", &[&first]).build();
    let old = install(system, &first, &["rocm-utils"]);
    offer(system, &[&first, &second]);
    // `dnf install` leaves an installed package at its version.
    let mut alone = if system.format() == "deb" { system.install(&[]) } else { system.upgrade() };
    tools::run(alone.arg("rocm-solver"));
    assert_eq!(system.installed(), updated(&old, &["rocm-solver", "rocm-utils"], "7.1.0-2"));
    system.assert_whole();
}
