//! Fields of findings about device code and databases that have several forms, with the words for each form.

#![allow(missing_docs, reason = "the text of a form says what the form and its fields are")]

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
    #[display("in {_0}, too")]
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
    section.as_ref().map_or("in no section".to_owned(), |name| format!("section {name}"))
)]
pub struct EmbeddedCode {
    /// The form of the code.
    pub form: EmbeddedForm,
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// The section with the code; `None` if it is in no section.
    pub section: Option<String>,
}

/// The source that claims a target for a code object.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum Claimant {
    /// The entry of an offload bundle with this id. The ELF header has `flags`.
    #[display("entry {id} (flags {flags:#x})")]
    Entry { id: String, flags: u32 },
    /// The row for this target in a kernel archive.
    #[display("an archive's row of {_0}")]
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
    /// The name of the component or package.
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
        "{first} and {other} have {} of {arch} in common, packed once",
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
        "{first} and {other} have {} of {} in common, packed once",
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
    /// The file or component that holds it.
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
    "{} of {arch} {} between {first} and {other} (wrapper {wrapper}, {target} is the first)",
    counted(*count, "code object"),
    if *count == 1 { "differs" } else { "differ" }
)]
pub struct DifferentCode {
    /// The arch of the code.
    pub arch: BaseArch,
    /// Number of keys.
    pub count: usize,
    /// The artifact whose code takes precedence.
    pub first: InputArtifact,
    /// The artifact whose code differs.
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
    #[display("it is packed like a file that no rule for databases names")]
    NoDatabase,
    #[display("it stays with the host files")]
    StaysWithHost,
    #[display("the content decides")]
    ContentDecides,
}

/// The reason why files with the same name are not merged.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum NoUnion {
    #[display("no rule says how to bring them together")]
    NoRule,
    #[display("some of them are offload bundles and some are not")]
    SomeBundles,
    #[display("one of them holds no bundle")]
    NoBundle,
    #[display("one of them holds several bundles")]
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
    /// The text in a receipt of an earlier version, which had no such forms.
    #[serde(untagged)]
    Earlier(String),
}

/// The fault of an index and the code file of the same name.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum Unpaired {
    #[display(
        "is an index for {}, and the code of its name is for {}; it goes with the code",
        arch_list(index),
        arch_list(code)
    )]
    Archs { index: Vec<BaseArch>, code: Vec<BaseArch> },
    #[display("has no index of its name beside it")]
    NoIndex,
    #[display("has no code object of its name beside it")]
    NoCode,
}

/// The fault of a file that an index refers to.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unresolved {
    /// The file does not exist.
    Absent,
    /// The file serves no arch of the index.
    Archs { index: Vec<BaseArch>, referred: Vec<BaseArch> },
}

impl Unresolved {
    /// Writes the fault as a text about the index.
    pub fn told(&self, refers_to: &str) -> String {
        match self {
            Self::Absent => format!("refers to {refers_to}, which is not beside it"),
            Self::Archs { index, referred } => {
                let (index, referred) = (arch_list(index), arch_list(referred));
                format!("is for {index}, and refers to {refers_to}, which is for {referred}")
            }
        }
    }
}

/// The authority for a database file that cannot be read.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum DecidedBy {
    #[display("its rule decides")]
    Rule,
    #[display("its name decides")]
    Name,
}

/// Names that a text shows. The fields have all of them.
const SHOWN: usize = 3;

/// The contradiction between an index and the other files of its folder.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum Inconsistency {
    #[display("is a lazy master index that does not come with its mapping {mapping}")]
    MasterWithoutMapping { mapping: String },
    #[display("is a mapping that does not come with its lazy master index {master}")]
    MappingWithoutMaster { master: String },
    #[display(
        "is the mapping for {arch}, and maps to {} not named for it ({})",
        counted(names.len(), "library"),
        few(names, SHOWN)
    )]
    ForeignNames { arch: String, names: Vec<String> },
    #[display(
        "is a mapping that maps to no fallback library, although {} {} beside it",
        few(fallbacks, SHOWN),
        are(fallbacks.len())
    )]
    FallbackUnmapped { fallbacks: Vec<String> },
    #[display(
        "is beside {compressed}, which libraries that know compressed indexes read in its place"
    )]
    PlainAndCompressed { compressed: String },
}

/// The archs that a file is for, in words; an empty list means all.
pub(super) fn arch_list(archs: &[BaseArch]) -> String {
    if archs.is_empty() { "all archs".to_owned() } else { few(archs, 5) }
}
