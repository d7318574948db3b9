//! System calls that fail.

use support::example::{rockpack, shards};
use support::repo_fixture::{deb, repo};
use support::tools::need;

use crate::left::{Left, undisturbed};
use crate::publications;
use crate::room::{ALL, FILLING, Fault, folder, strike};
use crate::scenarios::Scenario;
use crate::sweep::{Strikes, sweep, sweep_each_kind};
use crate::wheels;

const EINTR: &str = "error:4";
const EIO: &str = "error:5";
const ENOSPC: &str = "error:28";
const EIO_FROM_THEN_ON: &str = "errors:5";
const ENOSPC_FROM_THEN_ON: &str = "errors:28";

/// A failed run says why and leaves the earlier output; a run that can do without the call gives the whole
/// output.
fn failed_or_whole(left: &Left<'_>) {
    if left.is_whole_or_failed() {
        says_what_failed(left);
    }
}

/// The message names the file, or its folder.
fn says_what_failed(left: &Left<'_>) {
    let (_, path) = left.struck.call.as_ref().unwrap();
    let stderr = &left.struck.stderr;
    let around = path.ancestors().take(3).any(|path| stderr.contains(path.to_str().unwrap()));
    let said = around || stderr.contains(path.file_name().unwrap().to_str().unwrap());
    assert!(said && stderr.contains("os error"), "{}", left.about);
}

/// If renames fail from then on, a started commit cannot be undone: the next run does that.
fn failed_or_left_to_the_next_run(left: &Left<'_>) {
    nothing_in_part(left);
    let committing = |kind: &str| ["rename", "sync"].contains(&kind);
    let begun = left.struck.call.as_ref().is_some_and(|(kind, _)| committing(kind));
    if left.struck.code() == Some(2) && (!begun || left.unfinished.is_empty()) {
        left.is_taken_back();
    }
}

/// The disk also fails during the clean-up. The error may be about any of the failing calls.
fn nothing_in_part(left: &Left<'_>) {
    match left.struck.code() {
        Some(0) => left.is_whole(),
        Some(2) => {
            left.has_no_part();
            let said = &left.struck.stderr;
            let mut files = left.scenario.whole.keys().map(|path| path.rsplit('/').next().unwrap());
            let room = left.scenario.room.path().to_str().unwrap();
            let named = said.contains(room) || files.any(|name| said.contains(name));
            assert!(named && said.contains("os error"), "{}", left.about);
        }
        _ => panic!("{}", left.about),
    }
}

/// Faults for calls of every kind.
const EACH_KIND: [Strikes; 1] = [(ALL, EIO, failed_or_whole, 1)];

const FAULTS: [Strikes; 8] = [
    (FILLING, ENOSPC, failed_or_whole, 2),
    (FILLING, ENOSPC_FROM_THEN_ON, failed_or_left_to_the_next_run, 2),
    (ALL, EIO_FROM_THEN_ON, nothing_in_part, 2),
    ("open,create,stat,list,remove", "error:13", failed_or_whole, 2),
    ("lock", "error:37", failed_or_whole, 1),
    ("read,write", EINTR, undisturbed, 1),
    ("lock", EINTR, undisturbed, 1),
    ("read,write", "short", undisturbed, 1),
];

/// Runs all sweeps of a command.
fn sweep_all(scenario: &Scenario) {
    sweep_each_kind(scenario, &EACH_KIND);
    sweep(scenario, &FAULTS);
}

/// Faults for the calls of a commit.
const COMMITTING: [Strikes; 2] =
    [("rename", EIO, failed_or_whole, 3), ("rename", EIO_FROM_THEN_ON, nothing_in_part, 2)];

/// Faults for each other kind of call around a commit.
const AROUND_COMMITS: [Strikes; 1] = [("make,remove,sync", EIO, failed_or_whole, 1)];

/// Faults for the calls that make a cache, in addition to any build's.
const BEGINNING: [Strikes; 1] =
    [("create,write,sync,rename,make,link,copy,open,stat", EIO, failed_or_whole, 1)];

#[test]
fn a_build_whose_calls_fail_leaves_the_earlier_set() {
    need(&["gcc"]);
    sweep_all(&Scenario::build());
}

#[test]
fn a_document_goes_back_with_the_set_it_describes() {
    need(&["gcc"]);
    for scenario in [Scenario::build_with_document(), Scenario::build_without_document()] {
        sweep(&scenario, &COMMITTING);
        sweep_each_kind(&scenario, &AROUND_COMMITS);
    }
}

#[test]
fn a_build_whose_calls_fail_leaves_whole_entries_in_its_cache() {
    need(&["gcc"]);
    sweep_all(&Scenario::build_with_cache());
    sweep_each_kind(&Scenario::build_with_new_cache(), &BEGINNING);
}

/// Without locks, a live run cannot be told from a killed one.
#[test]
fn a_file_system_without_locks_is_named_as_the_reason() {
    need(&["gcc"]);
    let shard = shards().join("gfx1151-build");
    let library = "blas_lib_gfx1151/math-libs/BLAS/rocBLAS/stage/lib/libexblas.so.1.2";
    let commands: [(&[&str], _, &[&str], _); 5] = [
        (&["build", "--version", "1.0", "--artifacts"], shard.clone(), &["--out"], 2),
        (
            &["build", "--version", "1.0", "--artifacts"],
            shard.clone(),
            &["--out", "o", "--cache"],
            2,
        ),
        (&["split", "--artifacts"], shard.clone(), &["--output-dir"], 2),
        (&["recombine", "--artifacts"], shard.clone(), &["--output-dir"], 2),
        // These commands replace nothing, and never treat another run as dead.
        (&["extract"], shard.join(library), &["--out"], 0),
    ];
    for (command, input, out, code) in commands {
        let room = folder();
        let mut run = rockpack();
        run.args(command).arg(input).args(out).arg(room.path().join("out"));
        run.current_dir(room.path());
        let fault = Fault { calls: "lock", act: "errors:37", at: 1 };
        let struck = strike(&mut run, room.path(), fault);
        assert_eq!(struck.code(), Some(code), "{command:?}: {}", struck.stderr);
        let said = struck.stderr.contains("supports flock");
        assert!(said || code == 0, "{command:?}: {}", struck.stderr);
    }
}

#[test]
fn a_cache_that_cannot_be_begun_has_nothing_in_part() {
    need(&["gcc"]);
    let room = folder();
    let [cache, out] = ["cache", "out"].map(|name| room.path().join(name));
    let mut build = rockpack();
    build.args(["build", "--version", "7.1.0", "--artifacts"]).arg(shards().join("gfx1151-build"));
    build.arg("--cache").arg(&cache).arg("--out").arg(out);
    let tag = cache.join("CACHEDIR.TAG");
    let struck = strike(&mut build, &tag, Fault { calls: "rename", act: EIO, at: 1 });
    assert_eq!(struck.code(), Some(0), "{}", struck.stderr);
    let stderr = &struck.stderr;
    assert!(stderr.contains("R097") && stderr.contains("CACHEDIR.TAG"), "{stderr}");
    let mut left = std::fs::read_dir(cache.join("new")).unwrap();
    assert!(!tag.exists() && left.next().is_none());
}

#[test]
fn a_split_whose_calls_fail_leaves_whole_components() {
    need(&["gcc"]);
    sweep_all(&Scenario::split());
}

#[test]
fn a_recombination_whose_calls_fail_leaves_the_earlier_artifacts() {
    need(&["gcc"]);
    sweep_all(&Scenario::recombine());
}

#[test]
fn an_extraction_whose_calls_fail_leaves_whole_code_objects() {
    need(&["gcc"]);
    let scenario = Scenario::extract();
    sweep_all(&scenario);
    // The run analyses a library, transforms it and checks the result, with separate reads for each.
    sweep(&scenario, &[("read", EIO, failed_or_whole, usize::MAX)]);
}

#[test]
fn wheels_whose_calls_fail_leave_the_earlier_ones() {
    need(&["gcc"]);
    sweep_all(&wheels::scenario());
}

#[test]
fn a_publication_whose_calls_fail_leaves_a_repository_that_clients_can_use() {
    need(&publications::TOOLS);
    sweep_all(&publications::scenario());
}

/// If the path of the repository or a package cannot be resolved, the package may lie within the repository.
#[test]
fn a_publication_of_what_cannot_be_resolved_is_refused() {
    need(&["gcc", "dpkg-deb"]);
    let room = folder();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    deb(&packages, ("one", "1", "amd64"), "");
    assert!(repo(&[&packages], &out).status().unwrap().success());
    let pool = out.join("pool");
    for under in [&out, &pool] {
        let mut told = String::new();
        for at in 1.. {
            let fault = Fault { calls: "stat", act: EIO, at };
            let struck = strike(&mut repo(&[&pool], &out), under, fault);
            if struck.call.is_none() {
                break;
            }
            assert_eq!(struck.code(), Some(2), "{:?}: {}", struck.call, struck.stderr);
            let error = "Input/output error";
            assert!(struck.stderr.contains(error), "{:?}: {}", struck.call, struck.stderr);
            told += &struck.stderr;
        }
        assert!(told.contains("cannot resolve"), "{under:?}: {told}");
    }
}
