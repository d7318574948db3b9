//! The readers of untrusted bytes, each with what must hold for any input. One module per target;
//! `fuzz_targets/` gives them to libFuzzer, `tests/fuzz_smoke.rs` of the crate runs them without.
//!
//! What an input may cost is part of that: [`run`] counts the heap that a target takes at most and
//! holds it against the [`Bound`] of the target. Memory of the C decoders of zstd and xz is not
//! counted; they have limits of their own, which the modules that use them state.

#![allow(clippy::unwrap_used, reason = "a failed expectation of a target is a find")]
#![allow(dead_code, reason = "every program that includes it uses a part of it")]

pub mod preserved;

use std::backtrace::Backtrace;
use std::sync::LazyLock;

use peak_alloc::PeakAlloc;
use rockpack::error::{Error, Kind};

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

targets! {
    apt_index: 4 * MIB, 512;
    artifact_archive: 4 * MIB, 512;
    ccob: 4 * MIB, 512;
    code_object: 4 * MIB, 512;
    config: 4 * MIB, 512;
    database_rules: 4 * MIB, 512;
    fatbin: 4 * MIB, 512;
    hip_wrapper: 4 * MIB, 512;
    host_binary: 4 * MIB, 512;
    inspect: 4 * MIB, 512;
    kernel_index: 4 * MIB, 512;
    kpack: 4 * MIB, 512;
    kpm: 4 * MIB, 512;
    linking: 4 * MIB, 512;
    manifest: 4 * MIB, 512;
    marker: 4 * MIB, 512;
    offload_bundle: 4 * MIB, 512;
    package: 4 * MIB, 512;
    receipt: 4 * MIB, 512;
    relocations: 4 * MIB, 512;
    repo_state: 4 * MIB, 512;
    rpm_md: 4 * MIB, 512;
    rpm_sign: 4 * MIB, 512;
    shared_files: 4 * MIB, 512;
    static_archive: 4 * MIB, 512;
    verify_file: 4 * MIB, 512;
}

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// A reader and what holds for it.
pub struct Target {
    /// Name of its module and binary.
    pub name: &'static str,
    /// The most heap that an input may take.
    pub bound: Bound,
    run: fn(&[u8]),
}

/// Bytes of heap: `fixed + per_byte * N` for an input of N bytes.
pub struct Bound {
    /// For any input.
    pub fixed: usize,
    /// For each byte of it.
    pub per_byte: usize,
}

impl Target {
    /// Runs it on `bytes`, whatever the heap that it takes.
    pub fn feed(&self, bytes: &[u8]) {
        (self.run)(bytes);
    }

    /// Runs it on `bytes` and returns the bytes of heap that it took at most, which must be within
    /// the bound.
    pub fn run(&self, bytes: &[u8]) -> usize {
        *BACKTRACES;
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

/// Loads the symbols of this program where the environment asks for backtraces: errors of `pgp` have
/// one, and the symbols take more than any input does.
static BACKTRACES: LazyLock<()> = LazyLock::new(|| drop(Backtrace::capture().to_string()));

/// Runs the target `name` on `bytes`.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("is listed");
    target.run(bytes);
}

/// An error that says that it is a bug is a find like a panic.
fn refuse_bug(error: &Error) {
    assert_ne!(error.kind(), Kind::Bug, "{error}");
    error.others().iter().for_each(refuse_bug);
}
