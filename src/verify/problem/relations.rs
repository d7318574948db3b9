//! What packages need, exclude and are to each other, and the words for it.

use std::fmt;

use serde::Serialize;

use super::sets::PackagePath;

/// A dependency that a kernel package ought to have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum DependencyLack {
    /// One on its host.
    Host { host: String, version: String },
    /// One on any package of its version.
    OwnVersion,
    /// One on the version that the set has of a package.
    OtherVersion { dependency: String, wanted: String, version: String },
}

impl fmt::Display for DependencyLack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host { host, version } => write!(f, "does not depend on {host} (= {version})"),
            Self::OwnVersion => f.write_str("depends on no package of exactly its own version"),
            Self::OtherVersion { dependency, wanted, version } => {
                write!(f, "depends on {dependency} (= {wanted}), and the set has {version}")
            }
        }
    }
}

/// What a package excludes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Exclusion {
    /// `Breaks`, `Conflicts` or `Obsoletes`.
    pub field: String,
    /// A package or capability.
    pub excluded: String,
    /// Which versions of it.
    pub bound: Option<ExclusionBound>,
}

/// Versions on one side of one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ExclusionBound {
    /// As the format of the package writes it.
    pub sign: String,
    /// The version.
    pub version: String,
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.excluded)?;
        match &self.bound {
            Some(ExclusionBound { sign, version }) => write!(f, " ({sign} {version})"),
            None => Ok(()),
        }
    }
}

/// Why a needed library does not come with a package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LibraryLack {
    /// No dependency is on the package that has it.
    NotBrought(PackagePath),
    /// No dependency is on anything that has it.
    NoDependency,
    /// No dependency is on this package, which tells the loader where it is.
    Untold(String),
}

impl fmt::Display for LibraryLack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBrought(PackagePath { package, path }) => {
                write!(f, "which is {path} of {package}, and no dependency brings that")
            }
            Self::NoDependency => f.write_str("and no dependency is on anything that has it"),
            Self::Untold(package) => write!(
                f,
                "which the loader finds by {package} alone, and no dependency brings that"
            ),
        }
    }
}

/// What makes a package one and the same to those who install it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct NamedVersion {
    /// Its name, of no file.
    pub package: String,
    /// Its version.
    pub version: String,
    /// Its architecture, as its format calls it.
    pub arch: String,
}

impl NamedVersion {
    /// That version of the package called `package`.
    pub fn new(package: &str, version: &str, arch: &str) -> Self {
        let [package, version, arch] = [package, version, arch].map(str::to_owned);
        Self { package, version, arch }
    }
}

impl fmt::Display for NamedVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} for {}", self.package, self.version, self.arch)
    }
}
