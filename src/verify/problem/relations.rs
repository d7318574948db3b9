//! Faults of the relations between packages, with their texts.

use derive_more::Display;
use serde::Serialize;

use super::sets::PackagePath;

/// A dependency that a package ought to have, or that nothing meets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum DependencyLack {
    /// One on its host.
    #[display("does not depend on {host} (= {version})")]
    Host { host: String, version: String },
    /// One on any package of its version.
    #[display("depends on no package of exactly its own version")]
    OwnVersion,
    /// A dependency on another version of a package than the set has.
    #[display("depends on {dependency} ({sign} {wanted}), and the set has {version}")]
    OtherVersion { dependency: String, sign: String, wanted: String, version: String },
    /// A path of a package of the set that dnf and zypper do not find.
    #[display("requires {path} of {owner}, which no package provides and primary does not list")]
    PathUnlisted { path: String, owner: String },
}

/// A package name that another one excludes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[display("{field}: {excluded}{}", bound.as_ref().map(ToString::to_string).unwrap_or_default())]
pub struct Exclusion {
    /// `Breaks`, `Conflicts` or `Obsoletes`.
    pub field: String,
    /// A package or capability.
    pub excluded: String,
    /// The excluded versions; all if absent.
    pub bound: Option<ExclusionBound>,
}

/// Versions on one side of one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[display(" ({sign} {version})")]
pub struct ExclusionBound {
    /// The comparison as the format of the package writes it.
    pub sign: String,
    /// The version.
    pub version: String,
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
