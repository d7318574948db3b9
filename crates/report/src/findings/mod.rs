//! Findings: observations about the input or result that did not stop the run.
//!
//! The [table](table) declares each finding with its stable code, severity, typed fields and message. Code uses the
//! fields and never parses a message.

mod details;
mod host;
mod packages;
mod table;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use derive_more::{Deref, Display, IntoIterator};
use rockpack_core::content::Sha256Digest;
use rockpack_core::error::{Error, Kind, Remark, printable};
use rockpack_core::unique_keys::OrderedMap;
use serde::de::{DeserializeOwned, Error as _};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::words::counted;

pub use details::*;
pub use host::*;
pub use packages::*;
pub use table::found;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Display)]
#[display(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; never fails a run.
    Note,
    /// Probably a mistake in the input; fails a run under `--strict`.
    Warning,
}

/// The stable code of a finding. Codes are never reused or renumbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display)]
#[display("{id} {name}")]
pub struct Code {
    /// The number, e.g. `R012`.
    pub id: &'static str,
    /// The name, e.g. `arch-not-grouped`.
    pub name: &'static str,
    pub severity: Severity,
    /// The configuration key that resolves such findings, if there is one.
    pub key: Option<&'static str>,
}

impl Code {
    /// The code with this number, e.g. `R012`.
    pub fn of_id(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.id == id)
    }
}

/// One finding with its message and its fields as untyped JSON, so that findings of other versions of rockpack can be
/// read. Those keep the severity and message that they were written with.
#[derive(Debug, Clone)]
pub struct Finding {
    code: String,
    name: String,
    severity: String,
    subject: String,
    message: String,
    /// The fields in the order of the table.
    fields: Vec<(String, Value)>,
    /// The reason, if the configuration accepts the finding.
    accepted: Option<String>,
    /// A value of a type in `found`; `None` if the finding was read from JSON.
    found: Option<Arc<dyn Any + Send + Sync>>,
}

impl PartialEq for Finding {
    fn eq(&self, other: &Self) -> bool {
        (self.content(), &self.accepted) == (other.content(), &other.accepted)
    }
}

impl Eq for Finding {}

impl Finding {
    fn new(
        code: Code,
        [subject, message]: [String; 2],
        fields: Vec<(&str, Value)>,
        found: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        Self {
            code: code.id.to_owned(),
            name: code.name.to_owned(),
            severity: code.severity.to_string(),
            subject,
            message,
            fields: fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            accepted: None,
            found: Some(found),
        }
    }

    /// `None` if the code is from a later version of rockpack.
    pub fn code(&self) -> Option<Code> {
        Code::of_id(&self.code)
    }

    /// The typed value; `None` if it has another type, or if the finding was read from a receipt.
    pub fn found<T: Any>(&self) -> Option<&T> {
        self.found.as_ref()?.downcast_ref()
    }

    /// The path, arch or package that the finding is about.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// One sentence without subject and full stop: the observation and its consequence.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The field of this name; `None` if the finding does not have it or it has another type. Findings in receipts of
    /// other versions may lack fields, and then excuse nothing.
    pub fn field<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let (_, value) = self.fields.iter().find(|(own, _)| own == name)?;
        T::deserialize(value).ok()
    }

    /// The code objects that the finding accounts for.
    pub fn code_objects(&self) -> Vec<Sha256Digest> {
        self.field("code_objects").unwrap_or_default()
    }

    /// Whether the finding is probably a mistake and not accepted.
    pub fn is_warning(&self) -> bool {
        self.severity != "note" && self.accepted.is_none()
    }

    /// The texts that a pattern of `accept` is matched against: the subject, text fields (`library`), the path of each
    /// file, and the last component of each. Lists are left out: a pattern for one item must not accept all.
    pub fn matchable_names(&self) -> Vec<&str> {
        let fields = self.fields.iter();
        let named = fields.filter_map(|(_, it)| it.get("path").unwrap_or(it).as_str());
        let mut things: Vec<&str> = [self.subject()].into_iter().chain(named).collect();
        let names: Vec<&str> =
            things.iter().filter_map(|thing| Some(thing.rsplit_once('/')?.1)).collect();
        things.extend(names);
        things
    }

    pub fn remark(&self) -> Remark {
        Remark { json: json!(self).to_string(), text: self.to_string() }
    }

    /// The text without the severity, plus the key that resolves the finding unless the text already names it.
    fn with_key(&self) -> String {
        let text = self.text();
        match self.code().and_then(|code| code.key) {
            Some(key) if !text.contains(&format!("`{key}`")) => format!("{text} [key: {key}]"),
            _ => text,
        }
    }

    fn text(&self) -> String {
        let Self { code, name, subject, message, .. } = self;
        let [code, name, subject, message] = [code, name, subject, message].map(|it| printable(it));
        format!("{code} {name}: {subject}: {message}")
    }

    /// Everything but the acceptance. Findings with equal content are duplicates.
    fn content(&self) -> (&str, &str, &str, &[(String, Value)]) {
        (&self.code, &self.subject, &self.message, &self.fields)
    }

    /// The sort key. Of duplicates, the accepted one comes first and is kept.
    fn place(&self) -> ([String; 4], bool) {
        let (code, subject, message, fields) = self.content();
        let fields = json!(fields).to_string();
        ([code, subject, message, &fields].map(str::to_owned), self.accepted.is_none())
    }
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { code, name, severity, subject, message, .. } = self;
        let mut map = serializer.serialize_map(None)?;
        for (key, text) in TEXT_FIELDS.iter().zip([code, name, severity, subject, message]) {
            map.serialize_entry(key, text)?;
        }
        self.fields.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        self.accepted.iter().try_for_each(|reason| map.serialize_entry("accepted", reason))?;
        map.end()
    }
}

/// The JSON fields that every finding has.
const TEXT_FIELDS: [&str; 5] = ["code", "name", "severity", "subject", "message"];

impl<'de> Deserialize<'de> for Finding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let OrderedMap(mut fields) = OrderedMap::<Value>::deserialize(deserializer)?;
        let mut take = |name| {
            let at = fields.iter().position(|(own, _)| own == name)?;
            let text = fields.remove(at).1.as_str().map(str::to_owned);
            Some(text.ok_or_else(|| D::Error::custom(format!("`{name}` of a finding is not text"))))
        };
        let accepted = take("accepted").transpose()?;
        let text = |name| take(name).unwrap_or_else(|| Err(D::Error::missing_field(name)));
        let [code, name, severity, subject, message] = TEXT_FIELDS.map(text);
        let (code, name, severity) = (code?, name?, severity?);
        let (subject, message) = (subject?, message?);
        Ok(Self { code, name, severity, subject, message, fields, accepted, found: None })
    }
}

/// One line with the severity and the key, or with the reason for accepting the finding.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.accepted {
            Some(reason) => write!(f, "accepted: {}; reason: {}", self.text(), printable(reason)),
            None => write!(f, "{}: {}", printable(&self.severity), self.with_key()),
        }
    }
}

/// The findings of a run, sorted by code and subject.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, Deref, IntoIterator)]
#[serde(transparent)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// Concatenates the findings of all `parts`.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a Findings>) -> Self {
        Self(parts.into_iter().flat_map(|part| part.0.clone()).collect())
    }

    pub fn add(&mut self, found: impl Into<Finding>) {
        self.0.push(found.into());
    }

    pub fn extend(&mut self, other: impl IntoIterator<Item = Finding>) {
        self.0.extend(other);
    }

    pub fn retain(&mut self, keep: impl FnMut(&Finding) -> bool) {
        self.0.retain(keep);
    }

    /// Accepts the findings that `fits` selects, and returns their number. Findings keep the first reason.
    pub fn accept(&mut self, fits: impl Fn(&Finding) -> bool, reason: &str) -> usize {
        let fitting = self.0.iter_mut().filter(|finding| fits(finding));
        fitting.map(|it| it.accepted.get_or_insert_with(|| reason.to_owned())).count()
    }

    /// Sorts the findings and drops duplicates.
    pub fn sort(&mut self) {
        self.0.sort_by_cached_key(Finding::place);
        self.0.dedup_by(|one, other| one.content() == other.content());
    }

    /// Warnings that are not accepted.
    pub fn warnings(&self) -> Self {
        self.filtered(Finding::is_warning)
    }

    /// Notes, and accepted findings.
    pub fn notes(&self) -> Self {
        self.filtered(|finding| !finding.is_warning())
    }

    fn filtered(&self, keep: impl Fn(&Finding) -> bool) -> Self {
        Self(self.iter().filter(|finding| keep(finding)).cloned().collect())
    }

    /// Attaches the findings to the error of `result`: they may explain it.
    pub fn explain<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|error| error.with_remarks(self.iter().map(Finding::remark)))
    }

    /// Returns an error that carries all findings if there are warnings, for `--strict`. `otherwise` is the
    /// alternative to solving them.
    pub fn refuse_warnings(&self, otherwise: &str) -> Result<(), Error> {
        let warnings = self.iter().filter(|it| it.is_warning()).count();
        if warnings == 0 {
            return Ok(());
        }
        let message = format!("{} with --strict", counted(warnings, "warning"));
        let hint = format!("solve them (`rockpack explain CODE` says how), {otherwise}");
        self.explain(Err(Error::new(Kind::Conflict, message).hint(hint)))
    }

    /// Returns an error with the warnings that are `refused`.
    pub fn refuse(&self, refused: impl Fn(Code) -> bool, hint: &str) -> Result<(), Error> {
        let all = self.iter().filter(|it| it.is_warning() && it.code().is_some_and(&refused));
        let faults = all.map(|it| Error::new(Kind::Conflict, it.with_key())).collect();
        Error::gather(faults).map_or(Ok(()), |error| Err(error.hint(hint)))
    }
}

#[cfg(test)]
mod tests;
