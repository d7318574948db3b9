//! A wheel in an index: the facts in its file name and METADATA.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::wheel::{Metadata, Version, WheelArchive, WheelName, normalized};
use rockpack_core::content::{Content, hex};
use rockpack_core::error::Result;

/// A wheel in an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WheelPackage {
    /// The file name.
    pub file: String,
    /// The normalized project name.
    pub project: String,
    /// The version, as in METADATA.
    pub version: String,
    /// The rest of the file name: an optional build number, and the tags.
    pub tags: String,
    /// Field `Requires-Python`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_python: Option<String>,
    /// The fields `Requires-Dist`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
    /// The file `METADATA`.
    pub metadata: MetadataFile,
}

/// The file `METADATA` of a wheel, which an index offers beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetadataFile {
    /// Size in bytes.
    pub size: u64,
    /// SHA-256 in hex.
    pub sha256: String,
}

impl WheelPackage {
    /// Reads the wheel `file`. Refused are wheels that installers refuse or misread.
    pub fn read(content: &Content, file: &str) -> Result<Self> {
        let name: WheelName = file.parse()?;
        let wheel = WheelArchive::open(content.clone())?;
        wheel.check(&name)?;
        Ok(Self::of(file, &wheel.metadata))
    }

    /// The wheel `file` with this METADATA, which fits its name.
    pub fn of(file: &str, metadata: &Metadata) -> Self {
        let requires = metadata.all("Requires-Dist").map(|line| line.trim().to_owned());
        Self {
            tags: tags(file),
            file: file.to_owned(),
            project: normalized(metadata.name()),
            version: metadata.version().to_owned(),
            requires_python: metadata.get("Requires-Python").map(|it| it.trim().to_owned()),
            requires: requires.collect(),
            metadata: MetadataFile {
                size: metadata.text().len() as u64,
                sha256: hex(&Sha256::digest(metadata.text())),
            },
        }
    }
}

/// Compares two versions as pip and uv do (PEP 440). Invalid versions come first.
pub fn compare_versions(one: &str, other: &str) -> Ordering {
    let [one, other] = [one, other].map(|version| version.parse::<Version>().ok());
    one.cmp(&other)
}

/// Reads METADATA of a wheel.
pub fn metadata_of(wheel: &Content) -> Result<Vec<u8>> {
    Ok(WheelArchive::open(wheel.clone())?.metadata.text().into())
}

/// The part of a file name behind name and version.
fn tags(file: &str) -> String {
    let stem = file.strip_suffix(".whl").unwrap_or(file);
    stem.splitn(3, '-').nth(2).unwrap_or_default().to_owned()
}
