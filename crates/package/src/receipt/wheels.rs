//! The receipt `wheels.json`: the wheels that were made of each input wheel, and where its code objects went.

use rockpack_core::error::{Error, Result};
use rockpack_report::Findings;
use serde::{Deserialize, Serialize};

use super::CodeObjectRecord;

/// File name of the receipt inside the output folder.
pub const FILE_NAME: &str = "wheels.json";

/// Version of the receipt's schema; raised when a field changes its meaning. Receipts of schema 1, whose
/// fields have other names, are read, too.
pub const SCHEMA: u32 = 2;

/// A finished set of wheels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WheelReceipt {
    /// The version of the schema: [`SCHEMA`].
    pub schema: u32,
    /// Version of rockpack that wrote the set.
    #[serde(alias = "generator")]
    pub rockpack_version: String,
    /// Time of the members, in seconds since 1970, within the precision and range of ZIP.
    #[serde(alias = "time")]
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

/// The purpose of a wheel.
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

/// One wheel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WheelRecord {
    /// File name inside the output folder.
    pub file_name: String,
    /// File name of the input wheel.
    pub made_of: String,
    /// File names of further input wheels whose device code a device wheel has, which are for other Pythons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_made_of: Vec<String>,
    /// The purpose of the wheel.
    pub role: WheelKind,
    /// The name of the distribution, as in METADATA.
    pub distribution: String,
    /// The version of the distribution.
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
    /// Parses a receipt, which has the current schema then. Fails on an unknown schema.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let read: Self = serde_json::from_slice(bytes).map_err(|error| {
            Error::malformed("is no receipt of wheels").structure(FILE_NAME).cause(error)
        })?;
        if !(1..=SCHEMA).contains(&read.schema) {
            let message = format!("has the schema {}, and {SCHEMA} is known", read.schema);
            let error = Error::unsupported(message).structure(FILE_NAME);
            return Err(error.hint("use the version of rockpack that made the wheels"));
        }
        Ok(Self { schema: SCHEMA, ..read })
    }
}
