//! What a run has to say: findings and progress.
//!
//! Findings are facts about the input that did not stop the run but that somebody has to know:
//! each has a stable code, a subject and a sentence. Rendering for people and for JSON lives
//! here too, so that every subcommand speaks with one voice.

mod build;
mod directories;
mod discover;
mod extract;
mod finding;
mod inspect;
pub mod kpm;
mod progress;
mod table;
mod units;
mod verify;

pub use build::build_text;
pub use directories::{DirectoriesReport, directories_text};
pub use discover::{discovery_text, proposal_reasons};
pub use extract::extract_text;
pub use finding::{Code, Finding, Findings, Severity};
pub use inspect::inspect_text;
pub use progress::{Progress, Silent, Stage};
pub use verify::verify_text;

/// Every finding on a line of its own.
fn findings_text(findings: &Findings) -> String {
    let line = |finding: &Finding| format!("{}: {finding}\n", finding.code.severity());
    findings.iter().map(line).collect()
}
