//! Files that `thin` changes in their places.

use std::fs;
use std::path::Path;
use std::process::Command;

use support::example::{self, rockpack, shards};

use crate::left::Left;
use crate::room::{ALL, FILLING};
use crate::scenarios::{Promise, SET, Scenario};
use crate::sweep::{Strikes, sweep};

fn thin(_: &Path, out: &Path) -> Command {
    let mut command = rockpack();
    command.arg("thin").arg(out).args(["--target", "gfx1151", "--in-place"]);
    command
}

/// A tree with a library of two targets, and a file of another target.
fn scenario() -> Scenario {
    let stage = "math-libs/BLAS/rocBLAS/stage";
    let make = |room: &Path| {
        let earlier = room.join("earlier");
        let own = shards().join("gfx1151-build/blas_lib_gfx1151").join(stage);
        example::plant(&example::tree(&own), &earlier, false);
        let kernels = "lib/rocblas/library/Kernels.so-000-gfx1151.hsaco";
        let other = shards().join("gfx110X-build/blas_lib_gfx110X-dgpu").join(stage);
        let name = kernels.replace("gfx1151", "gfx1100");
        fs::copy(other.join(&name), earlier.join(&name)).unwrap();
    };
    let promise = Promise { unit: |path| path, adds: true, left_to_the_next: true, ..SET };
    Scenario::over_earlier("thin --in-place", make, (thin, promise))
}

/// Each file is the old or the new one, and an error says so.
fn old_or_new(left: &Left<'_>) {
    match left.struck.code() {
        Some(0) => left.is_new(),
        Some(2 | 64 | 130) | None => {
            left.units();
        }
        _ => panic!("{}", left.about),
    }
}

const FAULTS: [Strikes; 4] = [
    (ALL, "signal:9", old_or_new, 20),
    (ALL, "error:5", old_or_new, 20),
    (ALL, "signal:2", old_or_new, 5),
    (FILLING, "errors:28", old_or_new, 5),
];

#[test]
fn a_struck_run_in_place_leaves_each_file_old_or_new() {
    sweep(&scenario(), &FAULTS);
}
