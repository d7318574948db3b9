//! What a run has to say while it runs: findings and progress. Everything may use this module, so
//! it uses nothing but errors and plain values; results are put into words by `render`.

mod coded;
mod findings;
#[cfg(test)]
pub(crate) mod fixture;
mod machine;
mod names;
mod progress;
mod summary;
pub mod words;

pub(crate) use coded::coded;
pub use findings::*;
pub use machine::ElfMachine;
pub use names::{ComponentName, PackageName, Soname};
pub use progress::{Compressed, Progress, Silent, Stage, Work};
pub use summary::{StageSummary, Sum, Summary, WorkSummary};
