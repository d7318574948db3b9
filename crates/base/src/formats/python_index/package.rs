//! A wheel in an index: the facts in its file name and METADATA.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::content::{Content, hex};
use crate::error::{Error, Kind, Result};
use crate::formats::wheel::{Metadata, Version, WheelName, normalized};
use crate::formats::zip::ZipReader;

/// Longest METADATA in bytes. Real ones, with long descriptions, have less than 1 MB.
const METADATA_MAX: u64 = 16 << 20;

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
    /// Reads the wheel `file`. Refused: a name that is not a wheel's, and METADATA of another project or
    /// version, because clients refuse to install such a wheel.
    pub fn read(content: &Content, file: &str) -> Result<Self> {
        let name: WheelName = file.parse()?;
        let bytes = metadata_of(content)?;
        let metadata = Metadata::parse(&bytes)?;
        let project = normalized(&name.distribution);
        if normalized(metadata.name()) != project {
            return Err(contradiction("name", &name.distribution, metadata.name()));
        }
        let version = metadata.version();
        if name.parsed_version() != Some(parsed(version)?) {
            return Err(contradiction("version", &name.version, version));
        }
        let requires = metadata.all("Requires-Dist").map(|line| line.trim().to_owned());
        Ok(Self {
            tags: tags(file),
            file: file.to_owned(),
            project,
            version: version.to_owned(),
            requires_python: metadata.get("Requires-Python").map(|it| it.trim().to_owned()),
            requires: requires.collect(),
            metadata: MetadataFile {
                size: bytes.len() as u64,
                sha256: hex(&Sha256::digest(&bytes)),
            },
        })
    }
}

/// Compares two versions as pip and uv do (PEP 440). Invalid versions come first.
pub fn compare_versions(one: &str, other: &str) -> Ordering {
    let [one, other] = [one, other].map(|version| version.parse::<Version>().ok());
    one.cmp(&other)
}

/// Reads METADATA of a wheel.
pub fn metadata_of(wheel: &Content) -> Result<Vec<u8>> {
    let zip = ZipReader::open(wheel.clone())?;
    let mut found = zip.members().iter().filter(|member| {
        let parts = member.name.split_once('/');
        parts.is_some_and(|(folder, name)| folder.ends_with(".dist-info") && name == "METADATA")
    });
    match (found.next(), found.next()) {
        (Some(member), None) => zip.read(member, METADATA_MAX, "METADATA"),
        (None, _) => {
            Err(Error::malformed("has no METADATA in a folder *.dist-info").hint(BUILD_HINT))
        }
        (Some(one), Some(other)) => {
            let message = format!("has both {} and {}", one.name, other.name);
            Err(Error::malformed(message).hint(BUILD_HINT))
        }
    }
}

const BUILD_HINT: &str = "clients do not install such a wheel: build it again, or leave it out";

/// The part of a file name behind name and version.
fn tags(file: &str) -> String {
    let stem = file.strip_suffix(".whl").unwrap_or(file);
    stem.splitn(3, '-').nth(2).unwrap_or_default().to_owned()
}

fn parsed(version: &str) -> Result<Version> {
    version.parse().map_err(|error| {
        let message = format!("METADATA has `{}` for a version", version.escape_debug());
        Error::malformed(message).cause(error).hint(
            "pip and uv take only versions as PEP 440 describes them: build the wheel with such a one",
        )
    })
}

fn contradiction(what: &str, in_name: &str, in_metadata: &str) -> Error {
    let message = format!(
        "METADATA has the {what} `{}`, and the file name has `{}`",
        in_metadata.escape_debug(),
        in_name.escape_debug()
    );
    Error::new(Kind::Malformed, message)
        .hint("clients refuse such a wheel: give the file the name that its build gave it")
}
