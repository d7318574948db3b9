//! The receipt of wheels: `wheels.json`, what was made of which wheel and where its code objects went.

use std::io::{self, Write};

use rockpack_base::error::{Error, Result};
use serde::{Deserialize, Serialize};

use super::{CodeObjectRecord, FindingRecord, MemberRecord};

/// File name of the receipt inside the output folder.
pub const FILE_NAME: &str = "wheels.json";

/// Version of its shape; raised when a field changes its meaning.
pub const SCHEMA: u32 = 1;

/// A finished set of wheels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WheelReceipt {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// Version of rockpack that wrote the set.
    pub generator: String,
    /// Seconds since 1970 that the members carry as their time, as far as ZIP can say it.
    pub time: i64,
    /// The wheels, by the wheel that they were made of; its host wheel first.
    pub wheels: Vec<WheelRecord>,
    /// Every code object of the input that is in a device wheel.
    pub code_objects: Vec<CodeObjectRecord>,
    /// Every finding; those that the configuration accepts with `accepted`, the reason.
    pub findings: Vec<FindingRecord>,
}

/// The purpose of a wheel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WheelKind {
    /// Everything but device code.
    Host,
    /// Device code.
    Device,
    /// A wheel of the input that is copied as it is.
    Copy,
}

/// One wheel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WheelRecord {
    /// File name inside the output folder.
    pub file_name: String,
    /// File name of the wheel that it was made of.
    pub made_of: String,
    /// The purpose of the wheel.
    pub role: WheelKind,
    /// The name of its distribution, as its METADATA has it.
    pub distribution: String,
    /// The version of its distribution.
    pub version: String,
    /// For device wheels: the names of the groups that read it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// For device wheels: the base archs inside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub archs: Vec<String>,
    /// Size of the file in bytes.
    pub size: u64,
    /// Bytes of its members.
    pub installed_size: u64,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
    /// The members in the order of the archive, RECORD apart; paths as in the archive.
    pub members: Vec<MemberRecord>,
}

impl WheelReceipt {
    /// Reads one.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let read: Self = serde_json::from_slice(bytes).map_err(|error| {
            Error::malformed("is no receipt of wheels").structure(FILE_NAME).cause(error)
        })?;
        if read.schema != SCHEMA {
            let message = format!("has the schema {}, and {SCHEMA} is known", read.schema);
            let error = Error::unsupported(message).structure(FILE_NAME);
            return Err(error.hint("use the version of rockpack that made the wheels"));
        }
        Ok(read)
    }

    /// Writes it as its file has it.
    pub fn write(&self, mut sink: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut sink, self)?;
        sink.write_all(b"\n")
    }
}
