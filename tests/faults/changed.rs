//! Input that changes while a run reads it.

use std::path::Path;

use crate::room::{Fault, places};
use crate::scenarios::{Left, Scenario, Sweep};
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
        Some(0) => panic!("{}: it was not noticed", left.about),
        Some(2) => {
            left.is_earlier();
            left.left_nothing();
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

/// The file is changed before each read of the input in turn.
fn sweep(scenario: &Scenario, some: usize) {
    let room = scenario.room.path();
    let (file, kept) = (room.join(LIBRARY), room.join("kept"));
    std::fs::copy(&file, &kept).unwrap();
    let count = scenario.count("read");
    for (name, change) in CHANGES {
        let act = format!("run:{}", command(change, room));
        let mut sweep = Sweep::default();
        for at in places(count, some) {
            sweep.strike(scenario, Fault { calls: "read", act: &act, at }, |left| {
                std::fs::copy(&kept, &file).unwrap();
                noticed(left);
            });
        }
        sweep.finish(&format!("{}: input {name}", scenario.name));
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
