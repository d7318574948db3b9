//! `rockpack wheel`, on wheels that Python writes, judged by Python's readers.

mod again;
mod chains;
mod copied;
mod damaged;
mod findings;
mod groups;
mod loaded;
mod lossless;
mod metadata;
mod output;
mod refused;
mod reproducible;
mod runtimes;
mod shared;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use support::example::{GROUPS, shards};
use support::fat_wheels::{Made, fat};
use support::tampered::verify;

/// The split of the fat wheel, made once for all tests.
fn made() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| Made::of(&fat(), &[]))
}

/// A library without device code.
fn native() -> PathBuf {
    let host = GROUPS[0].stage(&shards(), "lib");
    host.ancestors().nth(2).unwrap().join("hipBLAS/stage/lib/libexcblas.so.1.0")
}

/// Asserts that `verify` finds nothing wrong with the wheels in `out`, also beside those that they were made of.
#[track_caller]
fn verifies(out: &Path, inputs: &[PathBuf]) {
    let out = [out.to_str().unwrap()];
    verify(&out, &[]).fired(&[]);
    let against = inputs.iter().flat_map(|input| ["--against", input.to_str().unwrap()]);
    verify(&out, &against.collect::<Vec<_>>()).fired(&[]);
}
