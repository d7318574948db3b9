//! Code objects that are lost, foreign or misplaced, and the words for it.

use derive_more::Display;
use rockpack_base::content::Sha256Digest;
use rockpack_base::gfx::BaseArch;
use rockpack_base::tree::TreePath;
use serde::Serialize;

use super::sets::PackagePath;
use crate::report::words::few;

/// The place where a code object is missing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CodeLoss {
    /// The code object is not where the receipt says.
    Recorded { installed: String, fault: RecordFault },
    /// A wrapper of a shard's build has the code, and no archive has it.
    OfWrapper { shard: String, wrapper: usize },
    /// A shard's build has the code without a wrapper, and no finding names it.
    WithoutWrapper { shard: String },
    /// A file of a shard contains the code, and no package does.
    OfFile { shard: String },
}

impl CodeLoss {
    /// The subject of the text: the lost code of the file at `path`.
    pub(super) fn subject(&self, path: &str, target: &str) -> String {
        match self {
            Self::Recorded { .. } => format!("{path} {target}"),
            Self::OfWrapper { shard, wrapper } => format!("{path} of {shard}, wrapper {wrapper}"),
            Self::WithoutWrapper { shard } | Self::OfFile { shard } => format!("{path} of {shard}"),
        }
    }

    /// The text of the problem: where the artifacts have the code, and where it is missing.
    pub(super) fn message(&self, target: &str, sha256: &str) -> String {
        match self {
            Self::Recorded { installed, fault } => fault.message(installed, sha256),
            Self::OfWrapper { .. } => {
                format!(
                    "its code object for {target} ({sha256}) is in no archive and in no finding"
                )
            }
            Self::WithoutWrapper { .. } => {
                format!("a code object for {target} without wrapper is in no finding")
            }
            Self::OfFile { .. } => {
                format!(
                    "its code object for {target} ({sha256}) is in no package and in no finding"
                )
            }
        }
    }
}

/// Why a code object is not where the receipt says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordFault {
    /// No package installs the file.
    NotInstalled,
    /// The file does not have it, or not under this key or entry.
    NotAtPlace { key: Option<String> },
}

impl RecordFault {
    fn message(&self, installed: &str, sha256: &str) -> String {
        match self {
            Self::NotInstalled => {
                format!("{sha256} is said to be in {installed}, which no package installs")
            }
            Self::NotAtPlace { key: Some(key) } => {
                format!("{sha256} is not at {key} in {installed}")
            }
            Self::NotAtPlace { key: None } => format!("{sha256} is not the file {installed}"),
        }
    }
}

/// The place of a code object in a file. Its text begins a sentence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum CodePosition {
    /// The file is the code object.
    #[display("")]
    File,
    /// The code object in this row of an archive.
    #[display("{key} [{target}]: ")]
    Row { key: String, target: String },
    /// The code object in this entry of a bundle.
    #[display("{id}: ")]
    Entry { id: String },
}

impl CodePosition {
    /// The row of an archive.
    pub fn row(key: &str, target: &str) -> Self {
        Self::Row { key: key.to_owned(), target: target.to_owned() }
    }
}

/// The record that should name a code object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CodeWitness {
    /// The artifacts.
    Artifacts,
    /// The receipt.
    Receipt,
}

impl CodeWitness {
    pub(super) fn words(self, sha256: &Sha256Digest) -> String {
        match self {
            Self::Artifacts => "is device code that no artifact has".to_owned(),
            Self::Receipt => format!("the receipt does not know {sha256}"),
        }
    }
}

/// Code in the wrong place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum Misplacement {
    /// Code of one wrapper under several numbers.
    #[display("its code objects are scattered over several wrappers' keys")]
    Scattered { path: TreePath, shard: String, wrapper: usize },
    /// Code of every build under the numbers of other wrappers.
    #[display("the archives have other code for its wrappers than any of the builds")]
    NoOwnBuild { path: TreePath },
    /// Code of one wrapper under a number that has other kernels in the primary build.
    #[display("its code objects stand under a wrapper of {primary} that has other kernels")]
    OtherKernels { path: TreePath, shard: String, wrapper: usize, primary: String },
    /// Archives have different code under the same keys.
    #[display("has other code than {other} under {count} of its keys")]
    Contradiction { archive: PackagePath, other: PackagePath, count: usize },
}

impl Misplacement {
    pub(super) fn subject(&self) -> String {
        match self {
            Self::Scattered { path, shard, wrapper }
            | Self::OtherKernels { path, shard, wrapper, .. } => {
                format!("{path} of {shard}, wrapper {wrapper}")
            }
            Self::NoOwnBuild { path } => path.to_string(),
            Self::Contradiction { archive, .. } => archive.to_string(),
        }
    }
}

/// Device code of an arch that its package is not for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum ForeignCode {
    /// A code object, or a row of an archive, for `arch` in a package for `archs`.
    #[display("holds code for {arch}; the package is for {}", few(archs, 5))]
    Code { arch: BaseArch, archs: Vec<String> },
    /// An index for `indexed` in a package for `archs`.
    #[display("is an index for {}; the package is for {}", few(indexed, 5), few(archs, 5))]
    Index { indexed: Vec<BaseArch>, archs: Vec<String> },
    /// A bundle that `other`, the package for `arch`, does not have, too.
    #[display("is a bundle for {} and {arch}, and {other} has no equal file", few(archs, 5))]
    Bundle { arch: BaseArch, archs: Vec<String>, other: String },
}
