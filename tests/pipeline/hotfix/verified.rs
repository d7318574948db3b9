//! Hotfixes as `verify` sees them.

use std::fs;
use std::process::Command;

use serde_json::Value;
use support::example::{GROUPS, rockpack};
use support::tools;

use super::Case;

fn verify(case: &Case, folders: &[&str]) -> Command {
    let mut command = rockpack();
    command.arg("verify").args(folders.iter().map(|folder| case.path(folder)));
    command
}

#[test]
fn a_hotfix_is_verified_with_the_builds_before_it() {
    let case = Case::new(&[]);
    case.change_blas();
    tools::run(&mut case.hotfix("2", &["1"]));
    case.change_sparse();
    tools::run(&mut case.hotfix("3", &["2"]));
    for folders in [["1", "2", "3"], ["3", "1", "2"]] {
        let mut command = verify(&case, &folders);
        let said = tools::said(command.arg("--against").arg(case.path("shards")));
        assert!(said.contains("\nall checks passed"), "{said}");
        assert!(said.contains("24 packages, "), "{said}");
        // Eight rocBLAS and two sparse suite packages of the first build are no longer in the set.
        assert!(said.contains("10 packages of earlier builds not checked"), "{said}");
        assert!(!said.contains("not named"), "{said}");
    }
    // With a single part of it, verify leaves checks that need other parts open, and checks the rest.
    let mut command = verify(&case, &["3"]);
    let report: Value = serde_json::from_str(&tools::succeed(command.arg("--json"))).unwrap();
    assert_eq!(report["kept_absent"], 22);
    assert_eq!(report["problems"], serde_json::json!([]));
    let said = tools::said(verify(&case, &["3"]).arg("--against").arg(case.path("shards")));
    assert!(said.contains("the set keeps 22 packages of earlier builds"), "{said}");
}

/// A kept package has to match its receipt.
#[test]
fn a_kept_package_that_was_changed_is_found() {
    let case = Case::new(&[]);
    case.change_blas();
    tools::run(&mut case.hotfix("2", &["1"]));
    let file = "rocm-all-gpus_7.1.0-1_amd64.deb";
    let other = case.path("1").join("rocm_7.1.0-1_amd64.deb");
    fs::copy(other, case.path("1").join(file)).unwrap();
    let output = verify(&case, &["1", "2"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("V002 receipt-mismatch: {file}: ")), "{said}");
}

/// The receipt accounts for packages of a family that is gone, and of a format that this build leaves out.
#[test]
fn what_goes_is_accounted_for() {
    let case = Case::new(&[]);
    for group in &GROUPS {
        let folder = group.folder(&case.path("shards")).join("host-suite-sparse_lib_generic");
        fs::remove_dir_all(folder).unwrap();
    }
    let said = tools::told(&mut case.hotfix("2", &["1"]));
    assert!(said.contains("R087 package-dropped: rocm-host-suite-sparse"), "{said}");
    case.change_blas();
    tools::run(case.hotfix("3", &["2"]).args(["--format", "deb"]));
    for folders in [&["1", "2"][..], &["1", "2", "3"]] {
        let said = tools::said(&mut verify(&case, folders));
        assert!(said.contains("\nall checks passed"), "{said}");
    }
}

/// A hotfix that rebuilds all packages replaces the whole build before it.
#[test]
fn a_hotfix_that_keeps_nothing_is_verified_with_the_build_before_it() {
    let case = Case::new(&[]);
    let config = case.with_keys(&[("maintainer", "Other <other@example.org>".into())]);
    tools::run(case.configured(&config, "2").arg("--since").arg(case.receipt("1")));
    assert!(case.json("2").get("kept").is_none());
    let said = tools::said(&mut verify(&case, &["1", "2"]));
    assert!(said.contains("24 packages of earlier builds not checked"), "{said}");
    assert!(said.contains("\nall checks passed"), "{said}");
}

/// Code objects of kept packages name the shards of their own build.
#[test]
fn shards_may_be_renamed_between_builds() {
    let case = Case::new(&[]);
    case.change_sparse();
    let shards = case.path("shards");
    fs::rename(shards.join("gfx120X-build"), shards.join("gfx120Y-build")).unwrap();
    tools::run(&mut case.hotfix("2", &["1"]));
    assert_eq!(case.made("2").len(), 1);
    let said = tools::said(verify(&case, &["1", "2"]).arg("--against").arg(shards));
    assert!(said.contains("\nall checks passed"), "{said}");
}

/// A bound without a release accepts every release, as in rpm.
#[test]
fn bounds_without_a_release_take_every_release() {
    let case = Case::new(&[]);
    let needs = serde_json::json!({"rocm-host-suite-sparse": {"rpm": {"requires": ["rocm-common = 7.1.0"]}}});
    let config = case.with_keys(&[("relations", needs)]);
    tools::run(&mut case.configured(&config, "2"));
    let said = tools::said(&mut verify(&case, &["2"]));
    assert!(said.contains("\nall checks passed"), "{said}");
}
