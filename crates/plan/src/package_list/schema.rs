//! The serde types of `package.json`: key names and shapes, no meaning.
//!
//! Source: TheRock's build_tools/packaging/linux/package.json and the scripts next to it, which read it. They
//! read the words of [`TRUE`] in any case as true and everything else as false.

use std::collections::BTreeMap;

use serde::{Deserialize, de};
use serde_json::Value;

use crate::config::deserialize_by_visitor;

const TRUE: [&str; 9] = ["1", "true", "t", "yes", "y", "on", "enable", "enabled", "found"];

/// Words for false, like the empty text. TheRock's scripts read all other words as false; rockpack refuses them.
const FALSE: &str = "0 false f no n off disable disabled notfound none null nil undefined n/a";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct EntrySchema {
    pub package: String,
    pub version: Option<String>,
    pub _comments: Option<Value>,
    pub architecture: Option<String>,
    pub build_arch: Option<String>,
    #[serde(rename = "DEBDepends")]
    pub deb_depends: Option<Vec<String>>,
    #[serde(rename = "RPMRequires")]
    pub rpm_requires: Option<Vec<String>>,
    #[serde(rename = "DEBRecommends")]
    pub deb_recommends: Option<Vec<String>>,
    #[serde(rename = "RPMRecommends")]
    pub rpm_recommends: Option<Vec<String>>,
    #[serde(rename = "DEBSuggests")]
    pub deb_suggests: Option<Vec<String>>,
    #[serde(rename = "RPMSuggests")]
    pub rpm_suggests: Option<Vec<String>>,
    pub provides: Option<Vec<String>>,
    pub replaces: Option<Vec<String>>,
    pub conflicts: Option<Vec<String>>,
    pub obsoletes: Option<Vec<String>>,
    pub maintainer: Option<String>,
    #[serde(rename = "Description_Short")]
    pub description_short: Option<String>,
    #[serde(rename = "Description_Long")]
    pub description_long: Option<String>,
    pub section: Option<String>,
    pub priority: Option<String>,
    pub group: Option<String>,
    pub license: Option<String>,
    pub vendor: Option<String>,
    pub homepage: Option<String>,
    pub artifactory: Option<Vec<ArtifactSchema>>,
    #[serde(default)]
    pub gfxarch: Flag,
    #[serde(default)]
    pub metapackage: Flag,
    #[serde(alias = "Disablepackaging", default)]
    pub disable_packaging: Flag,
    #[serde(default)]
    pub postinstall: Flag,
    /// Artifact and kinds of an older schema, which disabled entries still have.
    pub artifact: Option<String>,
    #[serde(rename = "Components")]
    pub kinds: Option<Vec<String>>,
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ArtifactSchema {
    #[serde(rename = "Artifact")]
    pub artifact: String,
    /// Whether the scripts search the artifacts of targets; rockpack decides by the content.
    #[serde(rename = "Artifact_Gfxarch", default)]
    pub _gfxarch: Flag,
    #[serde(rename = "Artifact_Subdir", default)]
    pub subdirs: Vec<SubdirSchema>,
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct SubdirSchema {
    #[serde(rename = "Name")]
    pub name: String,
    #[serde(rename = "Components")]
    pub kinds: Vec<String>,
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

/// `true`, or one of the words for it; false if the key is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Flag(pub bool);

deserialize_by_visitor! { Flag, "`True` or `False`",
    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Flag, E> {
        Ok(Flag(value))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Flag, E> {
        let word = text.trim().to_lowercase();
        let is_false = word.is_empty() || FALSE.split(' ').any(|own| own == word);
        match (TRUE.contains(&word.as_str()), is_false) {
            (true, _) => Ok(Flag(true)),
            (_, true) => Ok(Flag(false)),
            _ => Err(E::custom(format!("`{text}` is neither `True` nor `False`"))),
        }
    }
}
