//! A system that starts no more threads, such as a container with a limit on them.

use std::path::{Path, PathBuf};

use support::example::{rockpack, shards};
use support::gpg_keys::{Key, key};
use support::repo_fixture::{deb, repo};
use support::tools::need;

use crate::left::Left;
use crate::publications;
use crate::reading::{self, Input};
use crate::room::{Fault, Struck, folder, places, strike};
use crate::scenarios::Scenario;
use crate::sweep::{Strikes, sweep};

const EAGAIN: &str = "error:11";
const EAGAIN_FROM_THEN_ON: &str = "errors:11";

/// More places than such a run starts threads on two cores.
const FEW: usize = 12;

/// The run reports that it got no thread, or does without it.
fn says_so_or_is_whole(left: &Left<'_>) {
    let failed = left.is_whole_or_failed();
    assert!(!failed || left.struck.stderr.contains("thread"), "{}", left.about);
}

const fn at(some: usize) -> [Strikes; 2] {
    [
        ("thread", EAGAIN, says_so_or_is_whole, some),
        ("thread", EAGAIN_FROM_THEN_ON, says_so_or_is_whole, some),
    ]
}

#[test]
fn a_build_that_gets_no_threads_leaves_the_earlier_set() {
    need(&["gcc"]);
    for scenario in [Scenario::build(), Scenario::build_with_cache()] {
        sweep(&scenario, &at(3));
    }
}

/// Compressors start their own threads for large content.
#[test]
fn a_build_whose_compressors_get_no_threads_leaves_the_earlier_set() {
    need(&["gcc"]);
    for compression in ["zstd", "xz"] {
        sweep(&Scenario::build_of_noise(compression), &at(3));
    }
}

#[test]
fn artifacts_and_code_objects_are_as_before_where_no_thread_starts() {
    need(&["gcc"]);
    for scenario in [Scenario::split(), Scenario::recombine(), Scenario::extract()] {
        sweep(&scenario, &at(FEW));
    }
}

#[test]
fn a_publication_that_gets_no_threads_leaves_a_repository_that_clients_can_use() {
    need(&publications::TOOLS);
    sweep(&publications::scenario(), &at(FEW));
}

/// The numbers of threads that a build with `--jobs jobs` starts, alone and with an option that takes a path
/// in `room`. The packages are compressed with xz, which keeps no thread from one package to the next.
fn starts(room: &Path, jobs: &str, [option, path]: [&str; 2]) -> [usize; 2] {
    let more = [option.as_ref(), &*room.join(path)];
    [counted(room, jobs, "alone", &[]), counted(room, jobs, "more", &more)]
}

/// The number of threads that a build into the folder `name` starts.
fn counted(room: &Path, jobs: &str, name: &str, more: &[&Path]) -> usize {
    let mut build = rockpack();
    build.args(["build", "--version", "7.1.0", "--compression", "xz", "--jobs", jobs]);
    build.arg("--artifacts").arg(shards().join("gfx1151-build"));
    build.arg("--out").arg(room.join(name)).args(more);
    let run = strike(&mut build, room, Fault { calls: "thread", act: EAGAIN, at: 0 });
    assert_eq!(run.code(), Some(0), "{}", run.stderr);
    run.counted
}

/// The checks before there are packages, and the publication, use as many threads as the build. Compressing
/// the indexes takes a fixed number.
#[test]
fn a_build_publishes_with_as_many_threads_as_it_is_told() {
    need(&["gcc"]);
    let [with_five, with_one] = ["5", "1"].map(|jobs| {
        let room = folder();
        let [alone, publishing] = starts(room.path(), jobs, ["--repo", "repository"]);
        assert!(room.path().join("repository/dists").exists());
        publishing - alone
    });
    assert_eq!(with_five - with_one, 2 * (5 - 1));
}

/// The build starts its threads whether or not there is an earlier set.
#[test]
fn a_build_reads_an_earlier_set_with_no_other_threads() {
    need(&["gcc"]);
    let room = folder();
    let [alone, updating] = starts(room.path(), "5", ["--since", "alone"]);
    assert_eq!(alone, updating);
}

/// A thread feeds the signing program.
#[test]
fn a_publication_whose_signing_command_is_not_fed_publishes_nothing() {
    need(&publications::TOOLS);
    let room = folder();
    let own = key(room.path(), "own", "ed25519");
    let package = deb(room.path(), ("one", "1", "amd64"), "");
    let (whole, shown) = publish(room.path(), &package, &own, 0);
    assert!(whole.code() == Some(0) && shown.exists(), "{}", whole.stderr);
    // The last thread feeds the program.
    for at in places(whole.counted, FEW).into_iter().chain([whole.counted]) {
        let (struck, shown) = publish(room.path(), &package, &own, at);
        assert_eq!(struck.code(), Some(2), "{at}: {}", struck.stderr);
        assert!(struck.stderr.contains("thread") && !shown.exists(), "{at}: {}", struck.stderr);
        assert!(!struck.stderr.contains("a bug in rockpack"), "{at}: {}", struck.stderr);
    }
}

/// Publishes a package while the thread `at` does not start (0: all start). Returns the run, and the
/// folder that only a finished publication has.
fn publish(room: &Path, package: &Path, own: &Key, at: usize) -> (Struck, PathBuf) {
    let out = room.join(format!("repo-{at}"));
    let mut run = repo(&[package], &out);
    run.args(["--sign-command", "gpg --batch --yes --armor --{mode}", "--public-key"]);
    run.arg(&own.public).env("GNUPGHOME", &own.home);
    let fault = Fault { calls: "thread", act: EAGAIN, at };
    (strike(&mut run, room, fault), out.join("dists"))
}

#[test]
fn a_command_that_reads_and_gets_no_threads_says_so() {
    need(&publications::TOOLS);
    need(&reading::TOOLS);
    let input = Input::made();
    for act in [EAGAIN, EAGAIN_FROM_THEN_ON] {
        input.sweep(("thread", act, FEW), |_, struck, whole| {
            if struck.code() == whole.code() {
                assert_eq!(struck.output.stdout, whole.output.stdout, "{}", reading::about(struck));
                return;
            }
            let about = reading::about(struck);
            let said = "cannot start a thread: Resource temporarily unavailable (os error 11)";
            // If only one of several things could not be checked, that one is reported.
            let stream = match struck.code() {
                Some(1) => String::from_utf8_lossy(&struck.output.stdout),
                Some(2) => struck.stderr.as_str().into(),
                _ => panic!("{about}"),
            };
            assert!(stream.contains(said) && !about.contains("panicked"), "{about}");
        });
    }
}
