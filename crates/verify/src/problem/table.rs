//! The table of checks, and the places, losses and faults that their problems name.

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
/// and message are the arguments of `format!`, with the fields of the row in scope. Without them, they are the first
/// and the second field.
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

        /// One failed check. It fails the run, or is tolerated, and so has no severity.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Problem {
            $($(#[doc = $doc])* $variant { $($field: $type),* },)*
        }

        impl Problem {
            /// The stable code.
            pub fn code(&self) -> Check {
                match self { $(Self::$variant { .. } => Check::$variant,)* }
            }

            /// The thing that it is about: a path, an arch, a package.
            #[allow(unused_variables, reason = "a subject names some of the fields")]
            pub fn subject(&self) -> String {
                match self {
                    $(Self::$variant { $($field),* } => {
                        text!(subject $($field)* $($([$($subject)*])?)?)
                    })*
                }
            }

            /// The observation and its consequence, as one sentence without a full stop.
            #[allow(unused_variables, reason = "a message leaves out what the subject names")]
            pub fn message(&self) -> String {
                match self {
                    $(Self::$variant { $($field),* } => {
                        text!(message $($field)* $([$($message)*])?)
                    })*
                }
            }

            /// The fields under their own names, in the order of the row.
            fn fields(&self) -> Vec<(&'static str, Value)> {
                match self {
                    $(Self::$variant { $($field),* } => {
                        vec![$((stringify!($field), json!($field))),*]
                    })*
                }
            }
        }

        /// One object: `code`, `name`, `subject` and `message`, then the fields.
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

/// The subject or the message of a row.
macro_rules! text {
    (subject $one:ident $($other:ident)*) => { $one.to_string() };
    (message $one:ident $other:ident) => { $other.to_string() };
    ($of:ident $($field:ident)* [$($text:tt)*]) => { format!($($text)*) };
}

checks! {
    /// A package, or a file of an artifact or prefix, cannot be read.
    Unreadable = "V001" "unreadable" { place: ProblemPlace, reason: String };
    /// A package, wheel or SPDX document is not the one of the receipt.
    ReceiptMismatch = "V002" "receipt-mismatch"
        { file: String, size: u64, sha256: Sha256Digest, stated_size: u64, stated_sha256: String }
        ["its size or SHA-256 is not the receipt's"];
    /// The receipt names a package that is not there, or the folder has a package or SPDX document that it does
    /// not name.
    ReceiptIncomplete = "V003" "receipt-incomplete" { package: String, lack: ReceiptLack };
    /// A digest inside a package does not match its content.
    DigestMismatch = "V004" "digest-mismatch" { file: PackagePath, reason: &'static str };
    /// A code object of the receipt or of the artifacts is not where it should be, and no finding names it.
    CodeObjectLost = "V010" "code-object-lost"
        { path: String, target: String, sha256: String, loss: CodeLoss }
        about ["{path} [{target}]"] ["{loss} ({sha256})"];
    /// A package holds device code that no input holds, or that the receipt does not name.
    CodeObjectForeign = "V011" "code-object-foreign"
        { file: PackagePath, position: CodePosition, sha256: Sha256Digest, unknown_to: &'static str }
        ["{position}is device code that is not in the {unknown_to} ({sha256})"];
    /// A code object stands under another wrapper than in its binary, or archives have different code under
    /// one key. The place is a binary with its shard and wrapper, or an archive.
    CodeObjectMisplaced = "V012" "code-object-misplaced" { place: String, reason: String };
    /// A file of the artifacts is in no package, or with other content or another mode.
    FileLost = "V013" "file-lost" { path: String, loss: FileLoss };
    /// A host package contains device code.
    DeviceCodeInHost = "V020" "device-code-in-host-package" { file: PackagePath, reason: String };
    /// A kernel package contains host code.
    HostCodeInKernels = "V021" "host-code-in-kernel-package" { file: PackagePath }
        ["a kernel package installs x86-64 code"];
    /// A kernel package contains device code of an arch that is not its own, or that another kernel package
    /// of the same host has.
    ForeignArch = "V022" "foreign-arch" { place: ProblemPlace, reason: String };
    /// A kernel archive is damaged or its rows contradict its code objects.
    BadArchive = "V023" "bad-archive" { file: PackagePath, reason: String };
    /// An index or code object of a kernel database is without its partner.
    DatabaseUnpaired = "V024" "database-unpaired" { file: PackagePath, fault: SetFault };
    /// A file of a kernel database cannot be read as what its name claims.
    BadDatabase = "V025" "bad-database" { file: PackagePath, reason: String };
    /// A transformed binary's marker leads to no archive that the set installs.
    MarkerUnresolved = "V030" "marker-unresolved" { file: PackagePath, patterns: Vec<String> }
        ["its marker leads to {}, and there is no kernel archive", few(patterns, 5)];
    /// A device that a wrapper has code for finds no row, or a less specific code object.
    RowMissing = "V031" "row-missing" { file: PackagePath, key: String, fault: SetFault }
        ["{key}: {fault}"];
    /// A transformed binary is inconsistent.
    BadHostBinary = "V032" "bad-host-binary" { file: PackagePath, reason: String };
    /// A kernel manifest is damaged, or does not list the archives of the set as they are.
    BadManifest = "V033" "bad-manifest" { file: PackagePath, fault: SetFault };
    /// In an installed prefix or beside device wheels, binaries or wrappers are missing that a kernel archive has code
    /// of, or they do not find it.
    HostMissing = "V034" "host-binary-missing" { file: PackagePath, binaries: Vec<String> }
        ["has code of {}, which is not there or does not find it", few(binaries, 5)];
    /// Two packages of one set own a path, one package has it twice, the path lies below a file
    /// or link, or two stage prefixes of one artifact differ there.
    PathOwnedTwice = "V040" "path-owned-twice" { path: String, reason: String };
    /// The package manager cannot unpack a name or path, because it is too long.
    PathTooLong = "V041" "path-too-long" { file: PackagePath, reason: String };
    /// A kernel package depends on no package of exactly its own version, a package depends on versions that
    /// the set does not have, or it requires a path that clients do not find.
    DependencyMissing = "V050" "dependency-missing" { package: String, reason: String };
    /// An artifact has no valid manifest, or cannot be read as an artifact.
    BadArtifact = "V060" "bad-artifact" { file: String, reason: String };
    /// A package excludes another of its set by Breaks, Conflicts or Obsoletes.
    SetConflict = "V061" "set-conflict" { package: String, exclusion: String, other: String }
        ["{exclusion}, which {other} of the same set is"];
    /// A program or library needs a library that no dependency brings, or that its set, wheel or prefix lacks.
    LibraryMissing = "V063" "library-missing"
        { package: String, path: String, library: Soname, reason: String }
        ["{path} needs {library}, {reason}"];
    /// Two files are one package by format, name, version and architecture.
    PackageTwice = "V065" "package-twice" { package: String, identity: NamedVersion, other: String }
        ["is {identity}, as {other} is"];
    /// An index of a repository cannot be read.
    BadIndex = "V070" "bad-index" { file: String, reason: String };
    /// An index is not there, or not the one that `Release` or `repomd.xml` lists.
    IndexMismatch = "V071" "index-mismatch" { file: String, reason: String };
    /// An index names a package that is not there.
    PackageMissing = "V072" "package-missing" { file: String } ["is in an index, but not there"];
    /// A package is not the one that an index describes: its size, digests or fields.
    PackageMismatch = "V073" "package-differs-from-index" { file: String, reason: String };
    /// A signature of a repository does not verify against the keys given, or is not there.
    BadSignature = "V074" "bad-signature" { file: String, reason: String };
    /// The time until which a suite is valid is over.
    ReleaseExpired = "V075" "release-expired" { file: String, until: String }
        ["was valid until {until}"];
    /// A file of a repository is named by no index.
    OrphanFile = "V076" "orphan-file" { file: String } ["is named by no index"];
    /// A package of a repository depends on one that the repository has in no fitting version, or requires a
    /// path that clients do not find.
    DependencyOpen = "V077" "dependency-open" { file: String, reason: String };
    /// An index describes a package for another architecture, or twice, or not in all lists. The file
    /// is an index, or the package that is described.
    IndexInconsistent = "V078" "index-inconsistent" { file: String, reason: String };
    /// Two packages of a repository own the same path and cannot both be installed.
    RepositoryPath = "V079" "repository-path-owned-twice" { path: String, reason: String };
    /// A part of a set is not there.
    PartMissing = "V080" "part-missing" { part: SetPart } about ["part {part}"] ["is not there"];
    /// Parts do not belong to one set.
    PartsDiffer = "V081" "parts-differ" { difference: DifferentParts }
        about ["parts of a set"] ["{difference}"];
    /// A package is not in exactly the part that it is planned for.
    PartMismatch = "V082" "package-in-wrong-part" { package: String, breach: PlanBreach };
    /// The receipt of a part has the name of a whole set's.
    PartMisnamed = "V083" "receipt-of-part-misnamed" { part: SetPart } about ["{FILE_NAME}"]
        ["has the name of a whole set's receipt; that of part {part} is {}", file_name(Some(*part))];
    /// A suite or the rpm repository is dated in the future.
    PublicationInFuture = "V084" "publication-in-future" { file: String, date: String }
        ["is dated {date}, more than a day ahead of the clock: clients that look at dates, as apt \
          does, refuse it until then; publish it again with --allow-any-date"];
    /// A path of a package belongs to somebody else than root.
    ForeignOwner = "V090" "foreign-owner" { file: PackagePath, owner: String }
        ["belongs to {owner}, and everything in a package to root"];
    /// A package is there in two versions, or for two architectures, beside the artifacts of one set.
    PackageOfOtherSet = "V092" "package-of-other-set"
        { package: String, identity: NamedVersion, other: String }
        ["is {identity}, and {other} is the same package in another version or for another \
          architecture: artifacts are those of one set"];
    /// RECORD of a wheel does not list its members, or what is installed of it, as they are.
    WheelRecord = "V093" "wheel-record-differs" { file: PackagePath, fault: ListingFault };
    /// METADATA or WHEEL says something else than the file name of the wheel, or than its host.
    WheelHeaders = "V094" "wheel-headers-differ" { wheel: String, reason: String };
    /// An extra is without its device wheel, or a device wheel without its extra. The wheel is the host,
    /// or the device wheel that lacks something.
    WheelExtra = "V095" "wheel-extra-open" { wheel: String, fault: SetFault };
    /// A host and a device wheel do not require each other in exactly this version.
    WheelPin = "V096" "wheel-not-pinned" { wheel: String, reason: String };
    /// A device wheel is there without the host that it belongs to.
    WheelHostMissing = "V097" "wheel-host-missing" { wheel: String, host: String }
        ["is a device wheel of {host}, of which no host wheel is there: name it, too"];
    /// A member of a wheel cannot be installed, or has device code that is not looked into.
    WheelMember = "V098" "bad-wheel-member" { file: PackagePath, reason: String };
    /// A file or folder runs with the rights of its owner or group, which no artifact may have.
    SetId = "V100" "setuid-or-setgid" { file: PackagePath, mode: u32 }
        ["has the setuid or setgid bit (mode {mode:o}): artifacts with such files are refused, so \
          somebody else put it there"];
    /// A package holds what no artifact has and no rule makes.
    FileForeign = "V101" "file-foreign" { file: PackagePath, kind: String }
        ["is a {kind} that no artifact has and no rule of the set makes"];
    /// The header of an `.rpm` has rpm refuse the package, or leave files with code out.
    BadHeader = "V103" "bad-rpm-header" { package: String, reason: String };
    /// A file for clients of a repository has them take other packages, or packages that nobody signed.
    ClientFile = "V104" "client-file" { file: String, reason: String };
    /// Packages of a repository state no digest of their header or payload that rpm 6 takes. This fails
    /// under `--strict` only.
    PackagesWithoutDigest = "V106" "rpm-without-digest"
        { file: String, packages: Vec<String>, missing: MissingDigest }
        ["{}", without_digest(packages, *missing)];
    /// Packages or wheels have no receipt, or nobody signed it. This fails with `--key` only.
    ReceiptUnsigned = "V107" "receipt-unsigned" { receipt: String, reason: &'static str };
    /// A receipt is signed by none of the keys given.
    ReceiptSignature = "V108" "receipt-signature" { receipt: String, reason: String };
    /// The state that rockpack keeps of a repository is damaged, or is not about the indexes that are there.
    StateMismatch = "V109" "state-mismatch" { file: String, reason: String };
    /// METADATA of a split wheel has a line that neither the fat wheel nor the split nor a signed receipt explains.
    WheelMetadata = "V111" "wheel-metadata-foreign" { wheel: String, line: String }
        ["METADATA has `{line}`, which neither the fat wheel has nor a split adds; that the \
          configuration adds it is proved only by a signed wheels.json and --key"];
}

/// The place where a code object is missing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum CodeLoss {
    #[display("the receipt has it in {installed}, which no package installs")]
    NotInstalled { installed: String },
    /// The file does not have it, or not under this key or entry.
    #[display(
        "the receipt has it in {installed}{}, which has something else there",
        key.as_ref().map_or(String::new(), |key| format!(" at {key}"))
    )]
    NotAtPlace { installed: String, key: Option<String> },
    #[display("wrapper {wrapper} of shard {shard} has it, and no archive or finding")]
    OfWrapper { shard: String, wrapper: usize },
    #[display("shard {shard} has it, and no package or finding")]
    OfFile { shard: String },
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

/// The sources that should have a code object, as messages and JSON name them.
pub const ARTIFACTS: &str = "artifacts";

/// The receipt, as [`ARTIFACTS`].
pub const RECEIPT: &str = "receipt";

/// How a file of the artifacts is lost.
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
    /// A package has a binary with bytes that neither its build nor taking out device code explains.
    #[display(
        "a binary is in a package with bytes that taking the device code out of that of {shard} does \
         not explain: {}",
        few(parts, 5)
    )]
    OtherBytes { shard: String, parts: Vec<String> },
    /// A package has it with another mode than packages have.
    #[display("is in a package with mode {mode:o}, and has to have {wanted:o}")]
    OtherMode { mode: u32, wanted: u32 },
}

/// How two packages share a path that is no directory.
pub const OWNED_TWICE: &str = "is owned by two packages";

/// A path of a package, an artifact or an installed prefix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[display("{package}:{path}")]
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

/// The place of a problem.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemPlace {
    /// The package of this file name.
    Package(String),
    /// This path of a package, artifact or prefix.
    File(PackagePath),
    /// The file at this path on the disk.
    Disk(String),
}

/// The missing one of a package and its record in the receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiptLack {
    #[display("the receipt names it, and it is not there")]
    Package,
    #[display("the receipt does not name it")]
    Record,
}

/// A fault of a set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[display("{reason}")]
pub struct SetFault {
    pub reason: String,
    /// Whether a package that is not there may have what is missing.
    pub may_be_elsewhere: bool,
}

impl SetFault {
    /// A fault whatever other packages have.
    pub fn wrong(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), may_be_elsewhere: false }
    }

    /// Something that no package has that is there.
    pub fn absent(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), may_be_elsewhere: true }
    }
}

/// The identity of a package for those who install it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[display("{package} {version} for {arch}")]
pub struct NamedVersion {
    /// The package name, not the file name.
    pub package: String,
    pub version: String,
    /// The architecture, as the format calls it.
    pub arch: String,
}

impl NamedVersion {
    /// The identity of this version of `package`.
    pub fn new(package: &str, version: &str, arch: &str) -> Self {
        let [package, version, arch] = [package, version, arch].map(str::to_owned);
        Self { package, version, arch }
    }
}
