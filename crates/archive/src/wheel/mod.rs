//! Python wheels: their file names, and the files of their `dist-info` folder.
//!
//! | file in `{distribution}-{version}.dist-info/` | form | module |
//! |---|---|---|
//! | METADATA | header fields, a blank line, a description | `headers`, [`Metadata`] |
//! | WHEEL | header fields | `headers`, [`WheelFile`] |
//! | RECORD | CSV: path, `sha256=` and a digest in url-safe base64 without padding, size | `record` |
//!
//! [`WheelArchive`] reads them from a file, and judges its members.
//!
//! Source: the binary distribution format, the core metadata and the recording of installed projects as
//! the Python Packaging User Guide specifies them (PEP 376, 427, 440, 503, 566, 639, 685).

mod archive;
mod headers;
mod name;
mod record;
mod requirement;

use derive_more::Display;
use serde::{Deserialize, Serialize};

pub use archive::{Place, WheelArchive, installed_mode, place};
pub use headers::{Metadata, WheelFile};
pub use name::{Tag, Version, WheelIdentity, WheelName, escaped, normalized};
pub use record::{Record, RecordHasher, RecordRow};
pub use requirement::{Condition, Requirement, VersionSpecifiers};

/// How RECORD and the members of a wheel differ.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum ListingFault {
    #[display(
        "is not in RECORD: installers refuse the wheel, or leave the file behind when it is \
         uninstalled"
    )]
    Unlisted,
    #[display("is in RECORD, and not in the wheel")]
    WithoutMember,
    /// Where a wheel is installed, nothing is at the path of a row.
    #[display("is in RECORD, and not there: install the wheel again")]
    NotInstalled,
    /// Where wheels are installed, no row names a kernel archive or a split binary.
    #[display("is in no RECORD: no wheel that is installed brought it")]
    InNoRecord,
    #[display("has another {hash} than RECORD says")]
    Digest { hash: String },
    #[display("has {size} bytes, and RECORD says {stated}")]
    Size { size: u64, stated: u64 },
    #[display("has no digest in RECORD, and rockpack states that of each file")]
    WithoutDigest,
    #[display("has no row of itself, and installers leave it behind")]
    WithoutItself,
    #[display("has a digest or size of itself, which no writer can know")]
    OfItself,
    #[display("signs the RECORD of the wheel that was split, which is another one")]
    Signature,
    /// Another digest or size of METADATA, WHEEL or RECORD itself, which tools edit. Clients do not compare it.
    #[display("{_0}")]
    Stale(Box<ListingFault>),
}

impl ListingFault {
    /// Whether it is a fault only of a wheel that was split.
    pub fn is_of_split(&self) -> bool {
        matches!(self, Self::WithoutDigest | Self::Signature | Self::Stale(_))
    }
}

/// A difference between the texts of a wheel and its file name, or a text that installers cannot read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum InfoFault {
    #[display("has its metadata in {folder}, which is not that of its file name")]
    Folder { folder: String },
    #[display("its file name has the {field} {named}, and its {file} says {stated}")]
    Name { field: &'static str, file: &'static str, named: String, stated: String },
    #[display("has a line Requires-Dist that pip refuses with the whole wheel: {reason}")]
    Requirement { reason: String },
    #[display(
        "its {file} has the version {version}, which PEP 440 does not know: installers refuse it"
    )]
    NoVersion { file: &'static str, version: String },
}
