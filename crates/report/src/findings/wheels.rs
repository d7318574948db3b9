//! Texts of findings about wheels.

use derive_more::Display;
use serde::{Deserialize, Serialize};

use crate::Soname;
use crate::words::{are, counted, few, list};

/// The reason why PyPI would refuse a wheel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub enum PypiRefusal {
    /// A version with a local part.
    #[display("the version {version} has a local part")]
    LocalVersion {
        /// The version.
        version: String,
    },
    /// A platform tag that names no system.
    #[display("the platform {platform} says nothing of the systems that it runs on")]
    Platform {
        /// The tag.
        platform: String,
    },
    /// A file that is too large.
    #[display(
        "{size} bytes are more than the {limit} that a project may upload unless PyPI allows more"
    )]
    Size {
        /// Size of the file in bytes.
        size: u64,
        /// Largest size of a file in bytes.
        limit: u64,
    },
}

/// The reason why an extra for a GPU does not bring all that the GPU needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExtraGap {
    /// The extra, or a device wheel, requires a wheel that is not there, or not for its tags.
    Absent,
    /// The extra does not bring the device code of a wheel that its own wheel requires.
    NotBrought,
    /// The wheel requires the extra of another wheel that does not offer it.
    NotOffered,
    /// The extra brings a device wheel that the device wheel of its group does not require.
    NotByName,
}

impl ExtraGap {
    /// The text about the gap of `extra` at the required wheel.
    pub fn describe(self, extra: &str, required: &str) -> String {
        match self {
            Self::Absent if extra.is_empty() => format!(
                "requires {required}, which the index does not have, or not for its tags, so that nobody can \
                 install it: publish that wheel, too"
            ),
            Self::Absent => format!(
                "its extra {extra} requires {required}, which the index does not have, or not for its tags, so \
                 nobody can install it with this extra: publish that wheel, too"
            ),
            Self::NotBrought => format!(
                "requires {required}, but its extra {extra} does not bring {required}[{extra}], so that kernels \
                 of {required} are missing: split the two in one run, or with `--split-elsewhere`"
            ),
            Self::NotOffered => format!(
                "requires {required}[{extra}], but {required} has no such extra, and pip only warns of that: \
                 split the two in one run"
            ),
            Self::NotByName => format!(
                "does not require {required}, which the extra {extra} of its host brings, so that it is not \
                 complete if it is installed by its name: install it by the extra, or split its host again"
            ),
        }
    }
}

/// The text about a RECORD that lists too little, or too much.
pub(super) fn record_lacks(unlisted: &[String], absent: &[String], unhashed: usize) -> String {
    let mut parts = Vec::new();
    if !unlisted.is_empty() {
        let (count, names) = (counted(unlisted.len(), "member"), few(unlisted, 5));
        parts.push(format!("{count} {} not in its RECORD: {names}", are(unlisted.len())));
    }
    if !absent.is_empty() {
        let (count, names) = (counted(absent.len(), "path"), few(absent, 5));
        parts.push(format!("{count} of its RECORD {} not in it: {names}", are(absent.len())));
    }
    if unhashed > 0 {
        let has = if unhashed == 1 { "has" } else { "have" };
        parts.push(format!("{} {has} no digest in its RECORD", counted(unhashed, "member")));
    }
    parts.join("; ")
}

/// The text about tags of WHEEL that differ from the file name.
pub(super) fn tags_differ(tags: &[String], build: Option<&str>) -> String {
    let tags = if tags.is_empty() { "no tags".to_owned() } else { few(tags, 5) };
    let build = build.map_or(String::new(), |build| format!(" and the build number {build}"));
    format!("its WHEEL has {tags}{build}; the file name decides")
}

/// The text about a runtime outside of the wheel.
pub(super) fn runtime_outside(libraries: &[Soname]) -> String {
    let named =
        if libraries.is_empty() { String::new() } else { format!(" ({})", list(libraries)) };
    format!(
        "the HIP runtime{named} is not in it, and has to read kernel archives where it is installed"
    )
}
