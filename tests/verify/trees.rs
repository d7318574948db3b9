//! `verify --against` with install trees in all their forms.

use std::fs;
use std::path::Path;

use support::tampered::verify;
use support::trees::{Trees, library, named, native, text};

const PREFIX: &str = "root/opt/rocm-7.1.0";

/// A DESTDIR with a library and a header.
fn installed() -> Trees {
    let trees = Trees::default();
    trees.put(&format!("{PREFIX}/lib/librocsparse.so.1"), library());
    trees.put(&format!("{PREFIX}/include/rocsparse/rocsparse.h"), text("#pragma once\n"));
    trees
}

/// Fails unless the packages differ from `inputs` as `codes` say; returns what `verify` says.
#[track_caller]
fn fired(trees: &Trees, inputs: &[&str], codes: &[&str]) -> String {
    let against: Vec<&str> = inputs.iter().flat_map(|input| ["--against", *input]).collect();
    let run = verify(&[trees.out().to_str().unwrap()], &against);
    run.fired(codes);
    run.text
}

#[test]
fn packages_are_compared_with_trees_of_all_forms() {
    let trees = installed();
    let folder = trees.path("root");
    trees.packages(&[&folder], &[]);
    let shown = |path: &Path| path.display().to_string();
    let inputs = [
        shown(&folder),
        shown(&trees.path(PREFIX)),
        shown(&trees.tarball("root.tar.gz", "root", &["."])),
        named("sparse", &folder),
    ];
    for input in &inputs {
        fired(&trees, &[input], &[]);
    }
    let more = trees.put(&format!("{PREFIX}/lib/more.txt"), text("more"));
    trees.tarball("root.tar.gz", "root", &["."]);
    for input in &inputs {
        let said = fired(&trees, &[input], &["V013"]);
        assert!(said.contains("/opt/rocm-7.1/lib/more.txt"), "{said}");
    }
    fs::remove_file(more).unwrap();
    trees.put(&format!("{PREFIX}/include/rocsparse/rocsparse.h"), text("other\n"));
    let said = fired(&trees, &[&inputs[0]], &["V013"]);
    assert!(said.contains("rocsparse.h") && said.contains("other content"), "{said}");
}

#[test]
fn packages_are_compared_with_single_files() {
    let trees = installed();
    let file = trees.path(PREFIX).join("lib/librocsparse.so.1");
    trees.packages(&[&file], &[]);
    let file = file.to_str().unwrap();
    fired(&trees, &[file], &[]);
    let other = trees.put("librocsparse-more.so.1", native());
    let [file, other] = [file, other.to_str().unwrap()].map(|path| format!("sparse={path}"));
    let said = fired(&trees, &[&file, &other], &["V013"]);
    assert!(said.contains("lib/librocsparse-more.so.1"), "{said}");
}

/// The set says for which prefix it was made.
#[test]
fn the_prefix_of_the_set_decides_where_that_of_the_tree_is() {
    let trees = installed();
    trees.put("root/usr/lib/librocsparse.so.1", library());
    let root = trees.path("root");
    trees.packages(&[&root], &["--prefix", "/opt/rocm-7.1.0"]);
    fired(&trees, &[root.to_str().unwrap()], &[]);
}
