//! Which code serves a target, and the targets of this machine.

use std::fs;

use rockpack_core::gfx::SPIRV;
use serde_json::json;
use support::program::repository;

use super::{Room, bundle_of, bundles_in, changed_paths, code, snapshot};

/// The targets of the library of [`room`].
const ALL: [&str; 6] =
    ["gfx90a", "gfx90a:xnack+", "gfx90a:xnack-", "gfx1100", "gfx11-generic", SPIRV];

fn room() -> Room {
    let room = Room::new();
    room.library("tree/libx.so", &[bundle_of(&ALL, 1)]);
    room
}

#[test]
fn code_stays_where_it_serves_a_target() {
    let room = room();
    let before = bundles_in(&room.path("tree/libx.so"));
    for (targets, kept) in [
        ("gfx90a", &ALL[..3]),
        ("gfx90a:xnack-", &["gfx90a", "gfx90a:xnack-"]),
        ("gfx90a:xnack+", &["gfx90a", "gfx90a:xnack+"]),
        ("gfx90a:sramecc+", &ALL[..3]),
        ("gfx90a:sramecc+:xnack-", &["gfx90a", "gfx90a:xnack-"]),
        ("gfx1100", &["gfx1100", "gfx11-generic"]),
        ("gfx1103", &["gfx11-generic"]),
        ("gfx11-generic", &["gfx11-generic"]),
        ("gfx1201", &[]),
        ("gfx1201,gfx1100", &["gfx1100", "gfx11-generic"]),
        ("gfx90a:xnack-,gfx1102", &["gfx90a", "gfx90a:xnack-", "gfx11-generic"]),
    ] {
        let _ = fs::remove_dir_all(room.path("out"));
        room.thin(&format!("tree --target {targets} --out out")).done();
        let after = bundles_in(&room.path("out/tree/libx.so"));
        assert_eq!(after[0].entries, before[0].only(&[kept, &[SPIRV]].concat()), "{targets}");
    }
}

#[test]
fn what_is_no_target_is_refused() {
    let room = room();
    for (targets, texts) in [
        ("nonsense", &["`nonsense` is not a GPU arch", "gfx1100 or gfx90a"]),
        ("gfx1100,gfx42", &["`gfx42` is not a GPU arch", "did you mean `gfx942`"]),
        ("Auto", &["Auto", "--target"]),
        ("gfx90a:xnak+", &["gfx90a:xnak+", "--target"]),
    ] {
        room.thin(&format!("tree --target {targets} --dry-run")).failed(64, texts);
    }
    room.thin("tree --dry-run").failed(64, &["--target"]);
}

/// A target without code is a typing error, or the wrong tree.
#[test]
fn a_target_that_no_code_serves_is_refused_with_those_that_are_there() {
    let room = Room::new();
    room.library("tree/libx.so", &[bundle_of(&["gfx90a:xnack+", "gfx1100"], 1)]);
    room.write("tree/lib/rocblas/library/Kernels.so-000-gfx942.hsaco", code("gfx942", 7));
    let before = snapshot(&room.path("tree"));
    let there = "gfx1100, gfx90a:xnack+, gfx942";
    for (targets, lost) in [
        ("gfx1201", "tree has no code for gfx1201"),
        ("gfx1100,gfx1201", "tree has no code for gfx1201"),
        ("gfx90a:xnack-", "tree has no code for gfx90a:xnack-"),
        ("gfx1102", "tree has no code for gfx1102"),
        ("gfx1102,gfx1201,gfx942", "tree has no code for gfx1102, gfx1201"),
    ] {
        for place in ["--in-place", "--out out", "--dry-run"] {
            let run = room.thin(&format!("tree --target {targets} {place}"));
            run.failed(64, &[lost, there, "nothing was changed"]);
        }
    }
    assert_eq!(snapshot(&room.path("tree")), before);
    assert!(!room.path("out").exists());
}

/// Each target needs code in one of the paths, not in all.
#[test]
fn targets_may_have_their_code_in_different_paths() {
    let room = Room::new();
    room.library("one/libx.so", &[bundle_of(&["gfx1100", "gfx942"], 1)]);
    room.library("other/libx.so", &[bundle_of(&["gfx90a", "gfx942"], 1)]);
    let report =
        room.thin("one other --target gfx90a,gfx1100 --in-place --allow-empty --json").json();
    assert_eq!(report["targets"], json!(["gfx1100", "gfx90a"]));
    for (folder, target) in [("one", "gfx1100"), ("other", "gfx90a")] {
        let library = bundles_in(&room.path(&format!("{folder}/libx.so")));
        assert_eq!(library[0].only(&[target]), library[0].entries);
        assert_eq!(library[0].entries.len(), 2);
    }
}

#[test]
fn auto_takes_the_targets_of_this_machine_that_have_code() {
    let room = Room::new();
    room.library("tree/libx.so", &[bundle_of(&["gfx1100", "gfx90a", "gfx942"], 1)]);
    let before = bundles_in(&room.path("tree/libx.so"));
    // The first has a gfx1100 and a gfx1036, for which there is no code.
    for (machine, words, kept) in [
        ("apu-beside-card", "auto", &["gfx1100"][..]),
        ("mi250x-two-dies", "auto", &["gfx90a"]),
        ("apu-beside-card", "gfx942,auto", &["gfx1100", "gfx942"]),
        ("mi250x-two-dies", "auto --target gfx1100", &["gfx1100", "gfx90a"]),
    ] {
        let _ = fs::remove_dir_all(room.path("out"));
        let sysfs = repository("tests/machines").join(machine);
        let words = format!("tree --target {words} --out out --json --sysfs {}", sysfs.display());
        let report = room.thin(&words).json();
        assert_eq!(report["targets"], json!(kept), "{machine}");
        assert_eq!(changed_paths(&report), ["libx.so"]);
        let after = bundles_in(&room.path("out/tree/libx.so"));
        assert_eq!(after[0].entries, before[0].only(kept), "{machine}");
    }
}

#[test]
fn auto_fails_without_a_gpu_and_without_code_for_it() {
    let room = Room::new();
    room.usual("tree/libx.so");
    let before = snapshot(&room.path("tree"));
    for (machine, texts) in [
        ("empty", &["this machine has no GPU whose target is known", "name the targets"][..]),
        ("rdna-2-rx-6800-xt", &["tree has no code for gfx1030", "gfx1100, gfx90a"]),
    ] {
        let sysfs = repository("tests/machines").join(machine);
        let words = format!("tree --target auto --in-place --sysfs {}", sysfs.display());
        room.thin(&words).failed(64, texts);
    }
    assert_eq!(snapshot(&room.path("tree")), before);
}
