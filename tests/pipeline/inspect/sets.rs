//! `rockpack inspect` of package sets: a receipt, or the folder that has one.

use support::example::Set;

use super::*;

#[track_caller]
fn printed_by_build(set: &Set) -> String {
    String::from_utf8(set.output.stdout.clone()).unwrap()
}

#[test]
fn a_set_is_shown_as_its_build_showed_it() {
    let set = Set::build();
    let said = String::from_utf8(set.output.stderr.clone()).unwrap();
    for path in [set.out(), set.file("packages.json")] {
        let shown = inspect(&[path.to_str().unwrap()]);
        assert!(shown.status.success());
        assert_eq!(String::from_utf8(shown.stdout).unwrap(), printed_by_build(&set));
        let findings = String::from_utf8(shown.stderr).unwrap();
        assert!(findings.contains(" R070 library-unresolved: "), "{findings}");
        assert!(findings.lines().all(|line| said.lines().any(|it| it == line)), "{findings}");
        assert_eq!(json(&path), json!({ "type": "receipt", "receipt": set.receipt() }));
    }
}

#[test]
fn parts_and_sets_with_kept_packages_are_shown() {
    let whole = Set::build();
    let earlier = whole.file("packages.json");
    for (options, name, end) in [
        (&["--partition", "1/2"][..], "packages-1-of-2.json", " packages of part 1/2, "),
        (
            &["--release", "2", "--since", earlier.to_str().unwrap()][..],
            "packages.json",
            "24 packages of earlier sets kept\n",
        ),
    ] {
        let set = Set::with(options);
        let shown = text(&set.file(name));
        assert_eq!(shown, printed_by_build(&set));
        assert!(shown.contains(end), "{shown}");
    }
}

#[test]
fn receipts_that_cannot_be_read_are_errors_with_their_names() {
    let set = Set::build();
    let path = set.file("packages.json");
    let whole = fs::read_to_string(&path).unwrap();
    let later = whole.replacen("\"schema\":1", "\"schema\":2", 1);
    assert_ne!(later, whole);
    for (content, message) in [
        (whole.trim_end().strip_suffix('}').unwrap(), "is not a rockpack receipt"),
        ("{}", "is not a rockpack receipt"),
        (&*later, "receipt schema 2 is unknown"),
    ] {
        fs::write(&path, content).unwrap();
        for named in [set.out(), path.clone()] {
            let output = inspect(&[named.to_str().unwrap()]);
            let errors = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{errors}");
            assert!(errors.contains(&format!("{}: ", path.display())), "{errors}");
            assert!(errors.contains(message), "{errors}");
        }
    }
}

#[test]
fn sizes_beyond_any_sum_are_shown() {
    let set = Set::build();
    let mut receipt = set.receipt();
    for package in receipt["packages"].as_array_mut().unwrap() {
        package["size"] = u64::MAX.into();
    }
    let path = set.scratch("receipt.json");
    fs::write(&path, receipt.to_string()).unwrap();
    assert!(text(&path).contains("\n24 packages, 18446744073.70 GB; "), "{}", text(&path));
}
