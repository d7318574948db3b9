//! The dependencies and capabilities of a package's files, in the words of a format.
//!
//! ```text
//! file ─ rockpack_elf::Linking ─ search: the folders that the loader searches
//!                              ─ packages, by the table of a distribution (crate `distribution`)
//!                              ─ rpm: capabilities, as rpm's own generators name them
//!                              ─ runpath: search paths in terms of the file itself
//! file ─ script: the interpreter in its first line ─ here: the programs of a distribution
//! ```
//!
//! Pure functions of the files' facts. The plan decides which library of the set a name leads to. This module
//! looks up names, and derives the dependencies for those outside of the set.

pub mod rpm;
pub mod runpath;
pub mod script;
pub mod search;
