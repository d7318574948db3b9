//! Faults of the relations between packages, with their texts.

use derive_more::Display;
use serde::Serialize;

use super::sets::PackagePath;
use crate::report::words::few;

/// A dependency that a package ought to have, or that nothing meets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum DependencyLack {
    /// One of a kernel package on any package of its version.
    #[display("depends on no package of exactly its own version")]
    OwnVersion,
    /// A dependency on other versions than those that the set offers.
    #[display("depends on {requirement}, and the set has {}", few(offered, 3))]
    OtherVersion { requirement: String, offered: Vec<String> },
    /// A path of a package of the set that dnf and zypper do not find.
    #[display("requires {path} of {owner}, which no package provides and primary does not list")]
    PathUnlisted { path: String, owner: String },
}

/// Why a needed library does not come with a package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum LibraryLack {
    /// No dependency is on the package that has it.
    #[display("which is {} of {}, and no dependency brings that", _0.path, _0.package)]
    NotBrought(PackagePath),
    /// No dependency is on anything that has it.
    #[display("and no dependency is on anything that has it")]
    NoDependency,
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
