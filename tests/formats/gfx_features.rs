//! The features that a target ID can fix, checked with the compiler that defines them.
//!
//! Needs clang-19.

use std::process::Command;

use rockpack_core::gfx::BaseArch;
use support::tools::need;

/// Every processor in the table, and some others.
const PROCESSORS: &[&str] = &[
    "gfx10-1-generic",
    "gfx10-3-generic",
    "gfx1010",
    "gfx1011",
    "gfx1012",
    "gfx1013",
    "gfx1030",
    "gfx1031",
    "gfx1032",
    "gfx1033",
    "gfx1034",
    "gfx1035",
    "gfx1036",
    "gfx11-generic",
    "gfx1100",
    "gfx1101",
    "gfx1102",
    "gfx1103",
    "gfx1150",
    "gfx1151",
    "gfx1152",
    "gfx12-generic",
    "gfx1200",
    "gfx1201",
    "gfx1250",
    "gfx801",
    "gfx802",
    "gfx803",
    "gfx810",
    "gfx9-4-generic",
    "gfx9-generic",
    "gfx900",
    "gfx902",
    "gfx904",
    "gfx906",
    "gfx908",
    "gfx909",
    "gfx90a",
    "gfx90c",
    "gfx940",
    "gfx941",
    "gfx942",
    "gfx950",
];

/// Tells whether clang accepts the target ID.
fn clang_accepts(target: &str) -> bool {
    let arguments = ["--target=amdgcn-amd-amdhsa", "-nogpulib", "-x", "c", "-E", "/dev/null"];
    let mut clang = Command::new("clang-19");
    clang.args(arguments).arg(format!("-mcpu={target}")).output().unwrap().status.success()
}

#[test]
fn clang_agrees_on_every_processor_that_it_knows() {
    need(&["clang-19"]);
    let mut judged = 0;
    for arch in PROCESSORS {
        if !clang_accepts(arch) {
            continue;
        }
        judged += 1;
        let supported = arch.parse::<BaseArch>().unwrap().supported_features();
        for feature in ["sramecc", "xnack"] {
            let accepted = clang_accepts(&format!("{arch}:{feature}+"));
            assert_eq!(accepted, supported.contains(&feature), "{arch} {feature}");
        }
    }
    // clang 19 knows all processors except gfx950, gfx1250 and gfx9-4-generic.
    assert!(judged >= 40, "{judged}");
}
