//! Hotfixes of sets that several machines build.

use std::fs;
use std::path::Path;

use support::example::{contents, rockpack};
use support::tools;

use super::{BLAS, Case, set};

/// The parts of a hotfix join to the output of one machine; they accept receipts of parts.
#[test]
fn a_hotfix_is_built_in_parts() {
    let case = Case::new(&[]);
    for part in ["1/3", "2/3", "3/3"] {
        let mut command = case.command("build", "1");
        tools::run(command.args(["--partition", part]).arg("--out").arg(case.path("parts-1")));
    }
    case.change_blas();
    case.change_sparse();
    tools::run(&mut case.hotfix("2", &["1"]));
    let mut folders = Vec::new();
    for part in ["1/2", "2/2"] {
        let folder = case.path(&part.replace('/', "-"));
        let mut command = case.command("build", "2");
        for earlier in 1..=3 {
            let receipt = case.path("parts-1").join(format!("packages-{earlier}-of-3.json"));
            command.arg("--since").arg(receipt);
        }
        tools::run(command.args(["--partition", part]).arg("--out").arg(&folder));
        folders.push(folder);
    }
    let joined = case.path("joined.json");
    let mut verify = rockpack();
    verify.arg("verify").args(&folders).arg(case.path("1")).arg("--join").arg(&joined);
    let said = tools::told(&mut verify);
    assert!(!said.contains("not named"), "{said}");
    assert_eq!(fs::read(joined).unwrap(), fs::read(case.receipt("2")).unwrap());
    let mut whole = contents(&case.path("2"));
    whole.retain(|name, _| !name.ends_with(".json"));
    let mut parts: Vec<_> = folders.iter().flat_map(|folder| contents(folder)).collect();
    parts.retain(|(name, _)| !name.ends_with(".json"));
    parts.sort();
    assert_eq!(parts, whole.into_iter().collect::<Vec<_>>());
}

/// One part of a set is rebuilt, and goes with the earlier build's other parts.
#[test]
fn one_part_is_built_again() {
    let case = Case::new(&[]);
    case.change_blas();
    let mut command = case.command("build", "2");
    command.arg("--since").arg(case.receipt("1"));
    tools::run(command.args(["--partition", "1/2"]).arg("--out").arg(case.path("2")));
    assert_eq!(case.made("2"), set(&BLAS));
    // The other part has nothing to rebuild, so this part's receipt lists everything.
    let receipt = case.path("2").join("packages-1-of-2.json");
    let said = told_by_update(&case, &receipt, "3");
    assert!(said.contains("keeps 24") && !said.contains("R114"), "{said}");
    let mut command = case.command("build", "1");
    tools::run(command.args(["--partition", "1/2"]).arg("--out").arg(case.path("part")));
    let said = told_by_update(&case, &case.path("part/packages-1-of-2.json"), "4");
    assert!(
        said.contains("R114 earlier-parts-absent: 7.1.0-1: is an earlier set in 2 parts"),
        "{said}"
    );
    let depends = case.depends("2", "rocm-blas");
    assert!(depends.contains("rocm-common (>= 7.1.0-1)"), "{depends}");
}

fn told_by_update(case: &Case, receipt: &Path, out: &str) -> String {
    let mut command = case.command("build", "3");
    tools::told(command.arg("--since").arg(receipt).arg("--out").arg(case.path(out)))
}
