//! Archs that are missing, in no group, or left out.

use std::collections::BTreeSet;

use support::example::deb_name;
use support::queries::deb_field;
use support::tools::need;

use crate::rules::{Case, accounted};

#[test]
fn a_missing_arch_is_a_finding_or_an_error() {
    let group = "[architecture_groups.gfx103X]\narchitectures = ['gfx1030']\n";
    let case = Case::new().built(group);
    assert_eq!(case.findings("R013")[0]["subject"], "gfx1030");
    let rule = "[validation]\nerror_on_missing_architecture = true\n";
    let expected = ["gfx1030: no shard has device code for it (group gfx103X)"];
    Case::new().is_refused(&format!("{group}{rule}"), &expected);
    Case::new().built(rule);
}

/// The summary of a kernel package ends with the name of its group.
#[test]
fn summaries_have_up_to_80_characters() {
    need(&["dpkg-deb"]);
    const START: &str = "ROCm component blas: GPU code for ";
    let longest = "g".repeat(80 - START.len());
    let case = Case::new().built(&group_rule(&longest));
    let deb = case.out().join(deb_name(&format!("rocm-blas-{longest}")));
    let said = deb_field(&deb, "Description");
    assert_eq!(said.lines().next(), Some(format!("{START}{longest}").as_str()));
    let too_long = group_rule(&format!("{longest}g"));
    Case::new().is_no_configuration(&too_long, &["has more than 80 characters"]);
}

fn group_rule(group: &str) -> String {
    // The shards differ in the stray arch's code.
    let any = "[validation]\nerror_on_duplicate_device_code = false\n";
    format!("[architecture_groups.{group}]\narchitectures = ['gfx906']\n{any}")
}

#[test]
fn a_component_may_have_to_be_complete() {
    let rule = "[components.blas_run]\nerror_on_missing_architecture = true\n";
    Case::new().built(rule);
    let case = Case::new();
    std::fs::remove_dir_all(case.shards().join("gfx1151-build/blas_run_gfx1151")).unwrap();
    let expected = [
        "components.blas_run.error_on_missing_architecture: blas_run has no device code for gfx1151",
    ];
    case.is_refused(rule, &expected);
    case.built("[validation]\nerror_on_missing_architecture = true\n");
}

#[test]
fn unassigned_archs_are_warned_of_refused_or_dropped() {
    let warned = Case::new().built(&unassigned_rule("warn"));
    let count = accounted(warned.findings("R012")[0]);
    assert!(count > 0);
    let expected = ["gfx906: ", "are in no package", "unassigned_architectures is `error`"];
    Case::new().is_refused(&unassigned_rule("error"), &expected);
    let dropped = Case::new().built(&unassigned_rule("drop"));
    assert!(dropped.findings("R012").is_empty());
    let finding = dropped.findings("R046")[0];
    assert_eq!((finding["severity"].as_str(), accounted(finding)), (Some("note"), count));
}

fn unassigned_rule(policy: &str) -> String {
    format!("[validation]\nunassigned_architectures = '{policy}'\n")
}

#[test]
fn a_package_leaves_archs_out() {
    let rule = "[packages.rocm-blas]\nexclude_architectures = ['gfx1102']\n";
    let case = Case::new().built(rule);
    let kernels = case.members("rocm-blas-gfx110x");
    assert!(kernels.contains("lib/.kpack/blas_lib_gfx1101.kpack"));
    assert!(!kernels.iter().any(|path| path.contains("gfx1102")), "{kernels:?}");
    let finding = case.findings("R045")[0];
    assert_eq!(finding["subject"], "rocm-blas gfx1102");
    assert!(finding["message"].as_str().unwrap().contains("lib/libexblas.so.1.2: 2"));
    // Two of the library, one of each program, and the database files.
    assert!(accounted(finding) > 4, "{finding}");
    let only = "[packages.rocm-blas]\ninclude_architectures = ['gfx1100', 'gfx1151']\n";
    let case = Case::new().built(only);
    assert!(!case.packages().contains("rocm-blas-gfx120x"));
    let left: BTreeSet<&str> =
        case.findings("R045").iter().map(|finding| finding["subject"].as_str().unwrap()).collect();
    let expected = ["gfx1101", "gfx1102", "gfx1200", "gfx1201"].map(|a| format!("rocm-blas {a}"));
    assert_eq!(left, expected.iter().map(String::as_str).collect());
}

#[test]
fn a_component_leaves_archs_out() {
    let rule = "[components.blas_run]\nexclude_architectures = ['gfx1100']\n";
    let case = Case::new().built(rule);
    for (binary, is_kept) in [("bin/exblas-bench", false), ("lib/libexblas.so.1.2", true)] {
        let objects = case.code_objects(binary);
        assert_eq!(objects.iter().any(|[.., target]| *target == "gfx1100"), is_kept, "{binary}");
    }
    let finding = case.findings("R045")[0];
    assert_eq!((finding["subject"].as_str(), accounted(finding)), (Some("blas_run gfx1100"), 1));
}

#[test]
fn a_binary_keeps_some_arch() {
    let all = "exclude_architectures = ['gfx1100', 'gfx1101', 'gfx1102', 'gfx1151', 'gfx1200', 'gfx1201']\n";
    let expected = ["packages.rocm-blas leaves out all of its device code", "at least one arch"];
    Case::new().is_no_configuration(&format!("[packages.rocm-blas]\n{all}"), &expected);
    let expected = ["bin/exblas-bench", "none of its device code is for a grouped arch"];
    Case::new().is_no_configuration(&format!("[components.blas_run]\n{all}"), &expected);
}

#[test]
fn rules_of_nothing_are_typos() {
    for (table, message) in [
        ("components.blass", "components.blass: there is no such artifact or component"),
        ("components.blas_lib_all", "there is no such artifact or component"),
        ("packages.rocm-blas-gfx110x", "no package with host files has this name"),
    ] {
        let table = format!("[{table}]\nexclude_architectures = ['gfx1100']\n");
        Case::new().is_no_configuration(&table, &["packaging.toml: line 8, column 1: ", message]);
    }
}
