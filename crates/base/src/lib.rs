//! What every stage of the packer stands on: bytes, formats, targets, trees, errors, and what a run
//! may take.
//!
//! ```text
//! error ◄─ run ◄─ content ◄─ formats        gfx, tree, once
//! ```
//!
//! Nothing here reads artifacts, packages of a set, or settings, though `gfx` and `tree` hold the words
//! that names of artifacts are made of. A format is read and written the same whoever asks. The crate
//! boundary holds that: what lies here cannot use what lies above it.

pub mod content;
pub mod error;
pub mod formats;
pub mod gfx;
pub mod once;
pub mod run;
pub mod tree;
