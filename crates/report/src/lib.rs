//! Reports of a run while it runs: findings and progress.
//!
//! Most crates depend on this one, so it depends only on errors and plain values. The program's `render` formats
//! results.

mod findings;
pub mod page;
mod progress;
mod subjects;
pub mod words;

pub use findings::*;
pub use progress::*;
pub use subjects::*;
