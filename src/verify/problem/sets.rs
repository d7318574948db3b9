//! What is wrong with packages, alone and as a set, and the words for it.

use std::fmt;

use serde::Serialize;

use super::archives::RowFault;
use crate::gfx::BaseArch;
use crate::report::words::list;
use crate::tree::TreePath;

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
                return write!(f, "is for {}, and the receipt says {}", list(archs), list(stated));
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

/// By whom, and from where, a code object is missed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum CodeLoss {
    /// By the receipt, which has it elsewhere.
    Recorded { installed: String, fault: RecordFault },
    /// From all archives: a wrapper of a shard's build has it.
    OfWrapper { shard: String, wrapper: usize },
    /// From all findings: a shard's build has it without a wrapper.
    WithoutWrapper { shard: String },
    /// From all packages: a file of a shard is it, or holds it.
    OfFile { shard: String },
}

impl CodeLoss {
    /// What is lost, from the file at `path`.
    pub(super) fn subject(&self, path: &str, target: &str) -> String {
        match self {
            Self::Recorded { .. } => format!("{path} {target}"),
            Self::OfWrapper { shard, wrapper } => format!("{path} of {shard}, wrapper {wrapper}"),
            Self::WithoutWrapper { shard } | Self::OfFile { shard } => format!("{path} of {shard}"),
        }
    }

    /// How it is lost.
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
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum RecordFault {
    /// No package installs the file.
    NotInstalled,
    /// It is not at this key of the archive.
    NotAtKey { key: String },
    /// The file is another.
    NotTheFile,
    /// The file is not for the target.
    Target(RowFault),
    /// This entry of a bundle is another.
    NotTheEntry { id: String, target: String },
    /// The file cannot hold it.
    OtherKind,
    /// The file is in another package.
    OtherPackage { package: String, stated: String },
}

impl RecordFault {
    fn message(&self, installed: &str, sha256: &str) -> String {
        let fault = match self {
            Self::NotInstalled => {
                return format!("{sha256} is said to be in {installed}, which no package installs");
            }
            Self::OtherPackage { package, stated } => {
                return format!("{installed} is in {package}, not in {stated}");
            }
            Self::NotAtKey { key } => format!("is not at {key}"),
            Self::NotTheFile => "is not the file".to_owned(),
            Self::Target(fault) => fault.to_string(),
            Self::NotTheEntry { id, target } => format!("is not the entry {id} for {target}"),
            Self::OtherKind => "is not in a file of this kind".to_owned(),
        };
        format!("{sha256} {fault} in {installed}")
    }
}

/// Where in a file a code object stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum CodePosition {
    /// The file is the code object.
    File,
    /// In this row of an archive.
    Row { key: String, target: String },
    /// In this entry of a bundle.
    Entry { id: String },
}

impl CodePosition {
    /// The row of an archive.
    pub fn row(key: &str, target: &str) -> Self {
        Self::Row { key: key.to_owned(), target: target.to_owned() }
    }
}

impl fmt::Display for CodePosition {
    /// As the beginning of a sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => Ok(()),
            Self::Row { key, target } => write!(f, "{key} [{target}]: "),
            Self::Entry { id } => write!(f, "{id}: "),
        }
    }
}

/// Who ought to know a code object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CodeWitness {
    /// The artifacts.
    Artifacts,
    /// The receipt.
    Receipt,
}

impl CodeWitness {
    pub(super) fn words(self, sha256: &str) -> String {
        match self {
            Self::Artifacts => "is device code that no artifact has".to_owned(),
            Self::Receipt => format!("the receipt does not know {sha256}"),
        }
    }
}

/// Which code stands where it ought not to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum Misplacement {
    /// That of one wrapper, under several numbers.
    Scattered { path: TreePath, shard: String, wrapper: usize },
    /// That of every build, under numbers of others.
    NoOwnBuild { path: TreePath },
    /// That of one wrapper, under a number of the primary build that has other kernels.
    OtherKernels { path: TreePath, shard: String, wrapper: usize, primary: String },
    /// Archives have different code under the same keys.
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

impl fmt::Display for Misplacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scattered { .. } => "its code objects are scattered over several wrappers' keys",
            Self::NoOwnBuild { .. } => {
                "no build's code objects stand under the numbers of its own wrappers"
            }
            Self::OtherKernels { primary, .. } => {
                return write!(
                    f,
                    "its code objects stand under a wrapper of {primary} that has other kernels"
                );
            }
            Self::Contradiction { other, count, .. } => {
                return write!(f, "has other code than {other} under {count} of its keys");
            }
        })
    }
}

/// How a file of the artifacts is lost.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum FileLoss {
    /// No package has the path.
    Absent { was: InputVariant },
    /// A package has something else there.
    OtherContent { was: InputVariant },
    /// No package has the binary.
    BinaryAbsent,
    /// A package has another binary.
    OtherBinary,
}

impl fmt::Display for FileLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent { was } => write!(f, "{was} is in no package"),
            Self::OtherContent { was } => write!(f, "{was} is in a package with other content"),
            Self::BinaryAbsent => {
                f.write_str("a binary with device code is in no package as a host binary")
            }
            Self::OtherBinary => f.write_str(
                "a binary is in a package with other machine code or another number of wrappers",
            ),
        }
    }
}

/// What the shards have at a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum InputVariant {
    /// A file.
    File { shards: Vec<String> },
    /// A link.
    Link { target: String },
    /// A directory.
    Directory,
}

impl fmt::Display for InputVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { shards } => write!(f, "a file of {}", list(shards)),
            Self::Link { target } => write!(f, "a link to {target}"),
            Self::Directory => f.write_str("a directory"),
        }
    }
}

/// Device code of an arch that its package is not for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum ForeignCode {
    /// A code object, or a row of an archive, for `arch` in a package for `archs`.
    Code { arch: BaseArch, archs: Vec<String> },
    /// An index for `indexed` in a package for `archs`.
    Index { indexed: Vec<BaseArch>, archs: Vec<String> },
    /// A bundle that `other`, the package for `arch`, does not have, too.
    Bundle { arch: BaseArch, archs: Vec<String>, other: String },
    /// Archives for `arch`, which `other` has of the same host.
    SecondGroup { arch: String, other: String },
}

impl fmt::Display for ForeignCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code { arch, archs } => {
                write!(f, "holds code for {arch}; the package is for {}", list(archs))
            }
            Self::Index { indexed, archs } => {
                write!(f, "is an index for {}; the package is for {}", list(indexed), list(archs))
            }
            Self::Bundle { arch, archs, other } => {
                let own = list(archs);
                write!(f, "is a bundle for {own} and {arch}, and {other} has no equal file")
            }
            Self::SecondGroup { arch, other } => {
                write!(f, "has archives for {arch}, as has {other}")
            }
        }
    }
}

/// What contradicts the owner of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum PathConflict {
    /// Another owner.
    Owners { sharing: BadSharing, first: String, second: String },
    /// `package` has it below what is no directory in `other`.
    BelowFile { above: String, other: String, package: String },
    /// One package has it twice.
    InPackage { package: String, earlier: String, later: String },
    /// One artifact has it in two stage prefixes.
    InPrefixes { artifact: String, first: String, second: String, difference: NodeDifference },
}

impl PathConflict {
    pub(super) fn subject(&self, path: &str) -> String {
        match self {
            Self::Owners { .. } | Self::BelowFile { .. } => path.to_owned(),
            Self::InPackage { package: holder, .. } | Self::InPrefixes { artifact: holder, .. } => {
                PackagePath::new(holder, path).to_string()
            }
        }
    }
}

impl fmt::Display for PathConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owners { sharing, first, second } => write!(f, "{sharing}: {first} and {second}"),
            Self::BelowFile { above, other, package } => write!(
                f,
                "lies below {above}, which is no directory in {other}; it comes with {package}"
            ),
            Self::InPackage { earlier, later, .. } => write!(
                f,
                "stands in the package twice, as a {earlier} and as a {later}: what is installed \
                 is the last, and the digests are of one"
            ),
            Self::InPrefixes { first, second, difference, .. } => match difference {
                NodeDifference::Modes { own, other } => {
                    write!(f, "has mode {own:o} in the prefix {first}, {other:o} in {second}")
                }
                NodeDifference::Kinds { own, other } => {
                    write!(f, "is a {own} in the prefix {first} and a {other} in {second}")
                }
                NodeDifference::Content => {
                    write!(f, "differs between the prefixes {first} and {second}")
                }
            },
        }
    }
}

/// What two owners may not share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BadSharing {
    /// A debug file with two contents.
    DifferentFiles,
    /// A file for several archs with two contents.
    DifferentArtifacts,
    /// A directory with two modes.
    Modes,
    /// Anything else.
    Path,
}

impl fmt::Display for BadSharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DifferentFiles => "differs in two packages",
            Self::DifferentArtifacts => "differs in the artifacts of two archs",
            Self::Modes => "has different modes in two packages",
            Self::Path => "is owned by two packages",
        })
    }
}

/// In what two nodes of an artifact differ.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum NodeDifference {
    /// In their modes.
    Modes { own: u32, other: u32 },
    /// They are a file, a link or a directory.
    Kinds { own: String, other: String },
    /// In what they hold, or where they lead.
    Content,
}

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
