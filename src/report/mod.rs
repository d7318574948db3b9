//! What a run has to say: findings and progress.
//!
//! Findings are facts about the input that did not stop the run but that somebody has to know:
//! each has a stable code, a subject and a sentence. Rendering for people and for JSON lives
//! here too, so that every subcommand speaks with one voice.

mod finding;
pub mod kpm;
mod progress;

pub use finding::{Code, Finding, Findings, Severity};
pub use progress::{Progress, Silent, Stage};
