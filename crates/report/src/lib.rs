//! Reports of a run while it runs: findings and progress.
//!
//! Most crates use this one, so it uses only errors and plain values. `render` of the program puts results into words.

mod findings;
pub mod page;
mod progress;
mod subjects;
pub mod words;

pub use findings::*;
pub use progress::*;
pub use subjects::*;
