//! Properties of every input: written values are read back, the transform of a host binary leaves foreign
//! bytes alone, and damage never gives a wrong value.
//!
//! Foreign tools judge the formats in other tests; these need only Rust.

mod damage;
mod documents;
mod indexes;
mod lists;
mod round_trips;
mod samples;
mod signatures;
mod transform;

use rockpack_core::content::Content;
use support::tools;

/// Reads all bytes of `content`.
fn bytes(content: &Content) -> Vec<u8> {
    content.read_vec(0..content.len(), 1 << 30, "test").unwrap()
}

/// A file of the repository.
fn file(path: &str) -> Vec<u8> {
    std::fs::read(tools::repository(path)).unwrap()
}
