//! Input and output beside one another, while the system fails to tell their places.

use std::fs;
use std::path::Path;
use std::process::Command;

use support::example::{rockpack, shards, tree};
use support::tools::{self, need};

use crate::room::{Fault, Struck, calls, folder, strike};

/// Copies a shard with a fat artifact to `at`, and adds its owner's files for the same component.
fn shard(at: &Path) {
    tools::run(Command::new("cp").arg("-r").arg(shards().join("gfx110X-build")).arg(at));
    let own = at.join("blas_lib_own");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("artifact_manifest.txt"), "x/stage\n").unwrap();
}

/// Runs `command` in new rooms, which `prepare` fills. In each room, one of its looks at `names` fails.
fn strike_all(
    names: &[&str],
    prepare: impl Fn(&Path),
    command: impl Fn(&Path) -> Command,
    judge: impl Fn(&Struck, &Path),
) {
    let run = |at: Option<usize>| {
        let room = folder();
        prepare(room.path());
        let mut command = command(room.path());
        let paths = || names.iter().map(|name| room.path().join(name));
        let Some(at) = at else {
            let made = calls(&mut command, room.path(), "stat");
            let of_names = (1..).zip(&made).filter(|(_, (_, path))| paths().any(|p| p == *path));
            return of_names.map(|(at, _)| at).collect();
        };
        let fault = Fault { calls: "stat", act: "error:5", at };
        judge(&strike(&mut command, room.path(), fault), room.path());
        Vec::new()
    };
    let all: Vec<usize> = run(None);
    assert!(!all.is_empty(), "{names:?} are not looked at");
    all.into_iter().for_each(|at| drop(run(Some(at))));
}

#[test]
fn artifacts_beside_an_input_that_cannot_be_looked_at_stay() {
    need(&["gcc"]);
    let split = |room: &Path| {
        let mut split = rockpack();
        split.arg("split").arg("--artifact-dir").arg(room.join("s/blas_lib_gfx110X-dgpu"));
        split.arg("--output-dir").arg(room.join("s"));
        split
    };
    let names = ["s", "s/blas_lib_gfx110X-dgpu"];
    strike_all(
        &names,
        |room| shard(&room.join("s")),
        split,
        |struck, room| {
            assert!(room.join("s/blas_lib_own").exists(), "{:?}: {}", struck.call, struck.stderr);
            // The run finds the folder for content of archives by another way.
            let failed = struck.code() == Some(2) && struck.stderr.contains("os error");
            assert!(failed || struck.code() == Some(0), "{:?}: {}", struck.call, struck.stderr);
        },
    );
}

#[test]
fn an_output_inside_of_its_input_is_refused_whatever_cannot_be_looked_at() {
    need(&["gcc"]);
    let room = folder();
    shard(&room.path().join("s"));
    // Nothing else shows in this case that the input changes.
    fs::create_dir(room.path().join("s/out")).unwrap();
    let before = tree(room.path());
    for at in 1.. {
        let mut build = rockpack();
        build.args(["build", "--version", "1.0", "--artifacts"]).arg(room.path().join("s"));
        build.arg("--out").arg(room.path().join("s/out"));
        let fault = Fault { calls: "stat", act: "error:5", at };
        let struck = strike(&mut build, room.path(), fault);
        assert!(matches!(struck.code(), Some(2 | 64)), "{:?}: {}", struck.call, struck.stderr);
        assert!(tree(room.path()) == before, "{:?}", struck.call);
        if struck.call.is_none() {
            assert!(at > 2, "nothing was struck");
            break;
        }
    }
}

/// A file system need not report file types along with the names in a folder.
#[test]
fn what_a_dead_run_left_is_not_passed_over_because_it_cannot_be_looked_at() {
    need(&["gcc"]);
    let room = folder();
    shard(&room.path().join("s"));
    let out = room.path().join("out");
    let left = out.join(".rockpack-artifacts-1");
    fs::create_dir_all(&left).unwrap();
    let mut split = rockpack();
    split.arg("split").arg("--batch-artifact-parent-dir").arg(room.path().join("s"));
    split.arg("--output-dir").arg(&out).env("FAULT_UNTYPED", "1");
    // The first look at a name from the folder's list.
    let struck = strike(&mut split, &left, Fault { calls: "stat", act: "error:5", at: 1 });
    assert!(struck.call.is_some(), "nothing was struck");
    assert_eq!(struck.code(), Some(2), "{:?}: {}", struck.call, struck.stderr);
    assert!(struck.stderr.contains("cannot inspect"), "{}", struck.stderr);
}
