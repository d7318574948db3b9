//! Hotfixes: sets of a further release with only the changed packages, beside those of before.
//!
//! Each package manager's mildest command brings everything to the newest version; it removes, keeps back and
//! adds nothing. zypper is tested, too.

pub mod components;
mod held_back;
mod hotfixes;
pub mod imports;
mod kernels;
mod nights;
mod parts;
mod versions;

use std::collections::BTreeMap;
use std::process::Command;

use support::example::rockpack;
use support::tools;

use crate::install::sets::Built;
use crate::install::system::System;

/// One test for each scenario and package manager. Debian 12 has another version of apt than Debian 13: every
/// change tries the scenarios of `each` there, and `.ci/nightly` all of them.
macro_rules! with_every_manager {
    (
        each { $($first:ident: $($sample:ident)*;)* }
        $($module:ident: $($scenario:ident)*;)*
    ) => {
        mod debian_12 {
            $($(#[test]
            fn $sample() {
                let scenario = crate::install::updates::$first::$sample;
                crate::install::debian::with_root("bookworm", scenario);
            })*)*
            $($(#[test]
            #[ignore = "runs on Debian 13; on Debian 12 in nightly runs"]
            fn $scenario() {
                let scenario = crate::install::updates::$module::$scenario;
                crate::install::debian::with_root("bookworm", scenario);
            })*)*
        }
        mod debian_13 {
            $($(#[test]
            fn $sample() {
                let scenario = crate::install::updates::$first::$sample;
                crate::install::debian::with_root("trixie", scenario);
            })*)*
            $($(#[test]
            fn $scenario() {
                let scenario = crate::install::updates::$module::$scenario;
                crate::install::debian::with_root("trixie", scenario);
            })*)*
        }
        mod by_dnf {
            $($(#[test]
            fn $sample() {
                let scenario = crate::install::updates::$first::$sample;
                crate::install::rpm::with_root(scenario);
            })*)*
            $($(#[test]
            fn $scenario() {
                let scenario = crate::install::updates::$module::$scenario;
                crate::install::rpm::with_root(scenario);
            })*)*
        }
        mod by_zypper {
            $($(#[test]
            fn $sample() {
                let scenario = crate::install::updates::$first::$sample;
                crate::install::rpm::with_zypper(scenario);
            })*)*
            $($(#[test]
            fn $scenario() {
                let scenario = crate::install::updates::$module::$scenario;
                crate::install::rpm::with_zypper(scenario);
            })*)*
        }
    };
}

with_every_manager! {
    each {
        hotfixes:
        hotfixes_come_one_by_one;

        held_back:
        what_is_said_is_held_back;

        nights:
        a_night_is_taken_whole;
    }

    hotfixes:
    hotfixes_come_at_once
    a_hotfix_is_taken_back;

    imports:
    users_of_a_lost_function_come_along;

    kernels:
    kernels_stay_where_host_code_changes
    kernels_come_with_the_last_of_their_hosts;

    parts:
    parts_are_updated;

    versions:
    patch_versions_stand_side_by_side;

    nights:
    nights_are_mixed_where_that_is_configured;
}

/// Versions by package name.
type Versions = BTreeMap<String, String>;

const BLAS: [&str; 4] =
    ["rocm-blas", "rocm-blas-gfx110x", "rocm-blas-gfx115x", "rocm-blas-gfx120x"];
const FFT: [&str; 4] = ["rocm-fft", "rocm-fft-gfx110x", "rocm-fft-gfx115x", "rocm-fft-gfx120x"];
const SPARSE: &str = "rocm-host-suite-sparse";

/// The metapackages for everything of one GPU group, and for the hosts of all families.
const ONE_GROUP: [&str; 2] = ["rocm-gfx110x", "rocm"];

/// `versions` with `version` for `packages`.
fn updated(versions: &Versions, packages: &[&str], version: &str) -> Versions {
    let newer = |(name, old): (&String, &String)| {
        let is_newer = packages.contains(&name.as_str());
        (name.clone(), if is_newer { version.to_owned() } else { old.clone() })
    };
    versions.iter().map(newer).collect()
}

/// Installs packages of a set with their dependencies, and returns the versions.
fn install(system: &dyn System, set: &Built, packages: &[&str]) -> Versions {
    system.offer(&[&set.out()]);
    tools::run(&mut system.install(packages));
    system.installed()
}

/// Updates everything to the newest version. Fails unless the result is `expected`.
fn upgrade(system: &dyn System, sets: &[&Built], expected: &Versions) {
    offer(system, sets);
    system.upgrade_all();
    assert_eq!(system.installed(), *expected);
    system.assert_whole();
}

/// Fails if an update that may remove packages still has something to do.
fn assert_newest(system: &dyn System) {
    let versions = system.installed();
    tools::run(&mut system.update());
    assert_eq!(system.installed(), versions);
}

/// Upgrades with pinned versions; the package manager may report the packages that it keeps back.
fn upgrade_pinned(system: &dyn System, sets: &[&Built], expected: &Versions) {
    offer(system, sets);
    tools::run(&mut system.upgrade());
    assert_eq!(system.installed(), *expected);
    assert_newest(system);
    system.assert_whole();
}

fn offer(system: &dyn System, sets: &[&Built]) {
    let folders: Vec<_> = sets.iter().map(|set| set.out()).collect();
    system.offer(&folders.iter().map(|folder| folder.as_path()).collect::<Vec<_>>());
}

/// Verifies the hotfix with all earlier sets, and alone.
fn assert_verified(earlier: &[&Built], set: &Built, kept: usize) {
    let all = verified(&[earlier, &[set]].concat());
    assert!(all.contains("all checks passed") && !all.contains("were not named"), "{all}");
    let alone = verified(&[set]);
    let told = format!("the set keeps {kept} packages of earlier builds; to check the whole set");
    assert!(alone.contains("all checks passed") && alone.contains(&told), "{alone}");
}

fn verified(sets: &[&Built]) -> String {
    let mut command: Command = rockpack();
    tools::said(command.arg("verify").args(sets.iter().map(|set| set.out())))
}
