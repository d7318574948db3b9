//! The table of checks, and the types of the fields of problems.

use std::fmt;

use derive_more::Display;
use rockpack_archive::rpm::MissingDigest;
use rockpack_archive::wheel::ListingFault;
use rockpack_core::content::Sha256Digest;
use rockpack_core::error::printable;
use rockpack_package::receipt::{DifferentParts, FILE_NAME, PlanBreach, SetPart, file_name};
use rockpack_report::words::few;
use rockpack_report::{Soname, without_digest};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// Declares the checks from rows of `Variant = "V000" "name" { field: Type, … } about [subject] [message];`. Subject
/// and message are arguments of `format!`, with the fields of the row in scope; they default to the first and the
/// second field.
macro_rules! checks {
    ($(
        $(#[doc = $doc:literal])*
        $variant:ident = $id:literal $name:literal
            { $($field:ident: $type:ty),* $(,)? } $($(about [$($subject:tt)*])? [$($message:tt)*])?;
    )*) => {
        /// The stable code of a failed check. Codes are never reused or renumbered.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Display)]
        pub enum Check {
            $($(#[doc = $doc])* #[display("{} {}", $id, $name)] $variant,)*
        }

        impl Check {
            /// All codes, in order.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The number, e.g. `V012`.
            pub fn id(self) -> &'static str {
                match self { $(Self::$variant => $id,)* }
            }

            /// The name, e.g. `marker-unresolved`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }

        /// One failed check. Problems have no severity: each fails the run, or is tolerated without `--strict`.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Problem {
            $($(#[doc = $doc])* $variant { $($field: $type),* },)*
        }

        impl Problem {
            pub fn code(&self) -> Check {
                match self { $(Self::$variant { .. } => Check::$variant,)* }
            }

            /// The path, arch or package that the problem is about.
            #[allow(unused_variables, reason = "a subject contains some of the fields")]
            pub fn subject(&self) -> String {
                match self {
                    $(Self::$variant { $($field),* } => {
                        text!(subject $($field)* $($([$($subject)*])?)?)
                    })*
                }
            }

            /// One sentence without subject and full stop: the observation and its consequence.
            #[allow(unused_variables, reason = "a message omits what the subject contains")]
            pub fn message(&self) -> String {
                match self {
                    $(Self::$variant { $($field),* } => {
                        text!(message $($field)* $([$($message)*])?)
                    })*
                }
            }

            fn fields(&self) -> Vec<(&'static str, Value)> {
                match self {
                    $(Self::$variant { $($field),* } => {
                        vec![$((stringify!($field), json!($field))),*]
                    })*
                }
            }
        }

        /// One object with `code`, `name`, `subject` and `message`, then the fields.
        impl Serialize for Problem {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let text = [
                    ("code", self.code().id().into()),
                    ("name", self.code().name().into()),
                    ("subject", self.subject().into()),
                    ("message", self.message().into()),
                ];
                serializer.collect_map(text.into_iter().chain(self.fields()))
            }
        }

        impl fmt::Display for Problem {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let (subject, message) = (self.subject(), self.message());
                write!(f, "{}: {}: {}", self.code(), printable(&subject), printable(&message))
            }
        }
    };
}

macro_rules! text {
    (subject $one:ident $($other:ident)*) => { $one.to_string() };
    (message $one:ident $other:ident) => { $other.to_string() };
    ($of:ident $($field:ident)* [$($text:tt)*]) => { format!($($text)*) };
}

checks! {
    Unreadable = "V001" "unreadable" { place: ProblemPlace, reason: String };
    ReceiptMismatch = "V002" "receipt-mismatch"
        { file: String, size: u64, sha256: Sha256Digest, stated_size: u64, stated_sha256: String }
        ["its size or SHA-256 differs from the receipt"];
    ReceiptIncomplete = "V003" "receipt-incomplete" { package: String, missing: ReceiptGap };
    DigestMismatch = "V004" "digest-mismatch" { file: PackagePath, reason: &'static str };
    CodeObjectLost = "V010" "code-object-lost"
        { path: String, target: String, sha256: String, loss: CodeLoss }
        about ["{path} [{target}]"] ["{loss} ({sha256})"];
    CodeObjectForeign = "V011" "code-object-foreign"
        { file: PackagePath, position: CodePosition, sha256: Sha256Digest, unknown_to: &'static str }
        ["{position}is device code that is not in the {unknown_to} ({sha256})"];
    /// `place` is a binary with its shard and wrapper, or an archive.
    CodeObjectMisplaced = "V012" "code-object-misplaced" { place: String, reason: String };
    FileLost = "V013" "file-lost" { path: String, loss: FileLoss };
    DeviceCodeInHost = "V020" "device-code-in-host-package" { file: PackagePath, reason: String };
    HostCodeInKernels = "V021" "host-code-in-kernel-package" { file: PackagePath }
        ["a kernel package installs x86-64 code"];
    ForeignArch = "V022" "foreign-arch" { place: ProblemPlace, reason: String };
    BadArchive = "V023" "bad-archive" { file: PackagePath, reason: String };
    DatabaseUnpaired = "V024" "database-unpaired" { file: PackagePath, fault: SetFault };
    BadDatabase = "V025" "bad-database" { file: PackagePath, reason: String };
    MarkerUnresolved = "V030" "marker-unresolved" { file: PackagePath, patterns: Vec<String> }
        ["its marker leads to {}, where there is no kernel archive", few(patterns, 5)];
    RowMissing = "V031" "row-missing" { file: PackagePath, key: String, fault: SetFault }
        ["{key}: {fault}"];
    BadHostBinary = "V032" "bad-host-binary" { file: PackagePath, reason: String };
    BadManifest = "V033" "bad-manifest" { file: PackagePath, fault: SetFault };
    HostMissing = "V034" "host-binary-missing" { file: PackagePath, binaries: Vec<String> }
        ["has code for {}, which is missing or does not find it", few(binaries, 5)];
    /// Also if one package has the path twice, the path is below a file or link, or two stage prefixes of one
    /// artifact differ there.
    PathOwnedTwice = "V040" "path-owned-twice" { path: String, reason: String };
    PathTooLong = "V041" "path-too-long" { file: PackagePath, reason: String };
    /// Also if a kernel package does not depend on a package of exactly its own version, or if clients do not find a
    /// required path.
    DependencyMissing = "V050" "dependency-missing" { package: String, reason: String };
    BadArtifact = "V060" "bad-artifact" { file: String, reason: String };
    SetConflict = "V061" "set-conflict" { package: String, exclusion: String, other: String }
        ["{exclusion}, which matches {other} of the same set"];
    LibraryMissing = "V063" "library-missing"
        { package: String, path: String, library: Soname, reason: String }
        ["{path} needs {library}, {reason}"];
    /// Two files have the same format, name, version and architecture.
    PackageTwice = "V065" "package-twice" { package: String, identity: NamedVersion, other: String }
        ["is {identity}, and so is {other}"];
    BadIndex = "V070" "bad-index" { file: String, reason: String };
    /// An index is missing, or differs from the entry in `Release` or `repomd.xml`.
    IndexMismatch = "V071" "index-mismatch" { file: String, reason: String };
    PackageMissing = "V072" "package-missing" { file: String } ["is in an index, but the file is missing"];
    PackageMismatch = "V073" "package-differs-from-index" { file: String, reason: String };
    /// A signature of a repository is missing, or does not verify against the given keys.
    BadSignature = "V074" "bad-signature" { file: String, reason: String };
    ReleaseExpired = "V075" "release-expired" { file: String, until: String }
        ["was valid until {until}"];
    OrphanFile = "V076" "orphan-file" { file: String } ["is not in any index"];
    /// The repository has no suitable version of a dependency, or clients do not find a required path.
    DependencyOpen = "V077" "dependency-open" { file: String, reason: String };
    /// An index describes a package for another architecture, twice, or not in all lists. `file` is an index, or the
    /// package that it describes.
    IndexInconsistent = "V078" "index-inconsistent" { file: String, reason: String };
    RepositoryPath = "V079" "repository-path-owned-twice" { path: String, reason: String };
    PartMissing = "V080" "part-missing" { part: SetPart } about ["part {part}"] ["is missing"];
    PartsDiffer = "V081" "parts-differ" { difference: DifferentParts }
        about ["parts of a set"] ["{difference}"];
    PartMismatch = "V082" "package-in-wrong-part" { package: String, breach: PlanBreach };
    PartMisnamed = "V083" "receipt-of-part-misnamed" { part: SetPart } about ["{FILE_NAME}"]
        ["is the receipt of part {part} but has the name for a whole set; rename it to {}", file_name(Some(*part))];
    PublicationInFuture = "V084" "publication-in-future" { file: String, date: String }
        ["is dated {date}, more than a day ahead of the clock: clients that check dates, such as apt, \
          refuse it until then; publish it again with --allow=any-date"];
    ForeignOwner = "V090" "foreign-owner" { file: PackagePath, owner: String }
        ["belongs to {owner}, but everything in a package must belong to root"];
    PackageOfOtherSet = "V092" "package-of-other-set"
        { package: String, identity: NamedVersion, other: String }
        ["is {identity}, and {other} is the same package in another version or for another \
          architecture: compare the packages of one set only"];
    WheelRecord = "V093" "wheel-record-differs" { file: PackagePath, fault: ListingFault };
    /// METADATA or WHEEL contradicts the file name of the wheel, or its host wheel.
    WheelHeaders = "V094" "wheel-headers-differ" { wheel: String, reason: String };
    /// `wheel` is the host wheel, or the device wheel at fault.
    WheelExtra = "V095" "wheel-extra-open" { wheel: String, fault: SetFault };
    WheelPin = "V096" "wheel-not-pinned" { wheel: String, reason: String };
    WheelHostMissing = "V097" "wheel-host-missing" { wheel: String, host: String }
        ["is a device wheel of {host}, but no host wheel of {host} was given: name it as well"];
    /// A member of a wheel cannot be installed, or runs in a device wheel.
    WheelMember = "V098" "bad-wheel-member" { file: PackagePath, reason: String };
    SetId = "V100" "setuid-or-setgid" { file: PackagePath, mode: u32 }
        ["has the setuid or setgid bit (mode {mode:o}): rockpack refuses artifacts with such files, so it \
          was added later"];
    FileForeign = "V101" "file-foreign" { file: PackagePath, kind: String }
        ["is a {kind} that no artifact has and no rule of the set makes"];
    /// rpm refuses the package, or may leave out files with code.
    BadHeader = "V103" "bad-rpm-header" { package: String, reason: String };
    /// A file for clients of a repository makes them accept other, outdated or unsigned packages.
    ClientFile = "V104" "client-file" { file: String, reason: String };
    /// Fails only with `--strict`.
    PackagesWithoutDigest = "V106" "rpm-without-digest"
        { file: String, packages: Vec<String>, missing: MissingDigest }
        ["{}", without_digest(packages, *missing)];
    /// Fails only with `--key`.
    ReceiptUnsigned = "V107" "receipt-unsigned" { receipt: String, reason: &'static str };
    /// None of the given keys signed the receipt.
    ReceiptSignature = "V108" "receipt-signature" { receipt: String, reason: String };
    /// The state that rockpack keeps of a repository is damaged, or does not match the indexes.
    StateMismatch = "V109" "state-mismatch" { file: String, reason: String };
    WheelMetadata = "V111" "wheel-metadata-foreign" { wheel: String, line: String }
        ["METADATA has `{line}`, which neither the fat wheel has nor a split adds; if the configuration \
          adds it, only a signed wheels.json and --key prove that"];
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum CodeLoss {
    #[display("the receipt has it in {installed}, which no package installs")]
    NotInstalled { installed: String },
    /// The file does not have it, or not under this key or entry.
    #[display(
        "the receipt has it in {installed}{}, which has other content there",
        key.as_ref().map_or(String::new(), |key| format!(" at {key}"))
    )]
    NotAtPlace { installed: String, key: Option<String> },
    #[display("wrapper {wrapper} of shard {shard} has it, but no archive or finding does")]
    NotInArchive { shard: String, wrapper: usize },
    #[display("shard {shard} has it, but no package or finding does")]
    NotInPackage { shard: String },
}

/// The position of a code object in a file. Its text starts a message.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum CodePosition {
    /// The file is the code object.
    #[display("")]
    File,
    #[display("{key} [{target}]: ")]
    Row { key: String, target: String },
    #[display("{id}: ")]
    Entry { id: String },
}

impl CodePosition {
    pub fn row(key: &str, target: &str) -> Self {
        Self::Row { key: key.to_owned(), target: target.to_owned() }
    }
}

/// Values of `unknown_to`: the sources that do not have a code object.
pub const ARTIFACTS: &str = "artifacts";
pub const RECEIPT: &str = "receipt";

/// The difference between a file of the artifacts and the packages.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum FileLoss {
    #[display("is in no package")]
    Absent,
    #[display("is in a package with other content")]
    OtherContent,
    #[display("a binary with device code is in no package as a host binary")]
    BinaryAbsent,
    #[display("a binary is in a package with other machine code or another number of wrappers")]
    OtherBinary,
    #[display(
        "a binary is in a package with bytes that removing the device code from that of {shard} does \
         not explain: {}",
        few(parts, 5)
    )]
    OtherBytes { shard: String, parts: Vec<String> },
    #[display("is in a package with mode {mode:o}; expected {wanted:o}")]
    OtherMode { mode: u32, wanted: u32 },
}

pub const OWNED_TWICE: &str = "is owned by two packages";

/// A path of a package, an artifact or an installed prefix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[display("{package}:{path}")]
pub struct PackagePath {
    /// The file name of the package, the shard and name of the artifact, or the folder.
    pub package: String,
    /// Absolute, as installed.
    pub path: String,
}

impl PackagePath {
    pub fn new(package: impl Into<String>, path: impl Into<String>) -> Self {
        Self { package: package.into(), path: path.into() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemPlace {
    /// The file name of a package.
    Package(String),
    File(PackagePath),
    /// A path on disk.
    Disk(String),
}

/// What is missing: a package that the receipt lists, or its record in the receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiptGap {
    #[display("the receipt names it, but it is missing")]
    Package,
    #[display("the receipt does not name it")]
    Record,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[display("{reason}")]
pub struct SetFault {
    pub reason: String,
    /// Whether a package that was not given may solve the fault.
    pub may_be_elsewhere: bool,
}

impl SetFault {
    /// A fault that no other package can solve.
    pub fn wrong(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), may_be_elsewhere: false }
    }

    /// A fault that a missing package may solve.
    pub fn absent(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), may_be_elsewhere: true }
    }
}

/// The identity of a package for package managers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[display("{package} {version} for {arch}")]
pub struct NamedVersion {
    /// The package name, not the file name.
    pub package: String,
    pub version: String,
    /// In the spelling of the format.
    pub arch: String,
}

impl NamedVersion {
    pub fn new(package: &str, version: &str, arch: &str) -> Self {
        let [package, version, arch] = [package, version, arch].map(str::to_owned);
        Self { package, version, arch }
    }
}
