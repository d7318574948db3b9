//! Findings as a receipt has them.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::report::{Code, Finding};

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum FindingRecord {
    /// A finding with the fields of its code.
    Known(Finding),
    /// A finding of a later version of rockpack, whose own fields cannot be read.
    Unread(UnreadFinding),
}

/// A finding whose code this version of rockpack does not know. `verify` excuses nothing by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadFinding {
    /// Stable code, e.g. `R012`.
    pub code: String,
    /// Stable name, e.g. `arch-not-grouped`.
    pub name: String,
    /// `note` or `warning`.
    pub severity: String,
    /// What it is about.
    pub subject: String,
    /// What was found.
    pub message: String,
    /// SHA-256 of the code objects that it names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub code_objects: Vec<String>,
}

impl FindingRecord {
    /// Its stable code, e.g. `R012`.
    pub fn code(&self) -> &str {
        match self {
            Self::Known(finding) => finding.code().id(),
            Self::Unread(finding) => &finding.code,
        }
    }

    /// What it is about.
    pub fn subject(&self) -> String {
        match self {
            Self::Known(finding) => finding.subject(),
            Self::Unread(finding) => finding.subject.clone(),
        }
    }

    /// SHA-256 of the code objects it accounts for, in hex.
    pub fn code_objects(&self) -> &[String] {
        match self {
            Self::Known(finding) => finding.code_objects(),
            Self::Unread(finding) => &finding.code_objects,
        }
    }
}

impl fmt::Display for FindingRecord {
    /// With its severity.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(finding) => write!(f, "{}: {finding}", finding.code().severity()),
            Self::Unread(UnreadFinding { code, name, severity, subject, message, .. }) => {
                write!(f, "{severity}: {code} {name}: {subject}: {message}")
            }
        }
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
    if Code::of_id(&text.code).is_some() {
        return serde_json::from_str(record).map(FindingRecord::Known);
    }
    Ok(FindingRecord::Unread(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#""name":"n","severity":"note","subject":"s","message":"m""#;

    #[test]
    fn codes_of_later_versions_are_texts() {
        let later = format!(r#"{{"code":"R999",{TEXT},"colour":"red"}}"#);
        let FindingRecord::Unread(text) = read(&later).unwrap() else { panic!("{later}") };
        assert_eq!((&*text.code, &*text.message), ("R999", "m"));
    }

    #[test]
    fn known_codes_have_all_their_fields() {
        let of = |fields: &str| read(&format!(r#"{{"code":"R013",{TEXT},{fields}}}"#));
        let Ok(FindingRecord::Known(finding)) = of(r#""arch":"gfx906","group":"g""#) else {
            panic!("is not known");
        };
        assert_eq!(finding.message(), "no shard has device code for it (group g)");
        for bad in [
            r#""code_objects":[]"#,
            r#""arch":"gfx906""#,
            r#""arch":"nonsense","group":"g""#,
            r#""arch":"gfx906","arch":"gfx908","group":"g""#,
        ] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}
