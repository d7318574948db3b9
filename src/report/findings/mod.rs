//! Findings: facts about the input that did not stop the run, but that somebody has to know.
//!
//! The [table](table) declares each with its stable code, its severity, its typed fields and the text
//! that is made of them. Nothing reads the text again: whoever asks what a finding says matches it.

mod details;
mod integrity;
mod interpreter;
mod library_folder;
mod misfit;
mod publication;
mod subjects;
mod table;
mod wheels;

use std::collections::BTreeMap;

use derive_more::Display;
use serde::{Serialize, Serializer};
use serde_json::Value;

pub use details::*;
pub use integrity::Inconsistency;
pub use interpreter::*;
pub use library_folder::LibraryFolder;
pub use misfit::{Discord, Misfit};
pub use publication::PackageLeftOut;
pub use subjects::*;
pub use table::{Code, Finding};
pub use wheels::PypiRefusal;

use rockpack_base::content::Sha256Digest;
use rockpack_base::error::{Error, Kind, Remark, printable};

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

impl Finding {
    /// The code objects it accounts for.
    pub fn code_objects(&self) -> &[Sha256Digest] {
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

    /// What it is about and what else it names: its own fields that are a text (`library`), the path
    /// of each that is a file, and the last part of each path. Lists are left out: who means one of several things does not mean
    /// the finding.
    pub fn named_things(&self) -> Vec<String> {
        let mut things = vec![self.subject()];
        if let Ok(Value::Object(mut fields)) = serde_json::to_value(self) {
            TEXT_FIELDS.iter().for_each(|name| drop(fields.remove(*name)));
            things.extend(fields.values().filter_map(|field| match field {
                Value::String(text) => Some(text.clone()),
                Value::Object(file) => file.get("path").and_then(Value::as_str).map(str::to_owned),
                _ => None,
            }));
        }
        let names = things.iter().filter_map(|thing| Some(thing.rsplit_once('/')?.1.to_owned()));
        let names: Vec<String> = names.collect();
        things.extend(names);
        things
    }
}

/// The fields of a finding's JSON that its text is made of, or that are the same for its code.
const TEXT_FIELDS: [&str; 5] = ["code", "name", "severity", "subject", "message"];

/// The findings of a run, in the order of code and subject. As JSON, an accepted one has `accepted`
/// behind its own fields, with the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    list: Vec<Finding>,
    /// Those that the configuration accepts, and why.
    accepted: BTreeMap<Finding, String>,
}

impl Findings {
    /// Those of all `parts`.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a Findings>) -> Self {
        let mut all = Self::default();
        parts.into_iter().for_each(|part| all.extend(part.clone()));
        all
    }

    /// Adds one.
    pub fn add(&mut self, finding: Finding) {
        self.list.push(finding);
    }

    /// Adds one that is accepted for this reason.
    pub fn add_accepted(&mut self, finding: Finding, reason: &str) {
        self.accepted.insert(finding.clone(), reason.to_owned());
        self.list.push(finding);
    }

    /// Adds all of `other`.
    pub fn extend(&mut self, other: Findings) {
        self.list.extend(other.list);
        self.accepted.extend(other.accepted);
    }

    /// Drops those that `keep` does not hold for.
    pub fn retain(&mut self, keep: impl FnMut(&Finding) -> bool) {
        self.list.retain(keep);
    }

    /// Accepts those that `fits` holds for, unless they are accepted already; says how many it holds
    /// for.
    pub fn accept(&mut self, fits: impl Fn(&Finding) -> bool, reason: &str) -> usize {
        let fitting: Vec<&Finding> = self.list.iter().filter(|finding| fits(finding)).collect();
        for finding in &fitting {
            self.accepted.entry((*finding).clone()).or_insert_with(|| reason.to_owned());
        }
        fitting.len()
    }

    /// Why a finding is accepted, if it is.
    pub fn acceptance(&self, finding: &Finding) -> Option<&str> {
        self.accepted.get(finding).map(String::as_str)
    }

    /// Brings them into their final order and drops repetitions.
    pub fn sort(&mut self) {
        // Findings with one text may differ in what the text leaves out.
        self.list.sort();
        self.list
            .sort_by_cached_key(|finding| (finding.code(), finding.subject(), finding.message()));
        self.list.dedup();
    }

    /// The findings.
    pub fn iter(&self) -> std::slice::Iter<'_, Finding> {
        self.list.iter()
    }

    /// Those that probably are mistakes, and that nobody accepts.
    pub fn warnings(&self) -> Self {
        self.filtered(|finding| self.is_warning(finding))
    }

    /// Those that are worth knowing only, and those that are accepted.
    pub fn notes(&self) -> Self {
        self.filtered(|finding| !self.is_warning(finding))
    }

    fn filtered(&self, keep: impl Fn(&Finding) -> bool) -> Self {
        let list = self.list.iter().filter(|finding| keep(finding)).cloned().collect();
        Self { list, accepted: self.accepted.clone() }
    }

    fn is_warning(&self, finding: &Finding) -> bool {
        finding.code().severity() == Severity::Warning && !self.accepted.contains_key(finding)
    }

    /// `result`; an error gets these findings, which may explain it.
    pub fn explain<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|error| error.explained(self.remarks()))
    }

    /// The error with its findings as `mark` leaves them.
    pub fn remark_again(mut error: Error, mark: impl FnOnce(&mut Findings)) -> Error {
        let remarks = error.take_remarks();
        let list = remarks.iter().filter_map(|remark| serde_json::from_str(&remark.json).ok());
        let mut findings = Self { list: list.collect(), ..Self::default() };
        mark(&mut findings);
        error.explained(findings.remarks())
    }

    /// Each as it is shown beside a result.
    pub fn remarks(&self) -> impl Iterator<Item = Remark> {
        self.list.iter().filter_map(|finding| self.remark(finding))
    }

    /// A finding as results show it.
    fn remark(&self, finding: &Finding) -> Option<Remark> {
        let accepted = self.acceptance(finding);
        let json = serde_json::to_string(&WithAcceptance { finding, accepted }).ok()?;
        Some(Remark { json, text: line(finding, accepted) })
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// An error that gathers every warning, if there is one, for `--strict`; `otherwise` is what to do but
    /// settling them.
    pub fn refuse_warnings(&self, otherwise: &str) -> Result<(), Error> {
        let warnings = self.list.iter().filter(|finding| self.is_warning(finding));
        let faults = warnings.map(|f| Error::new(Kind::Conflict, with_key(f))).collect();
        match Error::gather(faults) {
            Some(error) => Err(error.hint(format!(
                "--strict turns warnings into errors: settle them (`rockpack explain CODE` says \
                 how), {otherwise}"
            ))),
            None => Ok(()),
        }
    }
}

impl Serialize for Findings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let of = |finding| WithAcceptance { finding, accepted: self.acceptance(finding) };
        serializer.collect_seq(self.list.iter().map(of))
    }
}

/// A finding with what follows its own fields.
#[derive(Serialize)]
struct WithAcceptance<'a> {
    #[serde(flatten)]
    finding: &'a Finding,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted: Option<&'a str>,
}

/// A finding in one line for people: with its severity and the key that settles it, or with the reason
/// why it is accepted.
pub fn line(finding: &Finding, accepted: Option<&str>) -> String {
    if let Some(reason) = accepted {
        return format!("accepted: {finding}; reason: {}", printable(reason));
    }
    format!("{}: {}", finding.code().severity(), with_key(finding))
}

/// A finding with the key that settles it, where its text does not name one.
fn with_key(finding: &Finding) -> String {
    let text = finding.to_string();
    match finding.code().key() {
        Some(key) if !text.contains(&format!("`{key}`")) => format!("{text} [key: {key}]"),
        _ => text,
    }
}

#[cfg(test)]
mod tests;
