use std::collections::BTreeSet;

use super::*;

#[test]
fn codes_and_names_are_unique() {
    let ids: BTreeSet<_> = Check::ALL.iter().map(|check| check.id()).collect();
    let names: BTreeSet<_> = Check::ALL.iter().map(|check| check.name()).collect();
    assert_eq!([ids.len(), names.len()], [Check::ALL.len(); 2]);
}

#[test]
fn json_has_the_text_and_the_fields() {
    let problem = of_size(1);
    let json = serde_json::to_value(&problem).unwrap();
    let check = problem.code();
    assert_eq!((&json["code"], &json["name"]), (&check.id().into(), &check.name().into()));
    assert_eq!(json["subject"], problem.subject());
    assert_eq!(json["message"], problem.message());
    assert_eq!((&json["size"], &json["stated_size"]), (&1.into(), &0.into()));
}

#[test]
fn problems_that_differ_in_what_the_text_leaves_out_are_kept_in_one_order() {
    let (first, last) = (of_size(1), of_size(2));
    assert_eq!(first.to_string(), last.to_string());
    let kept = sorted([last.clone(), first.clone(), last.clone()]);
    assert_eq!(kept, [first.clone(), last.clone()]);
    assert_eq!(sorted([first.clone(), last, first]), kept);
}

/// The problem of a package that has `size` bytes and that a receipt states others of.
fn of_size(size: u64) -> Problem {
    Problem::ReceiptMismatch {
        file: "rocm-blas_7.1.0-1_amd64.deb".to_owned(),
        size,
        sha256: [0xab; 32].into(),
        stated_size: 0,
        stated_sha256: "ab".repeat(32),
    }
}

fn sorted(given: [Problem; 3]) -> Vec<Problem> {
    Problems { list: given.to_vec(), ..Problems::default() }.finish()
}

#[test]
fn of_very_many_problems_of_a_check_some_are_told() {
    let mut own = Problems::bounded();
    (0..REPORTED_MAX + 3).for_each(|at| own.add(package_missing(at)));
    own.add(Problem::OrphanFile { file: "a".to_owned() });
    let mut all = Problems::default();
    all.extend(own);
    // Each repository has a bound of its own; problems of anything else are all reported.
    all.add(package_missing(REPORTED_MAX + 3));
    let more: Vec<_> = all.more().iter().map(|more| (more.code, more.count)).collect();
    assert_eq!(more, [("V072", 3)]);
    assert_eq!(all.finish().len(), REPORTED_MAX + 2);
}

fn package_missing(at: usize) -> Problem {
    Problem::PackageMissing { file: at.to_string() }
}
