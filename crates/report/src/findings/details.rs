//! Enum fields of findings about device code and databases, with the text of each variant.

use derive_more::Display;
use rockpack_core::gfx::{BaseArch, Target};
use rockpack_core::tree::TreePath;
use serde::Serialize;

use crate::subjects::{ComponentFile, ComponentName, InputArtifact, InputFile};
use crate::words::{are, counted, few};

/// The other source of a merged path.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum SameFile {
    #[display("in {_0} and in {_1}")]
    Prefixes(String, String),
    #[display("in {_0} as well")]
    Artifact(InputArtifact),
}

/// The difference between host files at one path in two shards.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum HostDifference {
    #[display("is only in {_0}")]
    OnlyIn(String),
    #[display("is a link on one side only")]
    Link,
    #[display("has device code on one side only")]
    DeviceCode,
    #[display("is a link to {first} and to {other}")]
    Targets { first: String, other: String },
    #[display("is executable on one side only (mode {first:o} and {other:o})")]
    Modes { first: u32, other: u32 },
    #[display("has different content: {first} and {other} bytes")]
    Sizes { first: u64, other: u64 },
    #[display("has different content in its {size} bytes")]
    Bytes { size: u64 },
}

/// A host file that differs between two artifacts.
#[derive(Debug, Serialize, Display)]
#[display("{path} {difference}")]
pub struct DifferentFile {
    pub path: TreePath,
    pub difference: HostDifference,
}

/// A file for later links that carries device code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum DevelopmentFile {
    #[display("a static archive")]
    StaticArchive,
    #[display("LLVM bitcode")]
    Bitcode,
    #[display("an unlinked AMDGPU object")]
    DeviceObject,
    #[display("an unlinked object")]
    HostObject,
    /// A bundle that also has host code, unlinked code, or code for GPUs of other vendors.
    #[display("an unlinked bundle")]
    Bundle,
}

/// The form in which device code is embedded in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum EmbeddedForm {
    #[display("an offload bundle")]
    Bundle,
    #[display("a compressed offload bundle")]
    CompressedBundle,
    #[display("a code object")]
    CodeObject,
}

/// Device code that is embedded in a binary.
#[derive(Debug, Serialize, Display)]
#[display(
    "{form} at offset {offset:#x} ({})",
    section.as_ref().map_or("outside all sections".to_owned(), |name| format!("section {name}"))
)]
pub struct EmbeddedCode {
    pub form: EmbeddedForm,
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// `None` if the code is outside all sections.
    pub section: Option<String>,
}

/// The source that claims a target for a code object.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum Claimant {
    /// An offload bundle entry with this id; `flags` are those of the ELF header.
    #[display("entry {id} (flags {flags:#x})")]
    Entry { id: String, flags: u32 },
    #[display("the archive row for {_0}")]
    Row(Target),
}

/// The table of the configuration that leaves an arch out.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum ArchFilterTable {
    #[display("components.{_0}")]
    Component(String),
    #[display("packages.{_0}")]
    Package(String),
}

impl ArchFilterTable {
    pub fn name(&self) -> &str {
        match self {
            Self::Component(name) | Self::Package(name) => name,
        }
    }
}

/// Duplicate device code.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum RepeatedCode {
    #[display("a bundle holds the code object for {target} twice")]
    Bundle { file: InputFile, target: Target },
    #[display(
        "{first} and {other} share {} for {arch}, packed once",
        counted(*count, "code object")
    )]
    Binary {
        file: ComponentFile,
        arch: BaseArch,
        count: usize,
        first: InputArtifact,
        other: InputArtifact,
    },
    #[display(
        "{first} and {other} share {} for {}, packed once",
        counted(*count, "database file"),
        few(archs, 5)
    )]
    Database {
        component: ComponentName,
        archs: Vec<BaseArch>,
        count: usize,
        first: InputArtifact,
        other: InputArtifact,
    },
}

impl RepeatedCode {
    pub fn holder(&self) -> String {
        match self {
            Self::Bundle { file, .. } => file.to_string(),
            Self::Binary { file, .. } => file.to_string(),
            Self::Database { component, .. } => component.to_string(),
        }
    }
}

/// Different code objects under the same keys of a binary.
#[derive(Debug, Serialize, Display)]
#[display(
    "{} of {arch} {} between {first} and {other} (first: wrapper {wrapper}, {target})",
    counted(*count, "code object"),
    if *count == 1 { "differs" } else { "differ" }
)]
pub struct DifferentCode {
    pub arch: BaseArch,
    pub count: usize,
    /// The artifact whose code takes precedence.
    pub first: InputArtifact,
    pub other: InputArtifact,
    /// The wrapper of the first such key.
    pub wrapper: u32,
    /// The target of the first such key.
    pub target: Target,
}

/// The way in which name, directory and content of a database file disagree about archs.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum ArchMismatch {
    #[display(
        "its name says {named}, but its directory is for {}; the directory decides",
        arch_list(directory)
    )]
    Name { named: BaseArch, directory: Vec<BaseArch> },
    #[display(
        "its name or directory says {}, but its content is for {}; {outcome}",
        arch_list(placed),
        arch_list(holds)
    )]
    Content { placed: Vec<BaseArch>, holds: Vec<BaseArch>, outcome: MismatchOutcome },
}

/// The treatment of a file whose content disagrees with its place.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum MismatchOutcome {
    #[display("it is packed like a file that no database rule matches")]
    NoDatabase,
    #[display("it stays with the host files")]
    StaysWithHost,
    #[display("the content decides")]
    ContentDecides,
}

/// The reason why files with the same name are not merged.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum MergeObstacle {
    #[display("no rule says how to merge them")]
    NoRule,
    #[display("some of them are offload bundles and some are not")]
    SomeBundles,
    #[display("one of them does not contain a bundle")]
    NoBundle,
    #[display("one of them contains several bundles")]
    SeveralBundles,
    #[display("their entries {entry} differ")]
    EntriesDiffer { entry: String },
    #[display("they are neither offload bundles nor MessagePack maps")]
    UnknownFormat,
    #[display("one of them has strings that are not UTF-8")]
    NotUtf8,
    #[display("their keys are numbers, each the start of a range")]
    Ranges,
    #[display("their values of {key} differ")]
    ValuesDiffer { key: String },
}

/// The fault of an index and the code file of the same name.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum Unpaired {
    #[display(
        "is an index for {}, but the code file of the same name is for {}; it is packed with the code",
        arch_list(index),
        arch_list(code)
    )]
    Archs { index: Vec<BaseArch>, code: Vec<BaseArch> },
    #[display("has no index of the same name next to it")]
    NoIndex,
    #[display("has no code object of the same name next to it")]
    NoCode,
}

/// The fault of a file that an index refers to.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unresolved {
    Absent,
    /// The file serves no arch of the index.
    Archs {
        index: Vec<BaseArch>,
        referred: Vec<BaseArch>,
    },
}

impl Unresolved {
    /// The message, whose subject is the index.
    pub fn describe(&self, refers_to: &str) -> String {
        match self {
            Self::Absent => format!("refers to {refers_to}, which is not next to it"),
            Self::Archs { index, referred } => {
                let (index, referred) = (arch_list(index), arch_list(referred));
                format!("is for {index}, but refers to {refers_to}, which is for {referred}")
            }
        }
    }
}

/// The authority for a database file that cannot be read.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum DecidedBy {
    #[display("it is placed by its rule")]
    Rule,
    #[display("it is placed by its name")]
    Name,
}

/// Names shown in a message; the fields list all.
const SHOWN: usize = 3;

/// The contradiction between an index and the other files of its folder.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum Inconsistency {
    #[display("is a lazy master index without its mapping {mapping}")]
    MasterWithoutMapping { mapping: String },
    #[display("is a mapping without its lazy master index {master}")]
    MappingWithoutMaster { master: String },
    #[display(
        "is the mapping for {arch}, but maps to {} not named for it ({})",
        counted(names.len(), "library"),
        few(names, SHOWN)
    )]
    ForeignNames { arch: String, names: Vec<String> },
    #[display(
        "is a mapping that maps to no fallback library, although {} {} next to it",
        few(fallbacks, SHOWN),
        are(fallbacks.len())
    )]
    FallbackUnmapped { fallbacks: Vec<String> },
    #[display(
        "is next to {compressed}, which libraries that support compressed indexes read instead"
    )]
    PlainAndCompressed { compressed: String },
}

/// Names the archs of a file; an empty list means all archs.
pub(super) fn arch_list(archs: &[BaseArch]) -> String {
    if archs.is_empty() { "all archs".to_owned() } else { few(archs, 5) }
}
