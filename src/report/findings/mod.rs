//! Findings: facts about the input that did not stop the run, but that somebody has to know.
//!
//! The [table](table) declares each with its stable code, its severity, its typed fields and the text
//! that is made of them. Nothing reads the text again: whoever asks what a finding says matches it.

#[macro_use]
mod define;
mod details;
mod interpreter;
mod library_folder;
mod subjects;
mod table;

use std::fmt;

use derive_more::Display;
use serde::Serialize;

pub use details::*;
pub use interpreter::*;
pub use library_folder::LibraryFolder;
pub use subjects::*;
pub use table::{Code, Finding};

use crate::error::{Error, Kind, Remark, printable};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Display)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; never fails a run.
    #[display("note")]
    Note,
    /// Probably a mistake in the input; fails a run under `--strict`.
    #[display("warning")]
    Warning,
}

impl Code {
    /// The code with this number.
    pub fn of_id(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.id() == id)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id(), self.name())
    }
}

impl Finding {
    /// SHA-256 of the code objects it accounts for, in hex.
    pub fn code_objects(&self) -> &[String] {
        match self {
            Self::ArchNotGrouped { code_objects, .. }
            | Self::BundleUnreferenced { code_objects, .. }
            | Self::DatabaseShared { code_objects, .. }
            | Self::DuplicateDropped { code_objects, .. }
            | Self::DatabaseHostCode { code_objects, .. }
            | Self::EmptyCodeObject { code_objects, .. }
            | Self::KeptFat { code_objects, .. }
            | Self::KeptFatDropped { code_objects, .. }
            | Self::KernelsUnclaimed { code_objects, .. }
            | Self::ArchExcluded { code_objects, .. }
            | Self::ArchDropped { code_objects, .. }
            | Self::ComponentLeftOut { code_objects, .. }
            | Self::NotListed { code_objects, .. } => code_objects,
            _ => &[],
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (subject, message) = (self.subject(), self.message());
        write!(f, "{}: {}: {}", self.code(), printable(&subject), printable(&message))
    }
}

/// The findings of a run, in the order of code and subject.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// Those of all `parts`.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a Findings>) -> Self {
        Self(parts.into_iter().flat_map(|part| &part.0).cloned().collect())
    }

    /// Adds one.
    pub fn add(&mut self, finding: Finding) {
        self.0.push(finding);
    }

    /// Adds all of `other`.
    pub fn extend(&mut self, other: Findings) {
        self.0.extend(other.0);
    }

    /// Drops those that `keep` does not hold for.
    pub fn retain(&mut self, keep: impl FnMut(&Finding) -> bool) {
        self.0.retain(keep);
    }

    /// Brings them into their final order and drops repetitions.
    pub fn sort(&mut self) {
        // Findings with one text may differ in what the text leaves out.
        self.0.sort();
        self.0.sort_by_cached_key(|finding| (finding.code(), finding.subject(), finding.message()));
        self.0.dedup();
    }

    /// The findings.
    pub fn iter(&self) -> std::slice::Iter<'_, Finding> {
        self.0.iter()
    }

    /// Those that probably are mistakes.
    pub fn warnings(&self) -> Self {
        Self(self.0.iter().filter(|finding| is_warning(finding)).cloned().collect())
    }

    /// Those that are worth knowing only.
    pub fn notes(&self) -> Self {
        Self(self.0.iter().filter(|finding| !is_warning(finding)).cloned().collect())
    }

    /// `result`; an error gets these findings, which may explain it.
    pub fn explain<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|error| error.explained(self.0.iter().filter_map(remark)))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Under `--strict`: an error that gathers every warning, if there is one.
    pub fn refuse_warnings(&self) -> Result<(), Error> {
        let warnings = self.0.iter().filter(|finding| is_warning(finding));
        let faults = warnings.map(|f| Error::new(Kind::Conflict, f.to_string())).collect();
        match Error::gather(faults) {
            Some(error) => {
                Err(error
                    .hint("--strict turns warnings into errors: settle them, or build without it"))
            }
            None => Ok(()),
        }
    }
}

/// The finding as results show it.
fn remark(finding: &Finding) -> Option<Remark> {
    let json = serde_json::to_string(finding).ok()?;
    Some(Remark { json, text: format!("{}: {finding}", finding.code().severity()) })
}

fn is_warning(finding: &Finding) -> bool {
    finding.code().severity() == Severity::Warning
}

#[cfg(test)]
mod tests;
