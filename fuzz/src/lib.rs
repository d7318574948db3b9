//! The readers of untrusted bytes, each with the properties that hold for any input. One module per target;
//! `fuzz_targets/` gives them to libFuzzer, `tests/limits/fuzz_smoke` of the crate runs them without.
//!
//! The memory of an input is one of these properties: [`run`] measures the peak heap of a target and compares
//! it with the [`Bound`] of the target. Memory of the C decoders of zstd and xz is not counted; the modules
//! that use them state its limits.

#![allow(clippy::unwrap_used, reason = "a failed expectation of a target is a find")]
#![allow(dead_code, reason = "every program that includes it uses a part of it")]

pub mod preserved;

use peak_alloc::PeakAlloc;
use rockpack_core::error::{Error, Kind};

/// Declares the modules of all targets and lists them.
macro_rules! targets {
    ($($name:ident: $fixed:expr, $per_byte:expr;)*) => {
        $(mod $name;)*

        /// All targets, by name.
        pub const TARGETS: &[Target] = &[$(Target {
            name: stringify!($name),
            bound: Bound { fixed: $fixed, per_byte: $per_byte },
            run: $name::run,
        }),*];
    };
}

const MIB: usize = 1 << 20;

/// Heap for windows, tables and small inputs.
const FIXED: usize = 4 * MIB;
/// Heap for the frames of states, which have room for 32 MiB each while they are written.
const FRAMES: usize = 132 * MIB;
/// Heap for a decoded stream in memory: [`rockpack_core::content::HOLD_LIMIT`].
const HELD: usize = 264 * MIB;
/// Heap for the control files of a package, of at most 256 MiB, and for the places of paths in their lists.
const CONTROL: usize = 520 * MIB;
/// The expansion of a byte by zlib, times the heap of a name in a set of names.
const INFLATED: usize = 4096;

// Per byte: slices cost least, open values cost most. A list of numbers in one byte each has some hundred
// bytes for each of them while it grows.
targets! {
    apt_index: FIXED, 256;
    artifact_archive: FIXED, 32;
    ccob: HELD, 32;
    checksum: FIXED, 64;
    code_object: FIXED, 128;
    config: FIXED, 512;
    database_rules: FIXED, 512;
    distribution: FIXED, 512;
    fatbin: HELD, 32;
    hip_wrapper: FIXED, 32;
    host_binary: FIXED, 32;
    inspect: CONTROL, INFLATED;
    kernel_index: FIXED, INFLATED;
    kpack: FIXED, 256;
    kpm: FIXED, 256;
    linking: FIXED, 32;
    manifest: FIXED, 512;
    marker: FIXED, 32;
    offload_bundle: FIXED, 32;
    package: CONTROL, 64;
    package_set: FIXED, 256;
    receipt: FIXED, 256;
    relocations: FIXED, 32;
    repo_state: FRAMES, 256;
    rpm_md: FIXED, 256;
    rpm_sign: FIXED, 512;
    shared_files: HELD, 256;
    spdx: FIXED, 256;
    static_archive: FIXED, 32;
    verify_file: HELD, INFLATED;
    wheel_texts: FIXED, 256;
    zip: FIXED, 64;
}

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// A reader with its properties.
pub struct Target {
    /// The name of its module and binary.
    pub name: &'static str,
    /// The most heap for an input.
    pub bound: Bound,
    run: fn(&[u8]),
}

/// Bytes of heap: `fixed + per_byte * N` for an input of N bytes.
pub struct Bound {
    /// Bytes for any input.
    pub fixed: usize,
    /// Bytes for each byte of it.
    pub per_byte: usize,
}

impl Target {
    /// Runs the target on `bytes`, without a look at the heap.
    pub fn feed(&self, bytes: &[u8]) {
        (self.run)(bytes);
    }

    /// Runs the target on `bytes` and returns its peak heap in bytes, which must be within the bound. Errors
    /// must not keep backtraces (`RUST_LIB_BACKTRACE=0`): the names of their frames take more than any input.
    pub fn run(&self, bytes: &[u8]) -> usize {
        HEAP.reset_peak_usage();
        let before = HEAP.current_usage();
        (self.run)(bytes);
        let taken = HEAP.peak_usage().saturating_sub(before);
        let Bound { fixed, per_byte } = self.bound;
        let most = fixed + per_byte * bytes.len();
        assert!(taken <= most, "{} bytes took {taken} bytes of heap, over {most}", bytes.len());
        taken
    }
}

/// Runs the target `name` on `bytes`.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("is listed");
    target.run(bytes);
}

/// Returns the value of a successful read. An error that says "bug" counts like a panic.
fn read<T>(result: Result<T, Error>) -> Option<T> {
    result.map_err(|error| refuse_bug(&error)).ok()
}

fn refuse_bug(error: &Error) {
    assert_ne!(error.kind(), Kind::Bug, "{error}");
    error.others().iter().for_each(refuse_bug);
}
