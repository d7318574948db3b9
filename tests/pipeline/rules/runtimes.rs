//! HIP runtimes that cannot read kernel archives, and libraries that need one.

use std::fs;
use std::process::Command;

use support::fat_wheels::linked;
use support::tools;

use crate::rules::{Case, find, patch};

const LIBRARY: &str = "lib/libexblas.so.1.2";
const RUNTIME: &str = "libamdhip64.so.7";

const ACCEPT: &str = "[[accept]]\ncode = 'R143'\nsubject = '*libamdhip64.so*'\n\
                      reason = 'another runtime takes its place'\n";

/// Puts a HIP runtime with this code into the shard of the first group.
fn with_runtime(code: &str) -> Case {
    let case = Case::new();
    let runtime = linked(case.folder.path(), RUNTIME, code, &[]);
    fs::rename(runtime, case.file(0, &format!("lib/{RUNTIME}"))).unwrap();
    case
}

/// The functions that a runtime takes from others or defines decide, not its texts.
#[test]
fn a_runtime_of_the_set_has_to_read_archives() {
    let case = with_runtime("const char *text = \"librocm_kpack.so.0\";\n");
    let expected =
        ["R143", "blas_lib/lib/libamdhip64.so.7", "does not read", "ROCM_KPACK_ENABLED", "accept"];
    case.is_refused("", &expected);
    let output = case.run(ACCEPT, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("accepted: R143"), "{said}");
    let calls =
        "int kpack_load_code_object(void);\nint f(void) { return kpack_load_code_object(); }\n";
    let case = with_runtime(calls);
    // Programs do not load separate debug information.
    let [runtime, debug] = ["", ".debug"].map(|end| case.file(0, &format!("lib/{RUNTIME}{end}")));
    let rest = case.folder.path().join("rest");
    tools::need(&["eu-strip"]);
    tools::run(Command::new("eu-strip").arg("-f").arg(debug).arg("-o").arg(rest).arg(runtime));
    let output = case.run("", &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("R143"), "{said}");
}

#[test]
fn libraries_for_runtimes_before_rocm_7_are_named() {
    let case = Case::new();
    for group in 0..3 {
        patch(&case.file(group, LIBRARY), |bytes| {
            let at = find(bytes, b"libamdhip64.so.7\0");
            bytes[at + 15] = b'6';
        });
    }
    let case = case.built("");
    let noticed = case.findings("R142");
    assert_eq!(noticed.len(), 3, "{noticed:?}");
    for finding in noticed {
        assert!(finding["message"].as_str().unwrap().contains("libamdhip64.so.6"), "{finding}");
    }
    assert!(!case.code_objects(LIBRARY).is_empty());
}
