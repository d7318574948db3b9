//! Trees in all forms give, byte for byte, the packages of artifacts made by hand.

use std::fs;
use std::path::Path;

use support::example::{VERSION, names, rockpack};
use support::tools;
use support::trees::{Trees, assert_same, named, text};

use crate::trees::expected;

#[test]
fn folders_give_the_packages_of_artifacts_made_by_hand() {
    let trees = Trees::default();
    let places =
        ["", "usr", "opt/rocm-7.1.0", "opt/rocm/core-7.14", "rocm-7.1-Linux", "around/opt/rocm"];
    for (number, place) in places.iter().enumerate() {
        trees.tree(&format!("{number}/{place}"), 0);
        let packages = trees.packages(&[trees.path(&number.to_string())], &[]);
        assert_same(&packages, expected(), place);
    }
    std::os::unix::fs::symlink(trees.path("0"), trees.path("link")).unwrap();
    let link = trees.path("link");
    let packages = trees.packages(&[Path::new("--artifacts"), link.as_path()], &[]);
    assert_same(&packages, expected(), "--artifacts");
}

#[test]
fn tarballs_give_the_packages_of_artifacts_made_by_hand() {
    let trees = Trees::default();
    let tree = trees.tree("around/rocm", 0);
    // One member of both is a hard link.
    fs::remove_file(tree.join("lib/librocsparse.so.1")).unwrap();
    fs::hard_link(tree.join("lib/librocblas.so.5"), tree.join("lib/librocsparse.so.1")).unwrap();
    let inside = names(&tree);
    let inside: Vec<&str> = inside.iter().map(String::as_str).collect();
    for (name, folder, members) in [
        ("rocm.tar", "around/rocm", &["."][..]),
        ("rocm.tar.gz", "around", &["rocm"]),
        ("rocm.tgz", "around/rocm", &inside[..]),
        ("rocm.tar.xz", "around", &["./rocm"]),
        ("rocm.tar.zst", "", &["around"]),
    ] {
        let tarball = trees.tarball(name, folder, members);
        let packages = trees.packages(&[tarball], &["--memory", "1G"]);
        assert_same(&packages, expected(), name);
    }
}

#[test]
fn a_plan_of_a_tree_is_that_of_artifacts_made_by_hand() {
    let trees = Trees::default();
    let [tree, by_hand] = [trees.tree("rocm", 0), trees.by_hand("by-hand/rocm", 0)];
    let plan = |options: &[&str], input: &Path| {
        let mut plan = rockpack();
        tools::succeed(plan.args(["plan", "--version", VERSION]).args(options).arg(input))
    };
    let expected = plan(&[], &by_hand);
    assert!(expected.contains("rocm-sparse-gfx110x"), "{expected}");
    assert_eq!(plan(&[], &tree), expected);
    assert_eq!(plan(&["--artifacts"], &tree), expected);
}

#[test]
fn a_single_file_gives_the_packages_of_an_artifact_with_it() {
    let trees = Trees::default();
    let tree = trees.tree("rocm", 0);
    for (name, component, path) in [
        ("", "sparse_lib", "lib/librocsparse.so.1"),
        ("", "blas_test", "bin/rocblas-bench"),
        ("hello", "hello_lib", "lib/librocsparse.so.1"),
        ("hello_test", "hello_test", "bin/rocblas-bench"),
    ] {
        let file = tree.join(path);
        let shard = format!("{component}-by-hand");
        let artifact = format!("{shard}/{component}_generic");
        trees.put(&format!("{artifact}/artifact_manifest.txt"), text("stage\n"));
        let copy = trees.put(&format!("{artifact}/stage/{path}"), text(""));
        fs::copy(&file, copy).unwrap();
        let input = if name.is_empty() { file.display().to_string() } else { named(name, &file) };
        let expected = trees.packages(&[trees.path(&shard)], &[]);
        assert_same(&trees.packages(&[input], &[]), &expected, &shard);
    }
}
