//! Failed checks in `verify --json`: beside the text, fields for programs.

use std::fs;

use serde_json::{Value, json};
use support::tampered::Set;

const LIBRARY: &str = "opt/rocm-7.1/lib/libexcblas.so.1.0";
const ARCHIVE: &str = "opt/rocm-7.1/lib/.kpack/blas_lib_gfx1151.kpack";

/// The only problem with this code.
#[track_caller]
fn only(set: &Set, arguments: &[&str], code: &str) -> Value {
    let mut problems = set.verify(arguments).problems();
    problems.retain(|problem| problem["code"] == code);
    assert_eq!(problems.len(), 1, "{problems:#?}");
    problems.remove(0)
}

/// The names of all fields, in no order.
fn names(problem: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = problem.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

#[test]
fn device_code_in_the_wrong_package_names_package_path_and_archs() {
    for set in Set::of_each_format() {
        let (from, to) = (set.kernels("gfx115x"), set.kernels("gfx110x"));
        let bytes = set.file_of(&from, ARCHIVE);
        set.edit(&from, |root| fs::remove_file(root.join(ARCHIVE)).unwrap());
        set.edit(&to, |root| fs::write(root.join(ARCHIVE), bytes).unwrap());
        let problem = only(&set, &[], "V022");
        assert_eq!(names(&problem), ["code", "message", "name", "place", "reason", "subject"]);
        let file = json!({ "package": to, "path": format!("/{ARCHIVE}") });
        assert_eq!(problem["place"], json!({ "file": file }));
        assert_eq!(problem["name"], "foreign-arch");
        assert_eq!(problem["subject"], format!("{to}:/{ARCHIVE}"));
        let message = "holds code for gfx1151; the package is for gfx1100, gfx1101, gfx1102";
        assert_eq!(problem["message"], message);
        assert_eq!(problem["reason"], message);
    }
}

#[test]
fn a_lost_file_names_its_path() {
    for set in Set::of_each_format() {
        set.edit(&set.host(), |root| fs::remove_file(root.join(LIBRARY)).unwrap());
        let problem = only(&set, &["--against", "examples/shards"], "V013");
        assert_eq!(names(&problem), ["code", "loss", "message", "name", "path", "subject"]);
        assert_eq!(problem["path"], format!("/{LIBRARY}"));
        assert_eq!(problem["loss"], "absent");
        assert_eq!(problem["message"], "is in no package");
    }
}

#[test]
fn a_package_that_is_not_the_receipts_comes_with_both_sizes_and_digests() {
    for set in Set::of_each_format() {
        let (name, mut stated) = (set.host(), None);
        set.edit_receipt(|receipt| {
            let mut records = receipt.packages.iter_mut();
            let record = records.find(|record| record.file_name == name).unwrap();
            record.size += 1;
            stated = Some((record.size, record.sha256.clone()));
        });
        let (stated_size, sha256) = stated.unwrap();
        let problem = only(&set, &[], "V002");
        let expected = json!({
            "code": "V002",
            "name": "receipt-mismatch",
            "subject": name,
            "message": "its size or SHA-256 differs from the receipt",
            "file": name,
            "size": stated_size - 1,
            "sha256": sha256,
            "stated_size": stated_size,
            "stated_sha256": sha256,
        });
        assert_eq!(problem, expected);
    }
}
