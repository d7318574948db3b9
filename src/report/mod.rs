//! What a run has to say while it runs: findings and progress. Everything may use this module, so
//! it uses nothing but errors; results are put into words by `render`.
//!
//! Findings are facts about the input that did not stop the run but that somebody has to know:
//! each has a stable code, a subject and a sentence.

mod finding;
mod progress;
mod summary;

pub use finding::{Code, Finding, Findings, Severity};
pub use progress::{Compressed, Progress, Silent, Stage, Work};
pub use summary::{StageSummary, Sum, Summary, WorkSummary};
