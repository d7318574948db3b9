//! The features that a target ID can fix, checked with the compiler that defines them.
//!
//! Needs clang-19.

use std::process::Command;

use rockpack_core::gfx::processors;
use support::tools::need;

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
    for arch in processors().iter().map(|row| &row.name) {
        if !clang_accepts(arch.as_str()) {
            continue;
        }
        judged += 1;
        let supported = arch.supported_features();
        for feature in ["sramecc", "xnack"] {
            let accepted = clang_accepts(&format!("{arch}:{feature}+"));
            assert_eq!(accepted, supported.contains(&feature), "{arch} {feature}");
        }
    }
    // clang 19 does not know gfx950, gfx9-4-generic and most targets after gfx1201.
    assert!(judged >= 50, "{judged}");
}
