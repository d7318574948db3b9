//! What is wrong with kernel archives, binaries, databases and manifests, and the words for it.

use std::fmt;

use serde::Serialize;

use crate::gfx::{BaseArch, Target};
use crate::report::words::few;

/// Device code in a host package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum HostedCode {
    /// A code object by itself.
    CodeObject,
    /// A bundle by itself.
    Bundle,
    /// A kernel archive.
    Archive,
    /// An index for one arch.
    Index { arch: BaseArch },
    /// What claims to be device code and cannot be read.
    Unreadable { reason: String },
    /// An offload bundle in a binary.
    BundleInBinary { offset: u64 },
    /// A `.hip_fatbin` of a binary that is not zero.
    Section,
}

impl fmt::Display for HostedCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CodeObject => f.write_str("is a code object, and no finding keeps it here"),
            Self::Bundle => f.write_str("is a bundle, and no finding keeps it here"),
            Self::Archive => f.write_str("is a kernel archive in a host package"),
            Self::Index { arch } => write!(f, "is an index for {arch} alone"),
            Self::Unreadable { reason } => f.write_str(reason),
            Self::BundleInBinary { offset } => {
                write!(f, "still has an offload bundle at offset {offset:#x}")
            }
            Self::Section => f.write_str("still has a .hip_fatbin with content"),
        }
    }
}

/// What is wrong with a kernel archive.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum ArchiveFault {
    /// It cannot be read.
    Unreadable { reason: String },
    /// One of its code objects cannot be read.
    CodeObject { ordinal: u32, reason: String },
    /// A row names what does not run on its target.
    Row { key: String, target: String, fault: RowFault },
    /// There are rows for a target that it does not list.
    NotListed { target: String },
    /// It lists a target without rows.
    WithoutRow { target: String },
    /// It lists a target of another arch than loaders look for by its name.
    OtherArch { arch: BaseArch, target: Target },
    /// It lists so many features.
    Features { count: usize },
}

impl fmt::Display for ArchiveFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { reason } => f.write_str(reason),
            Self::CodeObject { ordinal, reason } => {
                write!(f, "code object {ordinal} cannot be read: {reason}")
            }
            Self::Row { key, target, fault } => write!(f, "{key} [{target}]: {fault}"),
            Self::NotListed { target } => {
                write!(f, "has rows for {target}, which it does not list")
            }
            Self::WithoutRow { target } => write!(f, "lists {target}, for which it has no row"),
            Self::OtherArch { arch, target } => {
                write!(f, "is where loaders look for {arch}, and lists {target}")
            }
            Self::Features { count } => {
                write!(f, "lists {count} features, more than there are")
            }
        }
    }
}

/// Why what stands at a target does not belong there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum RowFault {
    /// The target is none.
    NoTarget { reason: String },
    /// It is no code object.
    NoCodeObject,
    /// It is compiled for another target.
    CompiledFor(Target),
}

impl fmt::Display for RowFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTarget { reason } => f.write_str(reason),
            Self::NoCodeObject => f.write_str("what stands there is no code object"),
            Self::CompiledFor(own) => write!(f, "its code object is for {own}"),
        }
    }
}

/// Which partner of a database file does not come with it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum PartnerLack {
    /// The one of its name; for these archs, if there is one for others.
    Absent { wanted: DatabasePartner, archs: Vec<BaseArch> },
    /// The one of its name, which is in a package that it does not need.
    Elsewhere { wanted: DatabasePartner, package: String },
    /// One that it refers to.
    ReferenceAbsent { reference: String },
    /// One that it refers to, which is in a package that it does not need.
    ReferenceElsewhere { reference: String, package: String },
}

impl fmt::Display for PartnerLack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent { wanted, archs } if archs.is_empty() => {
                write!(f, "has no {wanted} of its name beside it")
            }
            Self::Absent { wanted, archs } => {
                write!(f, "has no {wanted} of its name for {} beside it", few(archs, 5))
            }
            Self::Elsewhere { wanted, package } => {
                write!(f, "its {wanted} is in {package}, which it does not need")
            }
            Self::ReferenceAbsent { reference } => {
                write!(f, "refers to {reference}, which is not beside it")
            }
            Self::ReferenceElsewhere { reference, package } => {
                write!(f, "refers to {reference}, which is in {package}, which it does not need")
            }
        }
    }
}

/// What a database file needs beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DatabasePartner {
    /// Code needs an index.
    Index,
    /// An index needs code.
    CodeObject,
}

impl fmt::Display for DatabasePartner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Index => "index",
            Self::CodeObject => "code object",
        })
    }
}

/// Who finds no code under a key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum RowLack {
    /// Everybody: no archive has a row.
    Everywhere,
    /// A device for which there is code, and no target that it looks for is listed.
    NotListed { device: Target },
    /// A device, because what it looks for is listed and has no row.
    WithoutRow { device: Target, listed: Target },
    /// A device finds code, and there is more specific code.
    LessSpecific { device: Target, listed: Target },
}

impl RowLack {
    pub(super) fn message(&self, key: &str) -> String {
        match self {
            Self::Everywhere => {
                format!("no archive has a row for {key}, and no finding says why")
            }
            Self::NotListed { device } => format!(
                "{key}: {device} finds nothing that is listed, although there is code for it"
            ),
            Self::WithoutRow { device, listed } => {
                format!("{key}: {device} looks for {listed}, for which there is no row")
            }
            Self::LessSpecific { device, listed } => format!(
                "{key}: {device} finds the code of {listed}, and there is more specific code"
            ),
        }
    }
}

/// What is inconsistent in a host binary.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum HostFault {
    /// It cannot be read.
    Unreadable { reason: String },
    /// Its marker cannot be read.
    Marker { reason: String },
    /// Nothing points to its marker.
    MarkerAlone,
    /// Some of its wrappers are transformed.
    Partly { transformed: usize, wrappers: usize },
    /// One of its wrappers is not as runtimes expect.
    Wrapper { wrapper: usize, fault: WrapperFault },
}

impl fmt::Display for HostFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { reason } | Self::Marker { reason } => f.write_str(reason),
            Self::MarkerAlone => f.write_str("has a marker, but no wrapper that points to it"),
            Self::Partly { transformed, wrappers } => {
                write!(f, "{transformed} of {wrappers} wrappers are transformed")
            }
            Self::Wrapper { wrapper, fault } => write!(f, "wrapper {wrapper} {fault}"),
        }
    }
}

/// In what a wrapper is not as runtimes expect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum WrapperFault {
    /// In its version.
    Version { version: u32 },
    /// In where it points.
    Pointer { address: u64 },
    /// Nothing moves its pointer with the file.
    Unmoved,
    /// In its number.
    Index { index: u32 },
}

impl fmt::Display for WrapperFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { version } => {
                write!(f, "has version {version}, where runtimes expect 1")
            }
            Self::Pointer { address } => write!(f, "points to {address:#x}, not to the marker"),
            Self::Unmoved => f.write_str("has a pointer that no relocation moves with the file"),
            Self::Index { index } => write!(f, "has the index {index}"),
        }
    }
}

/// What is wrong with a kernel manifest, or with an archive that ought to be in one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum ManifestFault {
    /// The manifest cannot be read.
    Unreadable { reason: String },
    /// It does not lie where it says.
    Misplaced { component: String, prefix: String },
    /// An archive is not there, while database code of its arch is, at `path`.
    ArchGone { archive: String, arch: String, path: String },
    /// An archive is not there.
    ArchiveAbsent { archive: String },
    /// An archive is larger or smaller.
    Size { archive: String, size: u64, stated: u64 },
    /// An archive has another number of kernels.
    KernelCount { archive: String, stated: u64 },
    /// An archive is for other archs.
    Archs { archive: String, arch: String, targets: Vec<String> },
    /// The archive is in no manifest.
    NotListed,
}

impl fmt::Display for ManifestFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { reason } => f.write_str(reason),
            Self::Misplaced { component, prefix } => {
                write!(f, "says it is {component}.kpm in a folder of {prefix}")
            }
            Self::ArchGone { archive, arch, path } => {
                write!(f, "lists {archive}, which is not there, and {path} is for {arch}")
            }
            Self::ArchiveAbsent { archive } => write!(f, "lists {archive}, which is not there"),
            Self::Size { archive, size, stated } => {
                write!(f, "says that {archive} has {stated} bytes, and it has {size}")
            }
            Self::KernelCount { archive, stated } => {
                write!(f, "says that {archive} has {stated} kernels, and it has other rows")
            }
            Self::Archs { archive, arch, targets } => {
                write!(f, "lists {archive} for {arch}, and it is for {}", few(targets, 5))
            }
            Self::NotListed => f.write_str("no manifest of the set lists it"),
        }
    }
}
