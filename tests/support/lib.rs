//! Common code of the test programs: harness, foreign tools, and fixtures. See `tests/README.md`.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

pub use macros::test;

pub mod archives;
pub mod bases;
pub mod ccob;
pub mod device;
pub mod documents;
pub mod example;
pub mod fat_wheels;
pub mod fixtures;
pub mod foreign_deb;
pub mod gpg_keys;
pub mod harness;
pub mod headers;
pub mod installers;
pub mod kpack;
pub mod packages;
pub mod program;
pub mod published;
pub mod python;
pub mod queries;
pub mod random;
pub mod raw_deb;
pub mod raw_header;
pub mod repo_fixture;
pub mod roots;
pub mod runtime;
pub mod schemas;
pub mod scratch;
pub mod screen;
pub mod shim_library;
pub mod strace;
pub mod sweep;
pub mod tampered;
mod times;
pub mod tools;
pub mod transform;
pub mod trees;
pub mod waiting;
pub mod wheels;

use sha2::Digest as _;

/// Bytes in lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// SHA-256 in hex.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&sha2::Sha256::digest(bytes))
}
