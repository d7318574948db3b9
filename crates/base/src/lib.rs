//! The base of every stage of the packer: bytes, formats, targets, trees, errors, and the limits of a run.
//!
//! ```text
//! error ◄─ run ◄─ content ◄─ formats        gfx, tree, once, named
//! ```
//!
//! Nothing here reads artifacts, packages of a set, or settings, though `gfx` and `tree` define the words
//! that artifact names are made of. Formats do not depend on their caller. The crate boundary enforces this:
//! code here cannot use the rooms above it.

pub mod content;
pub mod error;
pub mod formats;
pub mod gfx;
pub mod named;
pub mod once;
pub mod run;
pub mod tree;
