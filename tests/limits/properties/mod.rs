//! What holds for every input: what is written is read back, the transform of a host binary leaves
//! alone what is not its own, and damage is never a wrong value.
//!
//! Of the formats themselves foreign tools judge elsewhere; here nothing is needed but Rust.

mod damage;
mod documents;
mod indexes;
mod lists;
mod round_trips;
mod samples;
mod signatures;
mod transform;

use rockpack_base::content::Content;
use support::tools;

/// All bytes of `content`.
fn bytes(content: &Content) -> Vec<u8> {
    content.read_vec(0..content.len(), 1 << 30, "test").unwrap()
}

/// A file of the repository.
fn file(path: &str) -> Vec<u8> {
    std::fs::read(tools::repository(path)).unwrap()
}
