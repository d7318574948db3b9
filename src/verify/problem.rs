//! What verification has to say.

use crate::error::printable;
use crate::receipt::Receipt;
use serde::ser::{Serialize, SerializeStruct, Serializer};

macro_rules! problems {
    ($($(#[$doc:meta])* $variant:ident = $id:literal $name:literal;)*) => {
        /// The stable code of a failed check. Codes are never reused or renumbered.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Check { $($(#[$doc])* $variant,)* }

        impl Check {
            /// All checks, in order.
            pub const ALL: &[Check] = &[$(Check::$variant,)*];

            /// The number, e.g. `V020`.
            pub fn id(self) -> &'static str {
                match self { $(Check::$variant => $id,)* }
            }

            /// The name, e.g. `path-owned-twice`.
            pub fn name(self) -> &'static str {
                match self { $(Check::$variant => $name,)* }
            }
        }
    };
}

problems! {
    /// A file cannot be read as the package it claims to be.
    Unreadable = "V001" "unreadable";
    /// A package differs from what the receipt says of it.
    ReceiptMismatch = "V002" "receipt-mismatch";
    /// The receipt names a package that is not there, or the folder holds one it does not name.
    ReceiptIncomplete = "V003" "receipt-incomplete";
    /// A digest inside a package does not match its content.
    DigestMismatch = "V004" "digest-mismatch";
    /// A code object of the receipt or of the artifacts is in no archive and in no finding.
    CodeObjectLost = "V010" "code-object-lost";
    /// A package holds device code that no input holds, or that the receipt does not name.
    CodeObjectForeign = "V011" "code-object-foreign";
    /// A code object stands under another wrapper than in its binary.
    CodeObjectMisplaced = "V012" "code-object-misplaced";
    /// A file of the artifacts is in no package, or with other content.
    FileLost = "V013" "file-lost";
    /// A host package contains device code.
    DeviceCodeInHost = "V020" "device-code-in-host-package";
    /// A kernel package contains host code.
    HostCodeInKernels = "V021" "host-code-in-kernel-package";
    /// A kernel package contains device code of an arch that is not its own.
    ForeignArch = "V022" "foreign-arch";
    /// A kernel archive is damaged or its rows contradict its code objects.
    BadArchive = "V023" "bad-archive";
    /// An index or code object of a kernel database is without its partner.
    DatabaseUnpaired = "V024" "database-unpaired";
    /// A file of a kernel database cannot be read as what its name claims.
    BadDatabase = "V025" "bad-database";
    /// A transformed binary's marker leads to no archive that the set installs.
    MarkerUnresolved = "V030" "marker-unresolved";
    /// A device that a wrapper has code for finds no row, or a less specific code object.
    RowMissing = "V031" "row-missing";
    /// A transformed binary is inconsistent.
    BadHostBinary = "V032" "bad-host-binary";
    /// A kernel manifest is damaged, or does not list the archives of the set as they are.
    BadManifest = "V033" "bad-manifest";
    /// A path is owned by two packages that can be installed together, or stands in one twice, or
    /// lies below what is no folder.
    PathOwnedTwice = "V040" "path-owned-twice";
    /// A kernel package does not depend on exactly its host's version.
    DependencyMissing = "V050" "dependency-missing";
    /// Installing a kernel package brings the kernels of another group.
    OtherGroupNeeded = "V051" "other-group-needed";
    /// An artifact has no valid manifest, or cannot be read as an artifact.
    BadArtifact = "V060" "bad-artifact";
    /// A package excludes another of its set by Breaks, Conflicts or Obsoletes.
    SetConflict = "V061" "set-conflict";
    /// A program or library needs a library that no dependency of its package brings.
    LibraryMissing = "V063" "library-missing";
    /// An SPDX document does not describe the packages beside it as they are.
    DocumentMismatch = "V064" "document-mismatch";
    /// Two files are one package by format, name, version and architecture.
    PackageTwice = "V065" "package-twice";
    /// An index of a repository cannot be read.
    BadIndex = "V070" "bad-index";
    /// An index is not there, or not the one that `Release` or `repomd.xml` lists.
    IndexMismatch = "V071" "index-mismatch";
    /// An index names a package that is not there.
    PackageMissing = "V072" "package-missing";
    /// A package is not the one that an index describes: its size, digests or fields.
    PackageMismatch = "V073" "package-differs-from-index";
    /// A signature of a repository does not verify against the keys given, or is not there.
    BadSignature = "V074" "bad-signature";
    /// The time until which a suite is valid is over.
    ReleaseExpired = "V075" "release-expired";
    /// A file of a repository is named by no index.
    OrphanFile = "V076" "orphan-file";
    /// A package of a repository depends on one that the repository has in no fitting version.
    DependencyOpen = "V077" "dependency-open";
    /// An index describes a package for another architecture, or twice, or not in all lists.
    IndexInconsistent = "V078" "index-inconsistent";
    /// A part of a set is not there.
    PartMissing = "V080" "part-missing";
    /// Parts do not belong to one set.
    PartsDiffer = "V081" "parts-differ";
    /// A package is not in exactly the part that it is planned for.
    PartMismatch = "V082" "package-in-wrong-part";
    /// The receipt of a part has the name of a whole set's.
    PartMisnamed = "V083" "receipt-of-part-misnamed";
}

/// One failed check. In JSON: `code`, `name`, `subject`, `message`, as findings of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Which check failed.
    pub check: Check,
    /// What it is about: a package, a path, a code object.
    pub subject: String,
    /// What was found, as one sentence without a full stop.
    pub message: String,
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut problem = serializer.serialize_struct("Problem", 4)?;
        problem.serialize_field("code", self.check.id())?;
        problem.serialize_field("name", self.check.name())?;
        problem.serialize_field("subject", &self.subject)?;
        problem.serialize_field("message", &self.message)?;
        problem.end()
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (id, name) = (self.check.id(), self.check.name());
        let (subject, message) = (printable(&self.subject), printable(&self.message));
        write!(f, "{id} {name}: {subject}: {message}")
    }
}

/// Problems while they are collected.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    /// Adds a failed check of `subject`.
    pub(super) fn add(
        &mut self,
        check: Check,
        subject: impl Into<String>,
        message: impl Into<String>,
    ) {
        let (subject, message) = (subject.into(), message.into());
        self.0.push(Problem { check, subject, message });
    }

    /// Adds all of `other`.
    pub(super) fn extend(&mut self, other: Problems) {
        self.0.extend(other.0);
    }

    /// Each once, in order.
    pub(super) fn finish(mut self) -> Vec<Problem> {
        self.0.sort();
        self.0.dedup();
        self.0
    }
}

/// The outcome of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    /// Packages read.
    pub packages: usize,
    /// What parts of a set are together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joined: Option<Joined>,
    /// Artifacts read.
    #[serde(skip_serializing_if = "is_zero")]
    pub artifacts: usize,
    /// Installed prefixes read.
    #[serde(skip_serializing_if = "is_zero")]
    pub prefixes: usize,
    /// Repositories read.
    #[serde(skip_serializing_if = "is_zero")]
    pub repositories: usize,
    /// Packages that are in the indexes of repositories.
    #[serde(skip_serializing_if = "is_zero")]
    pub indexed: usize,
    /// Dependencies of those on packages that are elsewhere.
    #[serde(skip_serializing_if = "is_zero")]
    pub elsewhere: usize,
    /// Signatures that verified against a given key.
    #[serde(skip_serializing_if = "is_zero")]
    pub signatures: usize,
    /// Files read by themselves.
    #[serde(skip_serializing_if = "is_zero")]
    pub single_files: usize,
    /// Files read, counted per package, artifact or prefix.
    pub files: u64,
    /// Rows of kernel archives read.
    pub archive_rows: u64,
    /// Code objects decoded and compared.
    pub code_objects: u64,
    /// Code objects of the artifacts that were looked for; none without `--against`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_code_objects: Option<u64>,
    /// Paths of the artifacts that are in no package on purpose, as the receipts say.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// Failed checks, in the order of check and subject.
    pub problems: Vec<Problem>,
}

/// Parts of a set that were joined.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Joined {
    /// How many.
    pub parts: usize,
    /// SHA-256 of the receipt that one build of the whole set writes, in hex.
    pub receipt_sha256: String,
    /// That receipt.
    #[serde(skip)]
    pub receipt: Receipt,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_sorted() {
        let ids: Vec<_> = Check::ALL.iter().map(|check| check.id()).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
        let names: std::collections::BTreeSet<_> = Check::ALL.iter().map(|c| c.name()).collect();
        assert_eq!(names.len(), ids.len());
    }
}
