//! Faults of single packages, their receipts and documents, with their texts.

use derive_more::Display;
use rockpack_base::content::Sha256Digest;
use serde::Serialize;

use crate::report::words::few;

/// A path of a package, an artifact or an installed prefix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[display("{package}:{path}")]
pub struct PackagePath {
    /// The file name of the package, the shard and name of the artifact, or the folder.
    pub package: String,
    /// The path in it, from the root on.
    pub path: String,
}

impl PackagePath {
    /// The path in that package.
    pub fn new(package: impl Into<String>, path: impl Into<String>) -> Self {
        Self { package: package.into(), path: path.into() }
    }
}

/// The place of a problem.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemPlace {
    /// The package of this file name.
    Package(String),
    /// This path of a package, artifact or prefix.
    File(PackagePath),
    /// The file at this path on the disk.
    Disk(String),
}

/// The missing one of a package and its record in the receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiptLack {
    /// The package.
    #[display("the receipt names it, and it is not there")]
    Package,
    /// The record.
    #[display("the receipt does not name it")]
    Record,
}

/// What is missing of a receipt and its signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum SignatureLack {
    /// The receipt.
    #[display("is not there, so nothing is signed")]
    Receipt,
    /// Its detached signature.
    #[display("is not signed: no .asc file is next to it")]
    Signature,
}

/// Why a signature of a receipt does not count.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum SignerFault {
    /// None of the keys given signed; the ids of the keys that the signatures name.
    #[display("is signed by none of the keys given; its signatures name {}", key_ids(keys))]
    Unknown { keys: Vec<String> },
    /// The signature is of other bytes, does not count or cannot be read: the rest of a sentence about its file.
    #[display("its .asc {reason}")]
    Bad { reason: String },
}

fn key_ids(keys: &[String]) -> String {
    if keys.is_empty() { "no key".to_owned() } else { few(keys, 5) }
}

/// A fault of the digest that a package states for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum DigestFault {
    /// The sum of `md5sums` is another.
    #[display("its MD5 is not the one of md5sums")]
    Md5,
    /// The digest of the rpm header is another.
    #[display("its SHA-256 is not the one of the header")]
    Sha256,
    /// The digest is missing.
    #[display("the package states no digest of it")]
    Unstated,
    /// There is one, and no file.
    #[display("md5sums lists it, but it is not there")]
    WithoutFile,
}

/// A fault of an SPDX document, or of all of them together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum DocumentFault {
    /// The document cannot be read.
    #[display("is no SPDX document: {reason}")]
    Unreadable { reason: String },
    /// A package has another digest.
    #[display("{package} has the SHA-256 {sha256}, and is described with another")]
    OtherDigest { package: String, sha256: Sha256Digest },
    /// The package is described, and not there.
    #[display("an SPDX document describes it, and it is not there")]
    PackageAbsent,
    /// The package is there, and not described.
    #[display("no SPDX document describes it")]
    NotDescribed,
}
