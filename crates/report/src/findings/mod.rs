//! Findings: facts about the input that did not stop the run, but that people have to know.
//!
//! The [table](table) declares each finding with its stable code, severity, typed fields and text. No code
//! reads the text again; the fields have everything.

mod details;
mod host;
mod packages;
mod table;

use std::collections::BTreeMap;

use derive_more::Display;
use rockpack_core::error::{Error, Kind, Remark, printable};
use serde::{Serialize, Serializer};
use serde_json::Value;

pub use details::*;
pub use host::*;
pub use packages::*;
pub use table::{Code, Finding};

/// The importance of a finding.
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
    /// The code with this number; `None` if there is no such code.
    pub fn of_id(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.id() == id)
    }
}

impl Finding {
    /// Reads a finding in the form that receipts and remarks have. The one place that does: each further one compiles
    /// the fields of all findings again.
    pub fn from_json(json: &str) -> serde_json::Result<Self> {
        serde_json::from_str(json)
    }

    /// The subject and everything else that the finding names: text fields (`library`), the path of each
    /// file, and the last part of each path. Lists are left out, because a pattern for one of several things
    /// is not meant for the finding.
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
        let names: Vec<String> =
            things.iter().filter_map(|thing| Some(thing.rsplit_once('/')?.1.to_owned())).collect();
        things.extend(names);
        things
    }
}

/// The fields of a finding's JSON that make up its text, or that are the same for all findings of a code.
const TEXT_FIELDS: [&str; 5] = ["code", "name", "severity", "subject", "message"];

/// The findings of a run, sorted by code and subject. In JSON, an accepted finding ends with the field
/// `accepted`, the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    list: Vec<Finding>,
    /// Accepted findings, with the reasons.
    accepted: BTreeMap<Finding, String>,
}

impl Findings {
    /// The findings of all `parts` together.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a Findings>) -> Self {
        let mut all = Self::default();
        parts.into_iter().for_each(|part| all.extend(part.clone()));
        all
    }

    /// Adds a finding.
    pub fn add(&mut self, finding: Finding) {
        self.list.push(finding);
    }

    /// Adds a finding that is accepted for this reason.
    pub fn add_accepted(&mut self, finding: Finding, reason: &str) {
        self.accepted.insert(finding.clone(), reason.to_owned());
        self.list.push(finding);
    }

    /// Adds all findings of `other`.
    pub fn extend(&mut self, other: Findings) {
        self.list.extend(other.list);
        self.accepted.extend(other.accepted);
    }

    /// Keeps only the findings that `keep` selects.
    pub fn retain(&mut self, keep: impl FnMut(&Finding) -> bool) {
        self.list.retain(keep);
    }

    /// Accepts the findings that `fits` selects, and returns their number. Earlier reasons stay.
    pub fn accept(&mut self, fits: impl Fn(&Finding) -> bool, reason: &str) -> usize {
        let fitting: Vec<&Finding> = self.list.iter().filter(|finding| fits(finding)).collect();
        for finding in &fitting {
            self.accepted.entry((*finding).clone()).or_insert_with(|| reason.to_owned());
        }
        fitting.len()
    }

    /// The reason for accepting a finding, if it is accepted.
    pub fn acceptance(&self, finding: &Finding) -> Option<&str> {
        self.accepted.get(finding).map(String::as_str)
    }

    /// Sorts the findings and drops duplicates.
    pub fn sort(&mut self) {
        // Findings with the same text may differ in fields that the text leaves out.
        self.list.sort();
        self.list
            .sort_by_cached_key(|finding| (finding.code(), finding.subject(), finding.message()));
        self.list.dedup();
    }

    /// All findings, in their order.
    pub fn iter(&self) -> std::slice::Iter<'_, Finding> {
        self.list.iter()
    }

    /// Findings that are probably mistakes and not accepted.
    pub fn warnings(&self) -> Self {
        self.filtered(|finding| self.is_warning(finding))
    }

    /// Findings that are notes only, and accepted findings.
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

    /// Attaches these findings to the error of `result`, because they may explain it.
    pub fn explain<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|error| error.explained(self.remarks()))
    }

    /// Replaces the findings of an error with the same findings as `mark` leaves them.
    pub fn remark_again(mut error: Error, mark: &dyn Fn(&mut Findings)) -> Error {
        let remarks = error.take_remarks();
        let list = remarks.iter().filter_map(|remark| Finding::from_json(&remark.json).ok());
        let mut findings = Self { list: list.collect(), ..Self::default() };
        mark(&mut findings);
        error.explained(findings.remarks())
    }

    /// The findings as remarks beside a result.
    pub fn remarks(&self) -> impl Iterator<Item = Remark> {
        self.list.iter().filter_map(|finding| self.remark(finding))
    }

    /// A finding as a remark beside a result.
    fn remark(&self, finding: &Finding) -> Option<Remark> {
        let accepted = self.acceptance(finding);
        let json = serde_json::to_string(&WithAcceptance { finding, accepted }).ok()?;
        Some(Remark { json, text: line(finding, accepted) })
    }

    /// Whether there are no findings.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns an error with all warnings, for `--strict`. `otherwise` is the alternative to settling them.
    pub fn refuse_warnings(&self, otherwise: &str) -> Result<(), Error> {
        let hint = format!(
            "--strict turns warnings into errors: settle them (`rockpack explain CODE` says \
             how), {otherwise}"
        );
        self.refuse(|_| true, &hint)
    }

    /// Returns an error with the warnings that are `refused`.
    pub fn refuse(&self, refused: impl Fn(Code) -> bool, hint: &str) -> Result<(), Error> {
        let all = self.list.iter().filter(|it| self.is_warning(it) && refused(it.code()));
        let faults = all.map(|f| Error::new(Kind::Conflict, with_key(f))).collect();
        Error::gather(faults).map_or(Ok(()), |error| Err(error.hint(hint)))
    }
}

impl Serialize for Findings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(
            self.list
                .iter()
                .map(|finding| WithAcceptance { finding, accepted: self.acceptance(finding) }),
        )
    }
}

/// A finding with the field that follows its own.
#[derive(Serialize)]
struct WithAcceptance<'a> {
    #[serde(flatten)]
    finding: &'a Finding,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted: Option<&'a str>,
}

/// A finding in one line for people, with its severity and its key, or with the reason for accepting it.
pub fn line(finding: &Finding, accepted: Option<&str>) -> String {
    if let Some(reason) = accepted {
        return format!("accepted: {finding}; reason: {}", printable(reason));
    }
    format!("{}: {}", finding.code().severity(), with_key(finding))
}

/// A finding with the key that settles it, unless the text already names the key.
fn with_key(finding: &Finding) -> String {
    let text = finding.to_string();
    match finding.code().key() {
        Some(key) if !text.contains(&format!("`{key}`")) => format!("{text} [key: {key}]"),
        _ => text,
    }
}

#[cfg(test)]
mod tests;
