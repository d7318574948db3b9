//! What verification has to say.

use serde::Serialize;

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
    /// An archive holds a code object that no input holds.
    CodeObjectForeign = "V011" "code-object-foreign";
    /// A code object stands under another wrapper or target than in its binary.
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
    /// A transformed binary's marker leads to no archive that the set installs.
    MarkerUnresolved = "V030" "marker-unresolved";
    /// An archive lacks a row for a wrapper that has code for its arch.
    RowMissing = "V031" "row-missing";
    /// A transformed binary is inconsistent.
    BadHostBinary = "V032" "bad-host-binary";
    /// A path is owned by two packages that can be installed together.
    PathOwnedTwice = "V040" "path-owned-twice";
    /// A kernel package does not depend on exactly its host's version.
    DependencyMissing = "V050" "dependency-missing";
}

impl Serialize for Check {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

/// One failed check.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Problem {
    /// Which check failed.
    pub check: Check,
    /// What it is about: a package, a path, a code object.
    pub subject: String,
    /// What was found, as one sentence without a full stop.
    pub message: String,
}

impl Problem {
    /// A failed check of `subject`.
    pub fn new(check: Check, subject: impl Into<String>, message: impl Into<String>) -> Self {
        Self { check, subject: subject.into(), message: message.into() }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (id, name) = (self.check.id(), self.check.name());
        write!(f, "{id} {name}: {}: {}", self.subject, self.message)
    }
}

/// The outcome of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Packages read.
    pub packages: usize,
    /// Installed files read, counted per package.
    pub files: u64,
    /// Rows of kernel archives read.
    pub archive_rows: u64,
    /// Code objects decoded and compared.
    pub code_objects: u64,
    /// Code objects of the artifacts that were looked for.
    pub input_code_objects: u64,
    /// Failed checks, in the order of check and subject.
    pub problems: Vec<Problem>,
}
