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
    /// No row names the member.
    #[display(
        "is not in RECORD: installers refuse the wheel, or leave the file behind when it is \
         uninstalled"
    )]
    Unlisted,
    /// No member has the path of a row.
    #[display("is in RECORD, and not in the wheel")]
    WithoutMember,
    /// Where a wheel is installed, nothing is at the path of a row.
    #[display("is in RECORD, and not there: install the wheel again")]
    NotInstalled,
    /// Where wheels are installed, no row names a kernel archive or a split binary.
    #[display("is in no RECORD: no wheel that is installed brought it")]
    InNoRecord,
    /// The digest is that of other bytes.
    #[display("has another {hash} than RECORD says")]
    Digest {
        /// The hash function.
        hash: String,
    },
    /// The size is another.
    #[display("has {size} bytes, and RECORD says {stated}")]
    Size {
        /// Bytes of the member.
        size: u64,
        /// Bytes by RECORD.
        stated: u64,
    },
    /// A row has no digest.
    #[display("has no digest in RECORD, and rockpack states that of each file")]
    WithoutDigest,
    /// RECORD does not name itself.
    #[display("has no row of itself, and installers leave it behind")]
    WithoutItself,
    /// RECORD has a digest or size of itself.
    #[display("has a digest or size of itself, which no writer can know")]
    OfItself,
    /// A signature of RECORD.
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
    /// The folder of its metadata belongs to another one.
    #[display("has its metadata in {folder}, which is not that of its file name")]
    Folder {
        /// The name of the folder.
        folder: String,
    },
    /// A field of METADATA or WHEEL differs from the file name.
    #[display("its file name has the {field} {named}, and its {file} says {stated}")]
    Name {
        /// The field.
        field: &'static str,
        /// The file with the field.
        file: &'static str,
        /// The value in the file name.
        named: String,
        /// The value in the file.
        stated: String,
    },
    /// A line of METADATA is no requirement.
    #[display("has a line Requires-Dist that pip refuses with the whole wheel: {reason}")]
    Requirement {
        /// The reason.
        reason: String,
    },
    /// A version that PEP 440 does not know.
    #[display(
        "its {file} has the version {version}, which PEP 440 does not know: installers refuse it"
    )]
    NoVersion {
        /// The file with the version.
        file: &'static str,
        /// The version.
        version: String,
    },
}
