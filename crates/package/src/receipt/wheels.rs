//! The receipt `wheels.json`: the wheels that were made of each input wheel, and where its code objects went.

use rockpack_core::error::{Error, Result};
use rockpack_report::Findings;
use serde::{Deserialize, Serialize};

use super::CodeObjectRecord;

/// File name of the receipt inside the output folder.
pub const FILE_NAME: &str = "wheels.json";

/// Version of the receipt's schema. Other versions are refused.
pub const SCHEMA: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WheelReceipt {
    pub schema: u32,
    pub rockpack_version: String,
    /// Time of the members, in seconds since 1970, within the precision and range of ZIP.
    pub content_date: i64,
    /// The wheels, sorted by the input wheel; the host wheel comes first.
    pub wheels: Vec<WheelRecord>,
    /// Requirements of the configuration that every host wheel has besides those of its input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_requires: Vec<String>,
    /// Requirements of the configuration for device wheels, with `{group}` for the group of the wheel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_requires: Vec<String>,
    /// Every code object of the input that a device wheel holds.
    pub code_objects: Vec<CodeObjectRecord>,
    /// Every finding. Findings that the configuration accepts have the reason in `accepted`.
    pub findings: Findings,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WheelKind {
    /// A wheel with everything but device code.
    Host,
    /// A wheel with device code.
    Device,
    /// A wheel of the input that is copied unchanged.
    #[default]
    Copy,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WheelRecord {
    /// File name inside the output folder.
    pub file_name: String,
    pub made_of: String,
    /// File names of further input wheels whose device code a device wheel has, which are for other Pythons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_made_of: Vec<String>,
    pub role: WheelKind,
    /// The name of the distribution, as in METADATA.
    pub distribution: String,
    pub version: String,
    /// The names of the groups that use a device wheel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The base archs in a device wheel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub archs: Vec<String>,
    /// Size of the file in bytes.
    pub size: u64,
    /// Size of all members in bytes.
    pub installed_size: u64,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
}

impl WheelReceipt {
    /// Parses a receipt. Refuses other schemas.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let receipt: Self = serde_json::from_slice(bytes).map_err(|error| {
            Error::malformed("is not a receipt of wheels").structure(FILE_NAME).cause(error)
        })?;
        if receipt.schema != SCHEMA {
            let message = format!("has the schema {}, and {SCHEMA} is known", receipt.schema);
            let error = Error::unsupported(message).structure(FILE_NAME);
            return Err(error.hint("use the version of rockpack that made the wheels"));
        }
        Ok(receipt)
    }
}
