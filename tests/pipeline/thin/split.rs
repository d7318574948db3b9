//! Prefixes whose libraries were split: archives of other targets go, everything else stays.

use support::example::{contents, files, names, plant, tree};
use support::tools;

use super::{Room, bundle_of, code};

/// An install prefix of the components sparse and rand, split.
fn room() -> Room {
    let room = Room::new();
    let both = [bundle_of(&["gfx1100", "gfx90a"], 1), bundle_of(&["gfx90a", "gfx1100"], 11)];
    room.library("sparse/lib/libx.so", &both);
    room.library("rand/lib/liby.so", &[bundle_of(&["gfx90a"], 21)]);
    tools::run(&mut room.rockpack("split sparse=./sparse rand=./rand --output-dir split"));
    for shard in names(&room.path("split")) {
        for artifact in names(&room.path(&format!("split/{shard}"))) {
            let stage = room.path(&format!("split/{shard}/{artifact}/stage"));
            plant(&tree(&stage), &room.path("prefix"), false);
        }
    }
    room
}

#[test]
fn archives_of_other_targets_go_and_kept_code_can_be_extracted() {
    let room = room();
    let mut expected = files(&room.path("prefix"));
    room.thin("prefix --target gfx1100 --in-place --allow-empty").done();
    for archive in ["rand_lib_gfx90a", "sparse_lib_gfx90a"] {
        expected.remove(&format!("lib/.kpack/{archive}.kpack")).unwrap();
    }
    let after = files(&room.path("prefix"));
    assert!(after == expected, "{:?}", after.keys());
    let manifests = after.keys().filter(|path| path.ends_with(".kpm"));
    assert_eq!(manifests.count(), 2);
    let archive = "prefix/lib/.kpack/sparse_lib_gfx1100.kpack";
    tools::run(&mut room.rockpack(&format!("extract {archive} --out code")));
    let codes: Vec<_> = contents(&room.path("code")).into_values().collect();
    assert!(codes == [code("gfx1100", 1), code("gfx1100", 12)]);
}

#[test]
fn archives_of_kept_targets_stay() {
    let room = room();
    let before = files(&room.path("prefix"));
    room.thin("prefix --target gfx1100,gfx90a --in-place").done();
    assert!(files(&room.path("prefix")) == before);
    room.thin("prefix --target gfx90a --in-place").done();
    let kept: Vec<String> = names(&room.path("prefix/lib/.kpack")).into_iter().collect();
    let expected =
        ["rand_lib.kpm", "rand_lib_gfx90a.kpack", "sparse_lib.kpm", "sparse_lib_gfx90a.kpack"];
    assert_eq!(kept, expected);
}

#[test]
fn a_split_library_that_loses_all_its_archives_is_refused() {
    let room = room();
    let before = files(&room.path("prefix"));
    let run = room.thin("prefix --target gfx1100 --in-place");
    run.failed(64, &["prefix/lib/liby.so", "in archives", "gfx1100", "--allow-empty"]);
    assert!(!run.stderr.contains("libx.so"), "{}", run.stderr);
    assert!(files(&room.path("prefix")) == before);
}

#[test]
fn split_and_fat_libraries_may_be_in_one_tree() {
    let room = room();
    let library = room.usual("prefix/lib/libfat.so");
    let before = super::bundles_in(&library);
    room.thin("prefix --target gfx90a --in-place").done();
    assert_eq!(super::bundles_in(&library)[0].entries, before[0].only(&["gfx90a"]));
    assert!(!room.path("prefix/lib/.kpack/sparse_lib_gfx1100.kpack").exists());
    assert!(room.path("prefix/lib/.kpack/sparse_lib_gfx90a.kpack").exists());
}
