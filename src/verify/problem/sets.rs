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

/// The way in which a package and the receipt differ.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiptDifference {
    /// The file is another.
    #[display("its size or SHA-256 is not the receipt's")]
    Bytes { size: u64, sha256: Sha256Digest, stated_size: u64, stated_sha256: String },
    /// The package states other archs.
    #[display("is for {}, and the receipt says {}", few(archs, 5), few(stated, 5))]
    Archs { archs: Vec<String>, stated: Vec<String> },
    /// The package has more or fewer code objects.
    #[display("has {count} code objects, and the receipt says {stated}")]
    CodeObjects { count: u64, stated: u64 },
    /// The package states a relation that the receipt does not have.
    #[display("states `{relation}`, which the receipt does not have")]
    Relation { relation: String },
    /// The receipt has a relation that it does not state.
    #[display("does not state `{relation}`, which the receipt has")]
    RelationLost { relation: String },
    /// A path is missing or is something else.
    #[display("is not what the receipt says, or is missing")]
    Member,
    /// The receipt does not have the path.
    #[display("is not in the receipt")]
    Unlisted,
    /// A field of its record, or of the whole set, is another.
    #[display("its {field} is `{own}`, and the receipt says `{stated}`")]
    Field { field: String, own: String, stated: String },
    /// The records of its two formats differ.
    #[display("the receipt says another {field} of it than of {other}, which is the same package")]
    OtherFormat { field: String, other: String },
    /// No artifact has what the receipt leaves out.
    #[display("the receipt says that it is left out, and no artifact has it")]
    NothingLeftOut,
    /// The receipt says that the path is in no package.
    #[display("the receipt says that it is left out")]
    LeftOut,
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
