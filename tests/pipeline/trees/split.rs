//! Trees whose binaries were split before.

use std::fs;

use support::example::{names, plant, rockpack, tree};
use support::tools;
use support::trees::{Trees, assert_same};

use crate::trees::expected;

/// The artifacts of the first group without `left_out`, split and installed into one tree.
fn installed(left_out: Option<&str>) -> Trees {
    let trees = Trees::default();
    let by_hand = trees.by_hand("by-hand", 0);
    if let Some(artifact) = left_out {
        fs::remove_dir_all(by_hand.join(artifact)).unwrap();
    }
    let mut split = rockpack();
    split.arg("split").arg(&by_hand).arg("--output-dir").arg(trees.path("split"));
    tools::run(&mut split);
    let artifacts = trees.path("split/by-hand");
    for artifact in names(&artifacts) {
        plant(&tree(&artifacts.join(artifact).join("stage")), &trees.path("rocm"), false);
    }
    trees
}

#[test]
fn split_libraries_give_the_packages_of_whole_ones() {
    let trees = installed(Some("blas_test_generic"));
    let expected = trees.packages(&[trees.path("by-hand")], &[]);
    assert_same(&trees.packages(&[trees.path("rocm")], &[]), &expected, "split");
    fs::remove_dir_all(trees.path("rocm/lib/.kpack")).unwrap();
    trees.packages(&[trees.path("rocm")], &[]);
    let findings = trees.findings("R031");
    let files = findings.iter().map(|finding| crate::text(&finding["subject"]));
    let libraries =
        ["blas_lib_generic/lib/librocblas.so.5", "sparse_lib_generic/lib/librocsparse.so.1"];
    assert!(files.eq(libraries.map(|file| format!("rocm/{file}"))), "{findings:?}");
}

/// The archives of tests are where those of the libraries are.
#[test]
fn split_tests_give_the_packages_of_whole_ones() {
    let trees = installed(None);
    assert_same(&trees.packages(&[trees.path("rocm")], &[]), expected(), "split");
}
