//! Hotfixes as `verify` sees them.

use std::fs;
use std::process::Command;

use serde_json::Value;
use support::example::{GROUPS, contents, entries, rockpack};
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
        assert!(said.contains("10 packages of earlier builds not looked at"), "{said}");
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

/// A receipt as versions of rockpack with schema 3 wrote it, with its paths in another order.
fn of_schema_3(mut receipt: Value) -> Value {
    receipt["schema"] = 3.into();
    rename(&mut receipt, "rockpack_version", "generator");
    let packages = receipt["packages"].clone();
    for package in receipt["packages"].as_array_mut().unwrap() {
        let members = entries(&packages, package).into_iter().rev().map(|(path, entry)| {
            let mut member = serde_json::json!({ "path": path, "kind": "file", "mode": 0o644 });
            member.as_object_mut().unwrap().extend(entry.as_object().unwrap().clone());
            member
        });
        package["members"] = members.collect();
        for folders in ["folders", "shared_folders"] {
            package.as_object_mut().unwrap().remove(folders);
        }
        package["code_objects"] = 7.into();
        rename(package, "metadata_sha256", "control_sha256");
        let imports = package.get_mut("imports").and_then(Value::as_array_mut);
        for import in imports.into_iter().flatten() {
            rename(import, "earlier_releases_only", "is_former");
        }
    }
    receipt
}

fn rename(object: &mut Value, from: &str, to: &str) {
    let fields = object.as_object_mut().unwrap();
    if let Some(value) = fields.remove(from) {
        fields.insert(to.to_owned(), value);
    }
}

/// Receipts of the schema before are verified, compared and updated as those of this version.
#[test]
fn receipts_of_schema_3_are_read() {
    let case = Case::new(&[]);
    case.change_sparse();
    tools::run(&mut case.hotfix("2", &["1"]));
    let difference = || {
        let mut plan = case.command("plan", "2");
        tools::succeed(plan.args(["--json", "--diff"]).arg(case.receipt("1")))
    };
    let (update, changes) = (contents(&case.path("2")), difference());
    fs::remove_dir_all(case.path("2")).unwrap();
    fs::write(case.receipt("1"), of_schema_3(case.json("1")).to_string()).unwrap();
    assert_eq!(difference(), changes);
    tools::run(&mut case.hotfix("2", &["1"]));
    assert_eq!(case.made("2").len(), 1);
    assert!(contents(&case.path("2")) == update);
    let said = tools::said(&mut verify(&case, &["1", "2"]));
    assert!(said.contains("\nall checks passed"), "{said}");
}

/// A hotfix that rebuilds all packages replaces the whole build before it.
#[test]
fn a_hotfix_that_keeps_nothing_is_verified_with_the_build_before_it() {
    let case = Case::new(&[]);
    let config = case.with_keys(&[("maintainer", "Other <other@example.org>".into())]);
    tools::run(case.configured(&config, "2").arg("--since").arg(case.receipt("1")));
    assert!(case.json("2").get("kept").is_none());
    let said = tools::said(&mut verify(&case, &["1", "2"]));
    assert!(said.contains("24 packages of earlier builds not looked at"), "{said}");
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
