//! Fields of findings about device code and databases that have several forms, with the words for each form.

use derive_more::Display;
use rockpack_core::gfx::{BaseArch, Target};
use serde::Serialize;

use crate::subjects::{ComponentFile, ComponentName, InputArtifact, InputFile};
use crate::words::{are, counted, few};

/// The other source of a merged path.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum SameFile {
    /// Two stage prefixes of one artifact.
    #[display("in {_0} and in {_1}")]
    Prefixes(String, String),
    /// Another artifact.
    #[display("in {_0}, too")]
    Artifact(InputArtifact),
}

/// The difference between host files of two shards, apart from content that may differ.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum KindDifference {
    /// One is a link and the other a file.
    #[display("is a link on one side only")]
    Link,
    /// One has device code and the other does not.
    #[display("has device code on one side only")]
    DeviceCode,
}

/// A file for later links that carries device code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum DevelopmentFile {
    /// A static archive.
    #[display("a static archive")]
    StaticArchive,
    /// LLVM bitcode.
    #[display("LLVM bitcode")]
    Bitcode,
    /// An unlinked object for AMDGPU.
    #[display("an unlinked AMDGPU object")]
    DeviceObject,
    /// An unlinked object for the host.
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
    /// An offload bundle.
    #[display("an offload bundle")]
    Bundle,
    /// A compressed offload bundle.
    #[display("a compressed offload bundle")]
    CompressedBundle,
    /// A plain AMDGPU ELF file.
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
    #[allow(missing_docs, reason = "said above")]
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
    /// `components.<name>`.
    #[display("components.{_0}")]
    Component(String),
    /// `packages.<name>`.
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
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum RepeatedCode {
    /// A bundle holds the code object for a target twice.
    #[display("a bundle holds the code object for {target} twice")]
    Bundle { file: InputFile, target: Target },
    /// Builds of two artifacts hold the same code objects of a binary.
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
    /// Two artifacts hold the same database files.
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
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum ArchMismatch {
    /// The name of the file has another arch than the directory.
    #[display(
        "its name says {named}, but its directory is for {}; the directory decides",
        arch_list(directory)
    )]
    Name { named: BaseArch, directory: Vec<BaseArch> },
    /// The content has other archs than the name or directory.
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
    /// The file is treated as if no rule claimed it.
    #[display("it is packed like a file that no rule for databases names")]
    NoDatabase,
    /// The file stays with the host files.
    #[display("it stays with the host files")]
    StaysWithHost,
    /// The content decides where the file goes.
    #[display("the content decides")]
    ContentDecides,
}

/// The reason why files with the same name are not merged.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum NoUnion {
    /// No rule defines a merge.
    #[display("no rule says how to bring them together")]
    NoRule,
    /// Some of the files are offload bundles, and some are not.
    #[display("some of them are offload bundles and some are not")]
    SomeBundles,
    /// The files are bundles, and one of them is empty.
    #[display("one of them holds no bundle")]
    NoBundle,
    /// The files are bundles, and one file has several.
    #[display("one of them holds several bundles")]
    SeveralBundles,
    /// The files are bundles with different code under one id.
    #[display("their entries {entry} differ")]
    EntriesDiffer { entry: String },
    /// One of the files is neither a bundle nor a map, or a map that is too long to be merged.
    #[display("they are neither offload bundles nor MessagePack maps")]
    UnknownFormat,
    /// The files are maps, and one has a string that cannot be written again.
    #[display("one of them has strings that are not UTF-8")]
    NotUtf8,
    /// The files are maps whose keys are the starts of ranges.
    #[display("their keys are numbers, each the start of a range")]
    Ranges,
    /// The files are maps with different values of one key.
    #[display("their values of {key} differ")]
    ValuesDiffer { key: String },
    /// The text in a receipt of an earlier version, which had no such forms.
    #[serde(untagged)]
    Earlier(String),
}

/// The fault of an index and the code file of the same name.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum Unpaired {
    /// Index and code are for different archs.
    #[display(
        "is an index for {}, and the code of its name is for {}; it goes with the code",
        arch_list(index),
        arch_list(code)
    )]
    Archs { index: Vec<BaseArch>, code: Vec<BaseArch> },
    /// The file is code, and has no index.
    #[display("has no index of its name beside it")]
    NoIndex,
    /// The file is an index, and has no code.
    #[display("has no code object of its name beside it")]
    NoCode,
}

/// The fault of a file that an index refers to.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
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
    /// The rule.
    #[display("its rule decides")]
    Rule,
    /// The name of the file.
    #[display("its name decides")]
    Name,
}

/// Names that a text shows. The fields have all of them.
const SHOWN: usize = 3;

/// The contradiction between an index and the other files of its folder.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum Inconsistency {
    /// The file is a lazy master index, and its mapping is missing.
    #[display("is a lazy master index that does not come with its mapping {mapping}")]
    MasterWithoutMapping { mapping: String },
    /// The file is a mapping, and its lazy master index is missing.
    #[display("is a mapping that does not come with its lazy master index {master}")]
    MappingWithoutMaster { master: String },
    /// The file is a mapping for an arch, and names libraries whose names do not end in that arch.
    #[display(
        "is the mapping for {arch}, and maps to {} not named for it ({})",
        counted(names.len(), "library"),
        few(names, SHOWN)
    )]
    ForeignNames { arch: String, names: Vec<String> },
    /// The file is a mapping without a fallback library, although the folder has such libraries.
    #[display(
        "is a mapping that maps to no fallback library, although {} beside it",
        few_are(fallbacks)
    )]
    FallbackUnmapped { fallbacks: Vec<String> },
    /// The file is a plain index, and the compressed index of the same name exists, too.
    #[display(
        "is beside {compressed}, which libraries that know compressed indexes read in its place"
    )]
    PlainAndCompressed { compressed: String },
}

fn few_are(names: &[String]) -> String {
    format!("{} {}", few(names, SHOWN), are(names.len()))
}

/// The name for a code file of several archs.
pub(super) fn code_file(file: &InputFile) -> &'static str {
    if file.path.name().ends_with(".kpack") { "a kernel archive" } else { "an offload bundle" }
}

/// The archs that a file is for, in words; an empty list means all.
pub(super) fn arch_list(archs: &[BaseArch]) -> String {
    if archs.is_empty() { "all archs".to_owned() } else { few(archs, 5) }
}
