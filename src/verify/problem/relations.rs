//! What packages need, exclude and are to each other, and the words for it.

use std::fmt;

use derive_more::Display;
use serde::Serialize;

use super::sets::PackagePath;

/// A dependency that a kernel package ought to have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum DependencyLack {
    /// One on its host.
    #[display("does not depend on {host} (= {version})")]
    Host { host: String, version: String },
    /// One on any package of its version.
    #[display("depends on no package of exactly its own version")]
    OwnVersion,
    /// One on the version that the set has of a package.
    #[display("depends on {dependency} ({sign} {wanted}), and the set has {version}")]
    OtherVersion { dependency: String, sign: String, wanted: String, version: String },
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
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum LibraryLack {
    /// No dependency is on the package that has it.
    #[display("which is {} of {}, and no dependency brings that", _0.path, _0.package)]
    NotBrought(PackagePath),
    /// No dependency is on anything that has it.
    #[display("and no dependency is on anything that has it")]
    NoDependency,
    /// No search path leads to it, and nothing tells the loader of it.
    #[display("which is {} of {}, where the loader does not look for it", _0.path, _0.package)]
    OutOfReach(PackagePath),
    /// No dependency is on this package, which tells the loader where it is.
    #[display("which the loader finds by {_0} alone, and no dependency brings that")]
    Untold(String),
}

/// The reason why a script does not start.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum InterpreterLack {
    /// No dependency is on the package that has its interpreter.
    #[display("needs {interpreter}, which is {} of {}, and no dependency brings that", holder.path, holder.package)]
    NotBrought { interpreter: String, holder: PackagePath },
    /// Neither the set nor any distribution that is known has its interpreter.
    #[display("needs {interpreter}, which neither the set nor a known distribution has")]
    Nowhere { interpreter: String },
    /// Its first line names nothing that Linux could start, or is longer than what Linux reads.
    #[display("has a first line that Linux does not start, or of which it reads only a part")]
    Unreadable,
}

/// What makes a package one and the same to those who install it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[display("{package} {version} for {arch}")]
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
