//! Places of problems, and what a receipt or a package lacks.

use derive_more::Display;
use serde::Serialize;

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

/// A fault of a set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[display("{reason}")]
pub struct SetFault {
    pub reason: String,
    /// Whether a package that is not there may have what is missing.
    pub may_be_elsewhere: bool,
}

impl SetFault {
    /// A fault whatever other packages have.
    pub fn wrong(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), may_be_elsewhere: false }
    }

    /// Something that no package has that is there.
    pub fn absent(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), may_be_elsewhere: true }
    }
}

/// The identity of a package for those who install it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[display("{package} {version} for {arch}")]
pub struct NamedVersion {
    /// The package name, not the file name.
    pub package: String,
    /// The version.
    pub version: String,
    /// The architecture, as the format calls it.
    pub arch: String,
}

impl NamedVersion {
    /// The identity of this version of `package`.
    pub fn new(package: &str, version: &str, arch: &str) -> Self {
        let [package, version, arch] = [package, version, arch].map(str::to_owned);
        Self { package, version, arch }
    }
}
