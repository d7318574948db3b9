//! What is wrong with packages by themselves, their receipts and documents, and the words for it.

use std::fmt;

use serde::Serialize;

use crate::report::words::few;

/// A path of a package, an artifact or an installed prefix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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

impl fmt::Display for PackagePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.package, self.path)
    }
}

/// Where something is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemPlace {
    /// In the package of this file name.
    Package(String),
    /// At a path of a package, artifact or prefix.
    File(PackagePath),
    /// At this path on the disk.
    Disk(String),
}

impl fmt::Display for ProblemPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Package(name) | Self::Disk(name) => f.write_str(name),
            Self::File(file) => file.fmt(f),
        }
    }
}

/// Why something cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum ReadFault {
    /// Reading it failed.
    Failed { reason: String },
    /// No package can have its name.
    NameNotUtf8,
    /// It is a link that leads to what no package can name.
    TargetNotUtf8,
}

impl fmt::Display for ReadFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Failed { reason } => reason,
            Self::NameNotUtf8 => "its name is no UTF-8",
            Self::TargetNotUtf8 => "its target is no UTF-8",
        })
    }
}

/// In what a package and the receipt differ.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum ReceiptDifference {
    /// The file is another.
    Bytes { size: u64, sha256: String, stated_size: u64, stated_sha256: String },
    /// It says that it is for other archs.
    Archs { archs: Vec<String>, stated: Vec<String> },
    /// It holds more code objects, or fewer.
    CodeObjects { count: u64, stated: u64 },
    /// A path is missing or is something else.
    Member,
    /// The receipt does not have the path.
    Unlisted,
    /// The receipt says that the path is in no package.
    LeftOut,
}

impl fmt::Display for ReceiptDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bytes { .. } => "its size or SHA-256 is not the receipt's",
            Self::Archs { archs, stated } => {
                return write!(
                    f,
                    "is for {}, and the receipt says {}",
                    few(archs, 5),
                    few(stated, 5)
                );
            }
            Self::CodeObjects { count, stated } => {
                return write!(f, "has {count} code objects, and the receipt says {stated}");
            }
            Self::Member => "is not what the receipt says, or is missing",
            Self::Unlisted => "is not in the receipt",
            Self::LeftOut => "the receipt says that it is left out",
        })
    }
}

/// Which of a package and its record in the receipt is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiptLack {
    /// The package.
    Package,
    /// The record.
    Record,
}

impl fmt::Display for ReceiptLack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Package => "the receipt names it, and it is not there",
            Self::Record => "the receipt does not name it",
        })
    }
}

/// What is wrong with the digest that a package states of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DigestFault {
    /// The sum of `md5sums` is another.
    Md5,
    /// The digest of the rpm header is another.
    Sha256,
    /// There is none.
    Unstated,
    /// There is one, and no file.
    WithoutFile,
}

impl fmt::Display for DigestFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Md5 => "its MD5 is not the one of md5sums",
            Self::Sha256 => "its SHA-256 is not the one of the header",
            Self::Unstated => "the package states no digest of it",
            Self::WithoutFile => "md5sums lists it, but it is not there",
        })
    }
}

/// What is wrong with an SPDX document, or with what all of them say.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum DocumentFault {
    /// The document cannot be read.
    Unreadable { reason: String },
    /// Two elements have one id.
    IdTwice { id: String },
    /// A package contains an element that is not there.
    ElementAbsent { id: String },
    /// A package is described twice.
    PackageTwice { package: String },
    /// A package has another digest.
    OtherDigest { package: String, sha256: String },
    /// No digest of a package is stated, or several.
    NoDigest { package: String },
    /// A file of a package is not described as it is.
    OtherFile { package: String, path: String },
    /// The package is described, and not there.
    PackageAbsent,
    /// The package is there, and not described.
    NotDescribed,
}

impl fmt::Display for DocumentFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { reason } => write!(f, "is no SPDX document: {reason}"),
            Self::IdTwice { id } => write!(f, "has two elements {}", id.escape_debug()),
            Self::ElementAbsent { id } => {
                write!(f, "does not have {}, which a package contains", id.escape_debug())
            }
            Self::PackageTwice { package } => write!(f, "{package} is described twice"),
            Self::OtherDigest { package, sha256 } => {
                write!(f, "{package} has the SHA-256 {sha256}, and is described with another")
            }
            Self::NoDigest { package } => {
                write!(f, "{package} is described without a SHA-256, or with several")
            }
            Self::OtherFile { package, path } => {
                write!(f, "{package} does not hold {} as described", path.escape_debug())
            }
            Self::PackageAbsent => {
                f.write_str("an SPDX document describes it, and it is not there")
            }
            Self::NotDescribed => f.write_str("no SPDX document describes it"),
        }
    }
}
