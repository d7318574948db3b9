//! What findings say that has more than one form, and the words for each.

use std::fmt;

use derive_more::Display;
use rockpack_base::error::abridged;
use rockpack_base::formats::package_file::Format;
use rockpack_base::gfx::{BaseArch, Target};
use rockpack_base::tree::ComponentKind;
use serde::{Deserialize, Serialize};

use super::{ComponentFile, EarlierPackage, InputArtifact, InputFile};
use crate::report::words::{counted, few};
use crate::report::{ComponentName, PackageName};

/// What a path was merged from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum SameFile {
    /// From these two stage prefixes of one artifact.
    #[display("in {_0} and in {_1}")]
    Prefixes(String, String),
    /// From this artifact, too.
    #[display("in {_0}, too")]
    Artifact(InputArtifact),
}

/// What differs between host files of two shards, where their content may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
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
    /// A bundle that holds host code, too.
    #[display("an unlinked bundle")]
    Bundle,
}

/// A form in which device code lies in a file among other bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum EmbeddedForm {
    /// An offload bundle.
    #[display("an offload bundle")]
    Bundle,
    /// A compressed offload bundle.
    #[display("a compressed offload bundle")]
    CompressedBundle,
    /// An AMDGPU ELF file by itself.
    #[display("a code object")]
    CodeObject,
}

/// Device code that lies in a binary among other bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[display(
    "{form} at offset {offset:#x} ({})",
    section.as_ref().map_or("in no section".to_owned(), |name| format!("section {name}"))
)]
pub struct EmbeddedCode {
    /// What it is.
    pub form: EmbeddedForm,
    /// Its first byte in the file.
    pub offset: u64,
    /// The section that has it, if one does.
    pub section: Option<String>,
}

/// Who says which target a code object is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
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

/// Which table of the configuration leaves an arch out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
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
    /// Whose table it is.
    pub fn name(&self) -> &str {
        match self {
            Self::Component(name) | Self::Package(name) => name,
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

/// How the name, the directory and the content of a database file disagree about archs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum ArchMismatch {
    /// The name of the file says another arch than its directory.
    #[display(
        "its name says {named}, but its directory is for {}; the directory decides",
        archs(directory)
    )]
    Name { named: BaseArch, directory: Vec<BaseArch> },
    /// Its content says others than its name or directory.
    #[display(
        "its name or directory says {}, but its content is for {}; {outcome}",
        archs(placed),
        archs(holds)
    )]
    Content { placed: Vec<BaseArch>, holds: Vec<BaseArch>, outcome: MismatchOutcome },
}

/// What becomes of a file whose content disagrees with its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum MismatchOutcome {
    /// It is treated as if no rule claimed it.
    #[display("it is packed like a file that no rule for databases names")]
    NoDatabase,
    /// It stays with the host files.
    #[display("it stays with the host files")]
    StaysWithHost,
    /// It goes where its content says.
    #[display("the content decides")]
    ContentDecides,
}

/// Why files of one name are not brought together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum NoUnion {
    /// No rule says how.
    #[display("no rule says how to bring them together")]
    NoRule,
    /// Some are offload bundles and some are not.
    #[display("some of them are offload bundles and some are not")]
    SomeBundles,
    /// They are bundles, and one of them is empty.
    #[display("one of them holds no bundle")]
    NoBundle,
    /// They are bundles, and there are several in one of them.
    #[display("one of them holds several bundles")]
    SeveralBundles,
    /// They are bundles with different code under one id.
    #[display("their entries {entry} differ")]
    EntriesDiffer { entry: String },
    /// One of them is neither a bundle nor a map, or a map that is too long to be joined.
    #[display("they are neither offload bundles nor MessagePack maps")]
    UnknownFormat,
    /// They are maps, and a string of one of them cannot be written again.
    #[display("one of them has strings that are not UTF-8")]
    NotUtf8,
    /// They are maps whose keys are the starts of ranges.
    #[display("their keys are numbers, each the start of a range")]
    Ranges,
    /// They are maps with different values of one key.
    #[display("their values of {key} differ")]
    ValuesDiffer { key: String },
    /// What a receipt says that was written before there were these words.
    #[serde(untagged)]
    Earlier(String),
}

/// What is wrong with an index and the code of its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum Unpaired {
    /// They are for different archs.
    #[display(
        "is an index for {}, and the code of its name is for {}; it goes with the code",
        archs(index),
        archs(code)
    )]
    Archs { index: Vec<BaseArch>, code: Vec<BaseArch> },
    /// The file is code, and there is no index.
    #[display("has no index of its name beside it")]
    NoIndex,
    /// The file is an index, and there is no code.
    #[display("has no code object of its name beside it")]
    NoCode,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum DecidedBy {
    /// Its rule.
    #[display("its rule decides")]
    Rule,
    /// Its name.
    #[display("its name decides")]
    Name,
}

/// What of a dynamic section cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum DynamicPart {
    /// The libraries that the file needs.
    #[display("needed libraries")]
    NeededLibraries,
    /// Where it looks for them.
    #[display("search path")]
    SearchPath,
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
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum IgnoredClaim {
    /// A version of its own.
    #[display("its `Version` is not used: all packages of a set have one version")]
    Version,
    /// Scripts that the list does not have.
    #[display("`Postinstall` asks for scripts that are not in the list; the package has none")]
    Postinstall,
    /// Artifacts outside of `Artifactory`.
    #[display("`Artifact` and `Components` outside of `Artifactory` are not used")]
    OutsideArtifactory,
    /// To be for every processor.
    #[display("is to be for every processor, but has files for one; the package is for that one")]
    EveryProcessor,
    /// A module that the artifact does not have.
    #[display(
        "takes {module} of the artifact {artifact} ({}), which does not have it",
        few(components, ComponentKind::ALL.len())
    )]
    AbsentModule { module: String, artifact: String, components: Vec<String> },
    /// To be whole, although a package for developers has device code.
    #[display(
        "is a development package and is not split, but has device code, which goes into kernel \
         packages beside it"
    )]
    WholeDevelopment,
}

/// The package that apt takes of two with one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameWinner {
    /// The package of the set, which has the higher version.
    Set,
    /// The package of the distribution.
    Distribution,
    /// Either, as their versions are the same.
    Either,
}

impl NameWinner {
    /// Says it, with what to do, of the package of the set, which has `version`.
    pub fn told(self, version: &str) -> String {
        match self {
            Self::Set => format!(
                "apt takes the higher version, that of the set ({version}), also in place of the \
                 distribution's where that is installed; with another name (`selectors`, `scheme`) \
                 both can be there"
            ),
            Self::Distribution => format!(
                "apt takes the higher version, and that of the set ({version}) is not installed; \
                 give the package another name (`selectors`, `scheme`), or set `epoch`"
            ),
            Self::Either => "the set has the same version, and apt takes either; give the package \
                             another name (`selectors`, `scheme`)"
                .to_owned(),
        }
    }
}

/// Why a licence text is not quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum NotQuoted {
    /// It is too long.
    #[display("it is longer than 256 KiB")]
    TooLong,
    /// It is no UTF-8.
    #[display("it is not UTF-8")]
    NotUtf8,
}

/// How a version is not newer than in the earlier set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum NotNewer {
    /// A package takes paths of another, which is not older.
    TakesPaths { package: PackageName, from: EarlierPackage },
    /// These packages were newer there.
    Packages { format: Format, newer: Vec<EarlierPackage> },
}

impl NotNewer {
    /// The package, or else the version of all.
    pub fn subject<'a>(&'a self, version: &'a str) -> &'a str {
        match self {
            Self::TakesPaths { package, .. } => package.as_str(),
            Self::Packages { .. } => version,
        }
    }

    /// Says it of the packages with `version`.
    pub fn told(&self, version: &str) -> String {
        match self {
            Self::TakesPaths { from: EarlierPackage { package, version: earlier }, .. } => format!(
                "takes paths of {package} {earlier}, which is not older than {version}, so \
                 the relations that allow this do not apply to it"
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

/// A code file of several archs, by its name.
pub(super) fn code_file(file: &InputFile) -> &'static str {
    if file.path.name().ends_with(".kpack") { "a kernel archive" } else { "an offload bundle" }
}

/// Archs that a file is for; none is all.
pub(super) fn archs(archs: &[BaseArch]) -> String {
    if archs.is_empty() { "all archs".to_owned() } else { few(archs, 5) }
}
