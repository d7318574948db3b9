//! Findings as a receipt records them.

use derive_more::Display;
use rockpack_core::content::Sha256Digest;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use rockpack_report::{Code, Finding, Findings, Severity, line};

/// One finding. Its text begins with the severity, or with the acceptance and its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Display)]
#[serde(untagged)]
pub enum FindingRecord {
    /// A finding with the fields of its code.
    #[display("{}", line(_0, None))]
    Known(Finding),
    /// A finding with the fields of its code that the configuration accepts.
    #[display("{}", line(finding, Some(accepted.as_str())))]
    Accepted {
        /// The finding.
        #[serde(flatten)]
        finding: Finding,
        /// The reason for accepting it.
        accepted: String,
    },
    /// A finding of a later version of rockpack, whose own fields cannot be read.
    Unread(UnreadFinding),
}

/// A finding whose code this version of rockpack does not know. `verify` never excuses anything by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Display)]
#[display("{severity}: {code} {name}: {subject}: {message}")]
pub struct UnreadFinding {
    /// Stable code, e.g. `R012`.
    pub code: String,
    /// Stable name, e.g. `arch-not-grouped`.
    pub name: String,
    /// `note` or `warning`.
    pub severity: String,
    /// The thing that the finding is about.
    pub subject: String,
    /// The text of the finding.
    pub message: String,
    /// The code objects that the finding names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub code_objects: Vec<Sha256Digest>,
    /// The reason for accepting the finding, if the configuration accepts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<String>,
}

impl FindingRecord {
    /// The records of `findings`, in their order.
    pub fn of(findings: &Findings) -> Vec<Self> {
        findings
            .iter()
            .map(|finding| Self::new(finding.clone(), findings.acceptance(finding)))
            .collect()
    }

    /// The record of a finding; `accepted` is the reason for accepting it.
    pub fn new(finding: Finding, accepted: Option<&str>) -> Self {
        match accepted.map(str::to_owned) {
            Some(accepted) => Self::Accepted { finding, accepted },
            None => Self::Known(finding),
        }
    }

    fn readable(&self) -> Result<&Finding, &UnreadFinding> {
        match self {
            Self::Known(finding) | Self::Accepted { finding, .. } => Ok(finding),
            Self::Unread(unread) => Err(unread),
        }
    }

    /// The finding; `None` if its code comes from a later version of rockpack.
    pub fn known(&self) -> Option<&Finding> {
        self.readable().ok()
    }

    /// The reason for accepting the finding, if the configuration accepts it.
    pub fn accepted(&self) -> Option<&str> {
        match self {
            Self::Known(_) => None,
            Self::Accepted { accepted, .. } => Some(accepted),
            Self::Unread(finding) => finding.accepted.as_deref(),
        }
    }

    /// The stable code of the finding, e.g. `R012`.
    pub fn code(&self) -> &str {
        self.readable().map_or_else(|unread| unread.code.as_str(), |finding| finding.code().id())
    }

    /// Whether the finding is a warning that the configuration does not accept.
    pub fn is_warning(&self) -> bool {
        match self {
            Self::Known(finding) => finding.code().severity() == Severity::Warning,
            Self::Accepted { .. } => false,
            Self::Unread(finding) => finding.severity == "warning" && finding.accepted.is_none(),
        }
    }

    /// The thing that the finding is about.
    pub fn subject(&self) -> String {
        self.readable().map_or_else(|unread| unread.subject.clone(), Finding::subject)
    }

    /// The code objects that the finding accounts for.
    pub fn code_objects(&self) -> &[Sha256Digest] {
        self.readable().map_or_else(|unread| unread.code_objects.as_slice(), Finding::code_objects)
    }
}

impl<'de> Deserialize<'de> for FindingRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let record = Box::<RawValue>::deserialize(deserializer)?;
        read(record.get()).map_err(D::Error::custom)
    }
}

fn read(record: &str) -> serde_json::Result<FindingRecord> {
    let text: UnreadFinding = serde_json::from_str(record)?;
    if Code::of_id(&text.code).is_none() {
        return Ok(FindingRecord::Unread(text));
    }
    let finding = Finding::from_json(record)?;
    Ok(FindingRecord::new(finding, text.accepted.as_deref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_read_and_written_again() {
        for code in [r#""code":"R013""#, r#""code":"R999""#] {
            let text =
                r#""name":"arch-missing","severity":"warning","subject":"gfx906","message":"#;
            let message = r#""no shard has device code for it (group g)""#;
            let (own, code_of) = match code {
                r#""code":"R013""# => (r#","arch":"gfx906","group":"g""#, "R013"),
                _ => ("", "R999"),
            };
            let record = format!(r#"{{{code},{text}{message}{own},"accepted":"why"}}"#);
            let read = read(&record).unwrap();
            assert_eq!((read.code(), read.accepted()), (code_of, Some("why")));
            assert_eq!(serde_json::to_string(&read).unwrap(), record);
        }
    }

    const TEXT: &str = r#""name":"n","severity":"note","subject":"s","message":"m""#;

    #[test]
    fn codes_of_later_versions_are_texts() {
        let later = format!(r#"{{"code":"R999",{TEXT},"colour":"red"}}"#);
        let FindingRecord::Unread(text) = read(&later).unwrap() else { panic!("{later}") };
        assert_eq!((&*text.code, &*text.message), ("R999", "m"));
    }

    #[test]
    fn known_codes_have_all_their_fields() {
        let fields = r#""arch":"gfx906","group":"g""#;
        let Ok(FindingRecord::Known(finding)) = read_r013(fields) else {
            panic!("is not known");
        };
        assert_eq!(finding.message(), "no shard has device code for it (group g)");
        for bad in [
            r#""code_objects":[]"#,
            r#""arch":"gfx906""#,
            r#""arch":"nonsense","group":"g""#,
            r#""arch":"gfx906","arch":"gfx908","group":"g""#,
        ] {
            assert!(read_r013(bad).is_err(), "{bad}");
        }
    }

    fn read_r013(fields: &str) -> serde_json::Result<FindingRecord> {
        read(&format!(r#"{{"code":"R013",{TEXT},{fields}}}"#))
    }
}
