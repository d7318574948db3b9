//! The order of versions, compared with dpkg's and rpm's.

use std::cmp::Ordering;
use std::process::Command;

use rockpack_archive::deb;
use rockpack_archive::package_file::Format;
use support::tools;

const VERSIONS: [&str; 24] = [
    "7.1.0-1",
    "7.1.0-2",
    "7.1.0-10",
    "7.1.0-1.1",
    "7.1.0-1.el9",
    "7.1.0~rc1-1",
    "7.1.0~rc2-1",
    "7.1.0~20251104-1",
    "7.1.0+git5-1",
    "7.1.0.post1-1",
    "7.1.0a-1",
    "7.1.1-1",
    "7.1-1",
    "7.10.0-1",
    "7.9-1",
    "07.1.0-1",
    "7.1.0~~-1",
    "1:7.0-1",
    "0:7.1.0-1",
    "70100-1",
    "6.4.0.60400-47",
    "7.1.0-1~",
    "7.1.0-1+b1",
    "7.1.00-1",
];

/// Compares every pair of versions with both functions.
fn compare_all(ours: fn(&str, &str) -> Ordering, mut theirs: impl FnMut(&str, &str) -> Ordering) {
    for one in VERSIONS {
        for other in VERSIONS {
            assert_eq!(ours(one, other), theirs(one, other), "{one} {other}");
        }
    }
}

#[test]
fn debian_versions_are_in_dpkgs_order() {
    tools::need(&["dpkg"]);
    compare_all(deb::compare_versions, |one, other| {
        if dpkg_holds(one, "lt", other) {
            Ordering::Less
        } else if dpkg_holds(one, "eq", other) {
            Ordering::Equal
        } else {
            Ordering::Greater
        }
    });
}

fn dpkg_holds(one: &str, relation: &str, other: &str) -> bool {
    let arguments = ["--compare-versions", one, relation, other];
    Command::new("dpkg").args(arguments).status().unwrap().success()
}

#[test]
fn rpm_versions_are_in_rpms_order() {
    tools::need(&["rpm"]);
    // In the order of `compare_all`.
    let lua = "%{lua: local all = {VERSIONS} for _, one in ipairs(all) do \
               for _, other in ipairs(all) do print(rpm.vercmp(one, other) .. \" \") end end}";
    let lua = lua.replace("VERSIONS", &VERSIONS.map(|version| format!("\"{version}\"")).join(","));
    let told = tools::succeed(Command::new("rpm").args(["--eval", &lua]));
    let mut told = told.split_whitespace().map(|word| word.parse::<i32>().unwrap().cmp(&0));
    compare_all(|one, other| Format::Rpm.compare_versions(one, other), |_, _| told.next().unwrap());
    assert_eq!(told.next(), None);
}
