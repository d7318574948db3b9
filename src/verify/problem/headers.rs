//! Faults of the headers of `.rpm` packages, with their texts.

use derive_more::Display;
use rockpack_base::formats::rpm::MissingDigest;
use serde::Serialize;

/// A property of the header of an `.rpm` for which rpm refuses it, or may leave code out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum HeaderFault {
    /// The package lacks a digest.
    #[display("states no SHA-256 of the {missing}, and rpm 6 refuses such packages")]
    NoDigest { missing: MissingDigest },
    /// The package is for another system.
    #[display("its header says that it is for the system `{os}`, and rpm of Linux refuses it")]
    System { os: String },
    /// The package is for another machine.
    #[display("its header says that it is for `{arch}`, and rpm of x86-64 refuses it")]
    Machine { arch: String },
    /// The payload is no archive that rpm reads.
    #[display("its header says that the payload is `{format}`, which rpm does not read")]
    PayloadFormat { format: String },
    /// The package needs a feature that no rpm has.
    #[display("needs {feature}, which no rpm has")]
    Feature { feature: String },
    /// A file that rpm may leave out.
    #[display("its header marks {path} as {how}, so that rpm may leave it out")]
    LeftOut { path: String, how: &'static str },
}
