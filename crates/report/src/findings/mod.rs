//! Findings: facts about the input that did not stop the run, but that people have to know.
//!
//! The [table](table) declares each finding with its stable code, severity, typed fields and text. No code
//! takes facts from the text; the fields have everything.

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
use rockpack_core::once::Ordered;
use serde::de::{DeserializeOwned, Error as _};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

pub use details::*;
pub use host::*;
pub use packages::*;
pub use table::found;

/// The importance of a finding.
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
    /// The severity.
    pub severity: Severity,
    /// The key of the configuration that settles such findings, if there is one.
    pub key: Option<&'static str>,
}

impl Code {
    /// The code with this number; `None` if there is no such code.
    pub fn of_id(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.id == id)
    }
}

/// One finding, as programs and receipts get it: its text, and its fields as open JSON, so that findings of other
/// versions of rockpack can be read. Those keep the severity and text that they were written with.
#[derive(Debug, Clone)]
pub struct Finding {
    code: String,
    name: String,
    severity: String,
    subject: String,
    message: String,
    /// The fields of the code, in their order.
    fields: Vec<(String, Value)>,
    /// The reason for accepting the finding, if the configuration accepts it.
    accepted: Option<String>,
    /// A value of a type in `found`, unless the finding was read.
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

    /// The code; `None` if it is of a later version of rockpack.
    pub fn code(&self) -> Option<Code> {
        Code::of_id(&self.code)
    }

    /// What was found; `None` if it is something else, or if the finding was read from a receipt.
    pub fn found<T: Any>(&self) -> Option<&T> {
        self.found.as_ref()?.downcast_ref()
    }

    /// The thing that it is about: a path, an arch, a package.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The observation and its consequence, as one sentence without a full stop.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The field of this name; `None` if the finding has none of this form. A finding in a receipt may lack
    /// what others of its code have, and then excuses nothing.
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

    /// The subject and everything else that the finding names: text fields (`library`), the path of each
    /// file, and the last part of each path. Lists are left out, because a pattern for one of several things
    /// is not meant for the finding.
    pub fn named_things(&self) -> Vec<&str> {
        let fields = self.fields.iter();
        let named = fields.filter_map(|(_, it)| it.get("path").unwrap_or(it).as_str());
        let mut things: Vec<&str> = [self.subject()].into_iter().chain(named).collect();
        let names: Vec<&str> =
            things.iter().filter_map(|thing| Some(thing.rsplit_once('/')?.1)).collect();
        things.extend(names);
        things
    }

    /// The finding as a remark beside a result.
    pub fn remark(&self) -> Remark {
        Remark { json: json!(self).to_string(), text: self.to_string() }
    }

    /// The finding without its severity, with the key that settles it unless the text already names the key.
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

    /// What two different findings differ in, apart from their acceptance.
    fn content(&self) -> (&str, &str, &str, &[(String, Value)]) {
        (&self.code, &self.subject, &self.message, &self.fields)
    }

    /// The place in a list of findings. Of equal ones those that are accepted come first.
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

/// The fields of a finding's JSON that make up its text.
const TEXT_FIELDS: [&str; 5] = ["code", "name", "severity", "subject", "message"];

impl<'de> Deserialize<'de> for Finding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Ordered(mut fields) = Ordered::<Value>::deserialize(deserializer)?;
        let mut take = |name| {
            let at = fields.iter().position(|(own, _)| own == name)?;
            let text = fields.remove(at).1.as_str().map(str::to_owned);
            Some(text.ok_or_else(|| D::Error::custom(format!("`{name}` of a finding is no text"))))
        };
        let accepted = take("accepted").transpose()?;
        let text = |name| take(name).unwrap_or_else(|| Err(D::Error::missing_field(name)));
        let [code, name, severity, subject, message] = TEXT_FIELDS.map(text);
        let (code, name, severity) = (code?, name?, severity?);
        let (subject, message) = (subject?, message?);
        Ok(Self { code, name, severity, subject, message, fields, accepted, found: None })
    }
}

/// A finding in one line for people, with its severity and its key, or with the reason for accepting it.
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
    /// The findings of all `parts` together.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a Findings>) -> Self {
        Self(parts.into_iter().flat_map(|part| part.0.clone()).collect())
    }

    /// Adds what was found.
    pub fn add(&mut self, found: impl Into<Finding>) {
        self.0.push(found.into());
    }

    /// Adds all findings of `other`.
    pub fn extend(&mut self, other: impl IntoIterator<Item = Finding>) {
        self.0.extend(other);
    }

    /// Keeps only the findings that `keep` selects.
    pub fn retain(&mut self, keep: impl FnMut(&Finding) -> bool) {
        self.0.retain(keep);
    }

    /// Accepts the findings that `fits` selects, and returns their number. Earlier reasons stay.
    pub fn accept(&mut self, fits: impl Fn(&Finding) -> bool, reason: &str) -> usize {
        let fitting = self.0.iter_mut().filter(|finding| fits(finding));
        fitting.map(|it| it.accepted.get_or_insert_with(|| reason.to_owned())).count()
    }

    /// Sorts the findings and drops duplicates.
    pub fn sort(&mut self) {
        self.0.sort_by_cached_key(Finding::place);
        self.0.dedup_by(|one, other| one.content() == other.content());
    }

    /// Findings that are probably mistakes and not accepted.
    pub fn warnings(&self) -> Self {
        self.filtered(Finding::is_warning)
    }

    /// Findings that are notes only, and accepted findings.
    pub fn notes(&self) -> Self {
        self.filtered(|finding| !finding.is_warning())
    }

    fn filtered(&self, keep: impl Fn(&Finding) -> bool) -> Self {
        Self(self.iter().filter(|finding| keep(finding)).cloned().collect())
    }

    /// Attaches these findings to the error of `result`, because they may explain it.
    pub fn explain<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|error| error.explained(self.iter().map(Finding::remark)))
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
        let all = self.iter().filter(|it| it.is_warning() && it.code().is_some_and(&refused));
        let faults = all.map(|it| Error::new(Kind::Conflict, it.with_key())).collect();
        Error::gather(faults).map_or(Ok(()), |error| Err(error.hint(hint)))
    }
}

#[cfg(test)]
mod tests;
