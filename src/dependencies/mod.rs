//! What the files of a package need from outside, and what they offer, in the words of a format.
//!
//! ```text
//! file ─ formats::elf::Linking ─ search: where the loader looks
//!                              ─ debian: packages, by the tables of a distribution
//!                              ─ rpm: capabilities, as rpm's own generators name them
//!                              ─ runpath: search paths in terms of the file itself
//! file ─ script: the interpreter in its first line ─ names: the programs of a distribution
//! ```
//!
//! Beside that, `system` knows packages that no set may take the place of.
//!
//! Pure functions on what was read. Which library of the set a name leads to is for the plan to
//! decide; here is how names are looked up, and what follows for those that lead outside.

pub mod debian;
pub mod distribution;
pub mod names;
pub mod rpm;
pub mod runpath;
pub mod script;
pub mod search;
pub mod system;

pub use distribution::Distribution;
pub use names::KnownNames;
pub use system::SystemPackages;
