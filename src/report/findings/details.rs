//! What findings say that has more than one form, and the words for each.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ComponentFile, EarlierPackage, InputArtifact, InputFile};
use crate::error::abridged;
use crate::formats::package_file::Format;
use crate::gfx::{BaseArch, Target};
use crate::report::words::{counted, few};
use crate::tree::ComponentKind;

/// What a path was merged from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SameFile {
    /// From these two stage prefixes of one artifact.
    Prefixes(String, String),
    /// From this artifact, too.
    Artifact(InputArtifact),
}

impl fmt::Display for SameFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefixes(first, second) => write!(f, "in {first} and in {second}"),
            Self::Artifact(artifact) => write!(f, "in {artifact}, too"),
        }
    }
}

/// What differs between host files of two shards, where their content may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KindDifference {
    /// One is a link and the other a file.
    Link,
    /// One has device code and the other does not.
    DeviceCode,
}

impl fmt::Display for KindDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Link => "is a link on one side only",
            Self::DeviceCode => "has device code on one side only",
        })
    }
}

/// A file for later links that carries device code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DevelopmentFile {
    /// A static archive.
    StaticArchive,
    /// LLVM bitcode.
    Bitcode,
    /// An unlinked object for AMDGPU.
    DeviceObject,
    /// An unlinked object for the host.
    HostObject,
    /// A bundle that holds host code, too.
    Bundle,
}

impl fmt::Display for DevelopmentFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StaticArchive => "a static archive",
            Self::Bitcode => "LLVM bitcode",
            Self::DeviceObject => "an unlinked AMDGPU object",
            Self::HostObject => "an unlinked object",
            Self::Bundle => "an unlinked bundle",
        })
    }
}

/// Who says which target a code object is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Claimant {
    /// The entry of an offload bundle with this id. The ELF header has `flags`.
    #[allow(missing_docs, reason = "said above")]
    Entry { id: String, flags: u32 },
    /// The row for this target in a kernel archive.
    Row(Target),
}

impl fmt::Display for Claimant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry { id, flags } => write!(f, "entry {id} (flags {flags:#x})"),
            Self::Row(target) => write!(f, "an archive's row of {target}"),
        }
    }
}

/// Which table of the configuration leaves an arch out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArchFilterTable {
    /// `components.<name>`.
    Component(String),
    /// `packages.<name>`.
    Package(String),
}

impl ArchFilterTable {
    /// Whose table it is.
    pub fn name(&self) -> &str {
        match self {
            Self::Component(name) | Self::Package(name) => name,
        }
    }
}

impl fmt::Display for ArchFilterTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Component(name) => write!(f, "components.{name}"),
            Self::Package(name) => write!(f, "packages.{name}"),
        }
    }
}

/// Device code that there is more than once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum RepeatedCode {
    /// A bundle holds the code object of a target twice.
    Bundle { file: InputFile, target: Target },
    /// Builds of two artifacts hold the same code objects of a binary.
    Binary {
        file: ComponentFile,
        arch: BaseArch,
        count: usize,
        first: InputArtifact,
        other: InputArtifact,
    },
    /// Two artifacts hold the same database files.
    Database {
        component: String,
        archs: Vec<BaseArch>,
        count: usize,
        first: InputArtifact,
        other: InputArtifact,
    },
}

impl RepeatedCode {
    /// The file or component that holds it.
    pub fn holder(&self) -> String {
        match self {
            Self::Bundle { file, .. } => file.to_string(),
            Self::Binary { file, .. } => file.to_string(),
            Self::Database { component, .. } => component.clone(),
        }
    }
}

impl fmt::Display for RepeatedCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, first, other) = match self {
            Self::Bundle { target, .. } => {
                return write!(f, "a bundle holds the code object for {target} twice");
            }
            Self::Binary { arch, count, first, other, .. } => {
                (format!("{} of {arch}", counted(*count, "code object")), first, other)
            }
            Self::Database { archs, count, first, other, .. } => {
                (format!("{} of {}", counted(*count, "database file"), few(archs, 5)), first, other)
            }
        };
        write!(f, "{first} and {other} have {what} in common, packed once")
    }
}

/// Different code objects under the same keys of a binary.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DifferentCode {
    /// What they are for.
    pub arch: BaseArch,
    /// How many keys.
    pub count: usize,
    /// Whose code is asked first.
    pub first: InputArtifact,
    /// Whose code differs from it.
    pub other: InputArtifact,
    /// The wrapper of the first such key.
    pub wrapper: u32,
    /// The target of the first such key.
    pub target: Target,
}

impl fmt::Display for DifferentCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { arch, count, first, other, wrapper, target } = self;
        let (code, differ) =
            (counted(*count, "code object"), if *count == 1 { "differs" } else { "differ" });
        write!(f, "{code} of {arch} {differ} between {first} and {other} ")?;
        write!(f, "(wrapper {wrapper}, {target} is the first)")
    }
}

/// What of a database file says other archs than its content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum ArchMismatch {
    /// The name of the file says another arch than its directory.
    Name { named: BaseArch, directory: Vec<BaseArch> },
    /// Its content says others than its name or directory.
    Content { placed: Vec<BaseArch>, holds: Vec<BaseArch>, outcome: MismatchOutcome },
}

impl fmt::Display for ArchMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { named, directory } => {
                write!(f, "names {named} and lies in the directory of {}", archs(directory))
            }
            Self::Content { placed, holds, outcome } => {
                write!(f, "is placed for {}, and holds {}; {outcome}", archs(placed), archs(holds))
            }
        }
    }
}

/// What becomes of a file whose content disagrees with its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MismatchOutcome {
    /// It is treated as if no rule claimed it.
    NoDatabase,
    /// It stays with the host files.
    StaysWithHost,
    /// It goes where its content says.
    ContentDecides,
}

impl fmt::Display for MismatchOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoDatabase => "it is treated like any other file of its kind",
            Self::StaysWithHost => "it stays with the host files",
            Self::ContentDecides => "the content decides",
        })
    }
}

/// Why files of one name are not brought together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum NoUnion {
    /// No rule says how.
    NoRule,
    /// Some are offload bundles and some are not.
    SomeBundles,
    /// They are bundles, and one of them is empty.
    NoBundle,
    /// They are bundles, and there are several in one of them.
    SeveralBundles,
    /// They are bundles with different code under one id.
    EntriesDiffer { entry: String },
    /// They are neither bundles nor maps.
    UnknownFormat,
    /// They are maps, and a string of one of them cannot be written again.
    NotUtf8,
    /// They are maps whose keys are the starts of ranges.
    Ranges,
    /// They are maps with different values of one key.
    ValuesDiffer { key: String },
    /// What a receipt says that was written before there were these words.
    #[serde(untagged)]
    Earlier(String),
}

impl fmt::Display for NoUnion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRule => "no rule says how to bring them together",
            Self::SomeBundles => "some of them are offload bundles and some are not",
            Self::NoBundle => "one of them holds no bundle",
            Self::SeveralBundles => "one of them holds several bundles",
            Self::EntriesDiffer { entry } => return write!(f, "their entries {entry} differ"),
            Self::UnknownFormat => "they are neither offload bundles nor MessagePack maps",
            Self::NotUtf8 => "one of them has strings that are not UTF-8",
            Self::Ranges => "their keys are numbers, each the start of a range",
            Self::ValuesDiffer { key } => return write!(f, "their values of {key} differ"),
            Self::Earlier(words) => words,
        })
    }
}

/// What is wrong with an index and the code of its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum Unpaired {
    /// They are for different archs.
    Archs { index: Vec<BaseArch>, code: Vec<BaseArch> },
    /// The file is code, and there is no index.
    NoIndex,
    /// The file is an index, and there is no code.
    NoCode,
}

impl fmt::Display for Unpaired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Archs { index, code } => {
                let (index, code) = (archs(index), archs(code));
                write!(f, "is an index for {index}, and the code of its name is for {code}; ")?;
                f.write_str("it goes with the code")
            }
            Self::NoIndex => f.write_str("has no index of its name beside it"),
            Self::NoCode => f.write_str("has no code object of its name beside it"),
        }
    }
}

/// What is wrong with a file that an index refers to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum Unresolved {
    /// It is not there.
    Absent,
    /// It serves none of the archs of the index.
    Archs { index: Vec<BaseArch>, referred: Vec<BaseArch> },
}

impl Unresolved {
    /// Says it of the index.
    pub fn told(&self, refers_to: &str) -> String {
        match self {
            Self::Absent => format!("refers to {refers_to}, which is not beside it"),
            Self::Archs { index, referred } => {
                let (index, referred) = (archs(index), archs(referred));
                format!("is for {index}, and refers to {refers_to}, which is for {referred}")
            }
        }
    }
}

/// What decides about a database file that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecidedBy {
    /// Its rule.
    Rule,
    /// Its name.
    Name,
}

impl fmt::Display for DecidedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rule => "its rule decides",
            Self::Name => "its name decides",
        })
    }
}

/// What of a dynamic section cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DynamicPart {
    /// The libraries that the file needs.
    NeededLibraries,
    /// Where it looks for them.
    SearchPath,
}

impl fmt::Display for DynamicPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NeededLibraries => "needed libraries",
            Self::SearchPath => "search path",
        })
    }
}

/// What leads a search path out of the prefix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum OutsideSearch {
    /// The configuration keeps search paths, and this one has these folders.
    Folders(Vec<String>),
    /// It should be written anew and cannot.
    Stays { search_path: String, reason: String },
}

impl fmt::Display for OutsideSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folders(folders) => {
                let folders: Vec<_> = folders.iter().map(|folder| abridged(folder)).collect();
                let folders = few(&folders, 5);
                write!(f, "looks for libraries in {folders}, outside of the prefix; ")?;
                f.write_str("`runpath = \"origin\"` removes that")
            }
            Self::Stays { search_path, reason } => {
                write!(f, "its search path {search_path} stays: {reason}")
            }
        }
    }
}

/// What an entry of a list of packages asks for and does not get.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum IgnoredClaim {
    /// A version of its own.
    Version,
    /// Scripts that the list does not have.
    Postinstall,
    /// Artifacts outside of `Artifactory`.
    OutsideArtifactory,
    /// To be for every processor.
    EveryProcessor,
    /// A module that the artifact does not have.
    AbsentModule { module: String, artifact: String, components: Vec<String> },
    /// To be whole, although a package for developers has device code.
    WholeDevelopment,
}

impl fmt::Display for IgnoredClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version => "its `Version` is not used: all packages of a set have one version",
            Self::Postinstall => {
                "`Postinstall` asks for scripts that are not in the list; the package has none"
            }
            Self::OutsideArtifactory => {
                "`Artifact` and `Components` outside of `Artifactory` are not used"
            }
            Self::EveryProcessor => {
                "is to be for every processor, but has files for one; the package is for that one"
            }
            Self::AbsentModule { module, artifact, components } => {
                let components = few(components, ComponentKind::ALL.len());
                let taken = format!("takes {module} of the artifact {artifact} ({components})");
                return write!(f, "{taken}, which does not have it");
            }
            Self::WholeDevelopment => {
                "is a development package and is not split, but has device code, which goes into \
                 kernel packages beside it"
            }
        })
    }
}

/// Why a licence text is not quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotQuoted {
    /// It is too long.
    TooLong,
    /// It is no UTF-8.
    NotUtf8,
}

impl fmt::Display for NotQuoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "it is longer than 256 KiB",
            Self::NotUtf8 => "it is not UTF-8",
        })
    }
}

/// How a version is not newer than in the earlier set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum NotNewer {
    /// A package takes paths of another, which is not older.
    TakesPaths { package: String, from: EarlierPackage },
    /// These packages were newer there.
    Packages { format: Format, newer: Vec<EarlierPackage> },
}

impl NotNewer {
    /// The package, or else the version of all.
    pub fn subject<'a>(&'a self, version: &'a str) -> &'a str {
        match self {
            Self::TakesPaths { package, .. } => package,
            Self::Packages { .. } => version,
        }
    }

    /// Says it of the packages with `version`.
    pub fn told(&self, version: &str) -> String {
        match self {
            Self::TakesPaths { from: EarlierPackage { package, version: earlier }, .. } => format!(
                "takes paths of {package} {earlier}, which is not older than {version}: the \
                 relations that let it do not apply to that version"
            ),
            Self::Packages { format, newer } => {
                let packages: Vec<String> =
                    newer.iter().map(|p| format!("{} {}", p.package, p.version)).collect();
                format!(
                    "the earlier set has newer versions of {} as .{format} ({}): package managers \
                     will not update to this set",
                    counted(newer.len(), "package"),
                    few(&packages, 1)
                )
            }
        }
    }
}

/// Archs that a file is for; none is all.
pub(super) fn archs(archs: &[BaseArch]) -> String {
    if archs.is_empty() { "all archs".to_owned() } else { few(archs, 5) }
}
