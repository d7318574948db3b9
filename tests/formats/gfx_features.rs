//! The features that a target ID can fix, checked with the compiler that defines them.
//!
//! Needs clang-19.

use std::collections::BTreeSet;
use std::process::Command;

use rockpack_core::gfx::processors;
use support::tools::{need, told};

/// The target IDs among `targets` that clang refuses; it names each. `-###` compiles nothing.
fn refused(targets: &[String]) -> BTreeSet<String> {
    let mut clang = Command::new("clang-19");
    clang.args(["-###", "--cuda-device-only", "-nogpulib", "-nogpuinc", "-x", "hip", "/dev/null"]);
    clang.args(targets.iter().map(|target| format!("--offload-arch={target}")));
    let said = told(&mut clang);
    let named = said.lines().filter_map(|line| line.split_once("error: invalid target ID '"));
    named.map(|(_, rest)| rest.split('\'').next().unwrap().to_owned()).collect()
}

#[test]
fn clang_agrees_on_every_processor_that_it_knows() {
    need(&["clang-19"]);
    let archs = || processors().iter().map(|row| &row.name);
    let spelled = archs()
        .flat_map(|arch| ["", ":sramecc+", ":xnack+"].map(|feature| format!("{arch}{feature}")));
    let refused = refused(&spelled.collect::<Vec<_>>());
    let mut judged = 0;
    for arch in archs().filter(|arch| !refused.contains(arch.as_str())) {
        judged += 1;
        let supported = arch.supported_features();
        for feature in ["sramecc", "xnack"] {
            let accepted = !refused.contains(&format!("{arch}:{feature}+"));
            assert_eq!(accepted, supported.contains(&feature), "{arch} {feature}");
        }
    }
    // clang 19 does not know gfx950, gfx9-4-generic and most targets after gfx1201.
    assert!(judged >= 50, "{judged}");
}
