//! Where the install prefix is, and what lies outside of it.

use std::fs;

use serde_json::json;
use support::example::rockpack;
use support::trees::{Trees, assert_same, named, native, text};

use crate::refusals::{FAILED, USAGE, refused};
use crate::trees::assert_has;

/// A DESTDIR with two prefixes, as a folder and as a tarball.
fn doubtful() -> Trees {
    let trees = Trees::default();
    trees.put("root/opt/rocm-7.1.0/lib/libhiprtc.so.7", native());
    trees.put("root/usr/lib/librocsparse.so.1", native());
    trees.put("root/etc/conf", text("text"));
    trees.put("root/opt/other/notes", text("text"));
    trees.tarball("root.tar.gz", "root", &["."]);
    trees
}

#[test]
fn several_prefixes_are_asked_about() {
    let trees = doubtful();
    for input in ["root", "root.tar.gz"].map(|name| trees.path(name)) {
        let about = input.to_str().unwrap();
        let expected = [about, "may have several install prefixes: usr, opt/rocm-7.1.0"];
        refused(&mut trees.build(&[&input], &[]), USAGE, &[expected[0], expected[1], "--prefix"]);
        for command in ["plan", "discover", "inspect"] {
            refused(rockpack().arg(command).arg(&input), USAGE, &expected);
        }
    }
}

#[test]
fn the_prefix_of_the_run_decides() {
    let trees = doubtful();
    let option = ["--prefix", "/opt/rocm-7.1.0"];
    let expected = trees.packages(&[trees.path("root/opt/rocm-7.1.0")], &option);
    assert_has(&expected, "rocm-core-hip");
    assert!(trees.findings("R005").is_empty());
    for name in ["root", "root.tar.gz"] {
        assert_same(&trees.packages(&[trees.path(name)], &option), &expected, name);
        let outside = json!(["etc/conf", "opt/other/notes", "usr/lib/librocsparse.so.1"]);
        assert_eq!(trees.findings("R005")[0]["files"], outside, "{name}");
    }
    // The folder of the one that is meant needs no option.
    assert_has(&trees.packages(&[trees.path("root/usr")], &[]), "rocm-sparse");
    // Without the other, nothing is in doubt.
    fs::remove_dir_all(trees.path("root/usr")).unwrap();
    assert_has(&trees.packages(&[trees.path("root")], &[]), "rocm-core-hip");
}

#[test]
fn a_prefix_that_no_rule_finds_can_be_given() {
    let trees = Trees::default();
    trees.put("root/srv/gpu/lib/libhiprtc.so.7", native());
    trees.put("root/var/notes", text("text"));
    let input = [trees.path("root")];
    refused(&mut trees.build(&input, &[]), USAGE, &["root: ", "or an install tree"]);
    assert_has(&trees.packages(&input, &["--prefix", "/srv/gpu"]), "rocm-core-hip");
    assert_eq!(trees.findings("R005")[0]["files"], json!(["var/notes"]));
}

/// Folders in a tree that are named like artifacts do not make it a shard.
#[test]
fn names_in_a_tree_may_be_those_of_artifacts() {
    let trees = Trees::default();
    trees.put("rocm/lib/libhiprtc.so.7", native());
    trees.put("rocm/share/hip_test_data/notes", text("text"));
    trees.put("rocm/lib/sources.tar.xz", text("text"));
    assert_has(&trees.packages(&[trees.path("rocm")], &[]), "rocm-core-hip");
}

/// A manifest lists the prefix, so nothing in it is taken for one.
#[test]
fn a_manifest_takes_the_place_of_the_search() {
    let trees = Trees::default();
    trees.put("own/stage/usr/lib/libown.so.1", native());
    trees.put("own/stage/etc/own.conf", text("text"));
    trees.put("own/stage/bin/own", text("text"));
    trees.put("by-hand/shard/own_lib_generic/artifact_manifest.txt", text("stage\n"));
    for (path, entry) in [
        ("usr/lib/libown.so.1", native()),
        ("etc/own.conf", text("text")),
        ("bin/own", text("text")),
    ] {
        trees.put(&format!("by-hand/shard/own_lib_generic/stage/{path}"), entry);
    }
    let own = trees.path("own");
    let manifest = |lines: &str| fs::write(own.join("artifact_manifest.txt"), lines).unwrap();
    manifest("stage\n");
    let made = trees.packages(&[named("own", &own)], &[]);
    assert!(trees.findings("R156").is_empty());
    assert_same(&made, &trees.packages(&[trees.path("by-hand")], &[]), "by hand");
    refused(&mut trees.build(&[&own], &[]), USAGE, &["is one artifact"]);
    for (lines, expected) in
        [("stage\nother\n", "lists several stage prefixes"), ("gone\n", "has no files in its")]
    {
        manifest(lines);
        refused(&mut trees.build(&[named("own", &own)], &[]), USAGE, &["own", expected]);
    }
}

/// An artifact beside folders of a tree is not lost, and archives of sources make no shard.
#[test]
fn shards_and_trees_are_told_apart() {
    let trees = Trees::default();
    let shard = trees.by_hand("shard", 0);
    trees.put("shard/bin/t", text("text"));
    let manifest = shard.join("sparse_lib_generic/artifact_manifest.txt");
    trees.packages(&[&shard], &[]);
    assert!(trees.findings("R008").is_empty());
    fs::remove_file(&manifest).unwrap();
    refused(&mut trees.build(&[&shard], &[]), FAILED, &["the artifact has no manifest"]);

    trees.put("root/usr/lib/librocsparse.so.1", native());
    for odd in ["root/root/sources.tar.xz", "root/usr/lib/data_test_x/a", "root/my_lib_x/a"] {
        trees.put(odd, text("text"));
    }
    assert_has(&trees.packages(&[trees.path("root")], &[]), "rocm-sparse");
    let outside = json!(["my_lib_x/a", "root/sources.tar.xz"]);
    assert_eq!(trees.findings("R005")[0]["files"], outside);

    trees.put("sources/include/rocsparse.h", text("text"));
    trees.put("sources/CMakeLists.txt", text("text"));
    refused(&mut trees.build(&[trees.path("sources")], &[]), USAGE, &["cmake --install"]);
    let packed = trees.tarball("sources.tar.gz", ".", &["sources"]);
    refused(&mut trees.build(&[packed], &[]), USAGE, &["cmake --install"]);
}
