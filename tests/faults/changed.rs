//! Input that changes while a run reads it.

use std::path::Path;

use crate::left::Left;
use crate::room::{ALL, Fault, places};
use crate::scenarios::Scenario;
use crate::sweep::Sweep;
use crate::tools::have;

/// A file of the input, of which the run reads and packs everything.
const LIBRARY: &str =
    "gfx1151-build/blas_lib_gfx1151/math-libs/BLAS/rocBLAS/stage/lib/libexblas.so.1.2";

/// What happens to the file before the chosen call.
const CHANGES: [(&str, &str); 6] = [
    ("cut", "truncate -s 5000 {file}"),
    ("emptied", "truncate -s 0 {file}"),
    ("longer", "echo more >> {file}"),
    (
        "rewritten",
        "cp {kept} {file}.x; printf X | dd of={file} bs=1 seek=4096 conv=notrunc 2>&-; rm {file}.x",
    ),
    ("replaced", "cp {kept} {room}/x && mv {room}/x {file}"),
    ("gone", "rm {file}"),
];

/// The run fails and says what changed. Of a split, components without the file are done.
fn noticed(left: &Left<'_>) {
    match left.struck.code() {
        // The threads of this run made fewer calls.
        Some(0) if left.struck.call.is_none() => left.is_whole(),
        Some(0) => panic!("{}: it was not noticed", left.about),
        Some(2) => {
            left.is_taken_back();
            let said = &left.struck.stderr;
            let named = said.contains("libexblas.so.1.2") || said.contains("stage/lib");
            assert!(named && said.contains("during the run"), "{}", left.about);
        }
        _ => panic!("{}", left.about),
    }
}

fn command(change: &str, room: &Path) -> String {
    let (file, kept) = (room.join(LIBRARY), room.join("kept"));
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let change = change.replace("{file}", &text(&file)).replace("{kept}", &text(&kept));
    change.replace("{room}", &text(room))
}

/// The file is changed before each call on it in turn, from the first that reads from it to the
/// last look at it. What happens to it earlier or later is no change during the run, and between
/// two of these calls it makes no difference when.
fn sweep(scenario: &Scenario, some: usize) {
    let room = scenario.room.path();
    let (file, kept) = (room.join(LIBRARY), room.join("kept"));
    std::fs::copy(&file, &kept).unwrap();
    let calls = scenario.calls(ALL, LIBRARY);
    let before = calls.iter().position(|(kind, _)| kind == "read").unwrap();
    for (name, change) in CHANGES {
        let act = format!("run:{}", command(change, room));
        let mut sweep = Sweep::default();
        for at in places(calls.len() - before, some) {
            let fault = Fault { calls: ALL, act: &act, at: before + at };
            sweep.strike(scenario, (fault, LIBRARY), |left| {
                std::fs::copy(&kept, &file).unwrap();
                noticed(left);
            });
        }
        sweep.finish(&format!("{}: input {name}, {} calls on it", scenario.name, calls.len()));
    }
}

#[test]
fn a_build_notices_that_its_input_changed() {
    if have(&["gcc"]) {
        sweep(&Scenario::build(), 2);
    }
}

#[test]
fn a_split_notices_that_its_input_changed() {
    if have(&["gcc"]) {
        sweep(&Scenario::split(), 1);
    }
}
