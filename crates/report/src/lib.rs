//! Reports of a run while it runs: findings and progress.
//!
//! Most crates use this one, so it uses only errors and plain values. `render` of the program puts results into words.

mod coded;
mod findings;
mod machine;
mod names;
mod progress;
mod summary;
pub mod words;

pub use findings::*;
pub use machine::ElfMachine;
pub use names::{ComponentName, PackageName, Soname};
pub use progress::{Compressed, Progress, Silent, Stage, Work};
pub use summary::{StageSummary, Sum, Summary, WorkSummary};
