//! Input that changes while a run reads it.

use std::collections::BTreeSet;
use std::path::Path;

use support::tools::need;

use crate::left::Left;
use crate::publications;
use crate::room::{ALL, Fault, places};
use crate::scenarios::Scenario;
use crate::sweep::Sweep;
use crate::wheels;

/// A file of the input.
struct Victim {
    path: &'static str,
    /// The size for truncate(1).
    cut: &'static str,
    /// The offset of the byte that is rewritten.
    at: u64,
    /// The file's folder, which messages may name instead.
    folder: &'static str,
}

/// A file that a build reads and packs as a whole.
const LIBRARY: Victim = Victim {
    path: "gfx1151-build/blas_lib_gfx1151/math-libs/BLAS/rocBLAS/stage/lib/libexblas.so.1.2",
    cut: "5000",
    at: 4096,
    folder: "stage/lib",
};

/// Changes of the file before the chosen call.
const CHANGES: [(&str, &str); 6] = [
    ("cut", "truncate -s {cut} {file}"),
    ("emptied", "truncate -s 0 {file}"),
    ("longer", "echo more >> {file}"),
    (
        "rewritten",
        "cp {kept} {file}.x; printf X | dd of={file} bs=1 seek={at} conv=notrunc 2>&-; rm {file}.x",
    ),
    ("replaced", "cp {kept} {room}/x && mv {room}/x {file}"),
    ("gone", "rm {file}"),
];

/// The run fails and names the changed file. After a split, components without the file are complete.
fn noticed(left: &Left<'_>, victim: &Victim) {
    match left.struck.code() {
        // The threads of this run made fewer calls.
        Some(0) if left.struck.call.is_none() => left.is_whole(),
        Some(0) => panic!("{}: it was not noticed", left.about),
        Some(2) => is_told(left, victim),
        _ => panic!("{}", left.about),
    }
}

/// The run fails, or publishes a package in its earlier state: the copy is checked against the index, not
/// against the file's later state.
fn noticed_or_published_as_it_was(left: &Left<'_>, victim: &Victim) {
    match left.struck.code() {
        Some(0) => left.is_whole(),
        _ => noticed(left, victim),
    }
}

fn is_told(left: &Left<'_>, victim: &Victim) {
    left.is_taken_back();
    let said = &left.struck.stderr;
    let name = victim.path.rsplit('/').next().unwrap();
    let named = said.contains(name) || said.contains(victim.folder);
    assert!(named && said.contains("during the run"), "{}", left.about);
}

fn command(change: &str, (victim, room): (&Victim, &Path)) -> String {
    let (file, kept) = (room.join(victim.path), room.join("kept"));
    let change = change
        .replace("{file}", file.to_str().unwrap())
        .replace("{kept}", kept.to_str().unwrap())
        .replace("{cut}", victim.cut)
        .replace("{at}", &victim.at.to_string());
    change.replace("{room}", room.to_str().unwrap())
}

/// Changes the file before each call on it in turn, from the first read to the last look, which is always
/// struck. An earlier or later change is not during the run, and between two of these calls the moment makes
/// no difference.
fn sweep((scenario, victim): (&Scenario, &Victim), some: usize, judge: fn(&Left<'_>, &Victim)) {
    let room = scenario.room.path();
    let (file, kept) = (room.join(victim.path), room.join("kept"));
    std::fs::copy(&file, &kept).unwrap();
    let calls = scenario.calls(ALL, victim.path);
    let before = calls.iter().position(|(kind, _)| kind == "read").unwrap();
    for (name, change) in CHANGES {
        let act = format!("run:{}", command(change, (victim, room)));
        let mut sweep = Sweep::default();
        let last = calls.len() - before;
        let chosen: BTreeSet<usize> = places(last, some).into_iter().chain([last]).collect();
        for at in chosen {
            let fault = Fault { calls: ALL, act: &act, at: before + at };
            sweep.strike(scenario, (fault, victim.path), |left| {
                std::fs::copy(&kept, &file).unwrap();
                judge(left, victim);
            });
        }
        assert!(sweep.ended.contains_key("exit status: 2"), "{name}: {:?}", sweep.ended);
        sweep.finish(&format!("{}: input {name}, {} calls on it", scenario.name, calls.len()));
    }
}

#[test]
fn a_build_notices_that_its_input_changed() {
    need(&["gcc"]);
    sweep((&Scenario::build(), &LIBRARY), 2, noticed);
}

#[test]
fn a_split_notices_that_its_input_changed() {
    need(&["gcc"]);
    sweep((&Scenario::split(), &LIBRARY), 1, noticed);
}

#[test]
fn wheels_notice_that_their_input_changed() {
    need(&["gcc"]);
    let victim = Victim { path: wheels::INPUT, cut: "5000", at: 4096, folder: "in" };
    sweep((&wheels::scenario(), &victim), 1, noticed);
}

#[test]
fn a_recombination_notices_that_its_input_changed() {
    need(&["gcc"]);
    sweep((&Scenario::recombine(), &LIBRARY), 1, noticed);
}

#[test]
fn an_extraction_notices_that_its_input_changed() {
    need(&["gcc"]);
    sweep((&Scenario::extract(), &LIBRARY), 2, noticed);
}

/// The last place is between the look at a package and the read for the copy.
#[test]
fn a_publication_notices_that_its_packages_changed() {
    need(&publications::TOOLS);
    let scenario = publications::scenario();
    for path in ["3/one_3_amd64.deb", "3/one-3-1.noarch.rpm"] {
        let last = std::fs::metadata(scenario.room.path().join(path)).unwrap().len() - 1;
        let victim = Victim { path, cut: "-9", at: last, folder: path };
        sweep((&scenario, &victim), 3, noticed_or_published_as_it_was);
    }
}
