//! Several trees, and trees beside shards.

use std::fs;

use support::example::{GROUPS, shards};
use support::trees::{Trees, assert_same, library, named, native, text};

use crate::refusals::{FAILED, refused};
use crate::trees::assert_has;

/// Groups without the compiler's fallback for gfx906.
const CONFIG: &str = r#"primary_shard = "gfx110X-build"
[architecture_groups.gfx110X]
architectures = ["gfx1100", "gfx1101", "gfx1102"]
[architecture_groups.gfx115X]
architectures = ["gfx1151"]
"#;

#[test]
fn builds_for_two_gpus_give_one_host_package_and_the_kernels_of_both() {
    let trees = Trees::default();
    let config = trees.path("packaging.toml");
    fs::write(&config, CONFIG).unwrap();
    let more = ["--config", config.to_str().unwrap()];
    let shard = |group: usize| format!("{}-build", GROUPS[group].shard);
    let by_hand = [0, 1].map(|group| trees.by_hand(&format!("by-hand/{}", shard(group)), group));
    let inputs = [0, 1].map(|group| trees.tree(&shard(group), group));
    let packages = trees.packages(&inputs, &more);
    assert_same(&packages, &trees.packages(&by_hand, &more), "by hand");
    for name in ["blas", "blas-gfx110x", "blas-gfx115x", "sparse", "blas-tests-gfx115x"] {
        assert_has(&packages, &format!("rocm-{name}"));
    }
}

/// The second gets the name of the folder around it, too.
#[test]
fn builds_in_folders_of_one_name_are_told_apart() {
    let trees = Trees::default();
    let config = trees.path("packaging.toml");
    fs::write(&config, CONFIG.replace("gfx110X-build", "rocm")).unwrap();
    let more = ["--config", config.to_str().unwrap()];
    let by_hand = [("rocm", 0), ("two-rocm", 1)]
        .map(|(name, group)| trees.by_hand(&format!("by-hand/{name}"), group));
    let inputs = [("one/rocm", 0), ("two/rocm", 1)].map(|(name, group)| trees.tree(name, group));
    let packages = trees.packages(&inputs, &more);
    assert_same(&packages, &trees.packages(&by_hand, &more), "by hand");
    // A third build has no name left.
    let third = trees.tree("two/two/rocm", 0);
    let paths = [&inputs[0], &third].map(|path| path.to_str().unwrap());
    refused(&mut trees.build(&[&inputs[0], &inputs[1], &third], &more), FAILED, &paths);
}

/// The primary shard has the files of all.
#[test]
fn trees_without_a_common_file_are_parts_of_one_build() {
    let trees = Trees::default();
    for (place, path, entry) in [
        ("one/rocm", "lib/librocsparse.so.1", library()),
        ("other/rocm", "lib/libhiprtc.so.7", native()),
        ("third", "lib/libhiprtc-builtins.so.7", native()),
    ] {
        trees.put(&format!("{place}/{path}"), entry.clone());
        trees.put(&format!("all/{path}"), entry);
    }
    let expected = trees.packages(&[trees.path("all")], &[]);
    let parts = ["third", "other/rocm", "one/rocm"].map(|name| trees.path(name));
    assert_same(&trees.packages(&parts, &[]), &expected, "parts");
    assert!(trees.findings("R014").is_empty());
}

#[test]
fn parts_of_one_component_are_its_stage_prefixes() {
    let trees = Trees::default();
    let artifact = "by-hand/own_lib_generic";
    trees.put(&format!("{artifact}/artifact_manifest.txt"), text("stage\nstage-2\n"));
    for (tree, stage, path, entry) in [
        ("one", "stage", "lib/libone.so", library()),
        ("two", "stage-2", "lib/libtwo.so", native()),
    ] {
        trees.put(&format!("{tree}/{path}"), entry.clone());
        trees.put(&format!("{artifact}/{stage}/{path}"), entry);
    }
    let parts = ["one", "two"].map(|name| named("own", &trees.path(name)));
    let expected = trees.packages(&[trees.path("by-hand")], &[]);
    assert_same(&trees.packages(&parts, &[]), &expected, "parts");
}

#[test]
fn trees_and_shards_are_joined() {
    let trees = Trees::default();
    let shard = GROUPS[1].folder(&shards());
    let expected = trees.packages(&[trees.by_hand("by-hand/rocm", 0), shard.clone()], &[]);
    let packages = trees.packages(&[trees.tree("rocm", 0), shard], &[]);
    assert_same(&packages, &expected, "beside a shard");
    assert_has(&packages, "rocm-blas-gfx115x");
}
