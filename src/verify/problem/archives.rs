//! Faults of kernel archives, binaries, databases and manifests, with their texts.

use derive_more::Display;
use rockpack_base::gfx::{BaseArch, Target};
use serde::Serialize;

use crate::report::EmbeddedForm;
use crate::report::words::few;

/// Device code in a host package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum HostedCode {
    /// A code object by itself.
    #[display("is a code object, and no finding keeps it here")]
    CodeObject,
    /// A bundle by itself.
    #[display("is a bundle, and no finding keeps it here")]
    Bundle,
    /// A kernel archive.
    #[display("is a kernel archive in a host package")]
    Archive,
    /// An index for one arch.
    #[display("is an index for {arch} alone")]
    Index { arch: BaseArch },
    /// A file that claims to be device code and cannot be read.
    Unreadable { reason: String },
    /// An offload bundle in a binary.
    #[display("still has an offload bundle at offset {offset:#x}")]
    BundleInBinary { offset: u64 },
    /// Device code in a binary outside of `.hip_fatbin`.
    #[display("has {form} at offset {offset:#x}, and no finding keeps it there")]
    Embedded { form: EmbeddedForm, offset: u64 },
    /// A `.hip_fatbin` of a binary that is not zero.
    #[display("still has a .hip_fatbin with content")]
    Section,
}

/// A fault of a kernel archive.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum ArchiveFault {
    /// The file cannot be read.
    Unreadable { reason: String },
    /// One of its code objects cannot be read.
    #[display("code object {ordinal} cannot be read: {reason}")]
    CodeObject { ordinal: u32, reason: String },
    /// A row names what does not run on its target.
    #[display("{key} [{target}]: {fault}")]
    Row { key: String, target: String, fault: RowFault },
    /// There are rows for a target that it does not list.
    #[display("has rows for {target}, which it does not list")]
    NotListed { target: String },
    /// The archive lists a target without rows.
    #[display("lists {target}, for which it has no row")]
    WithoutRow { target: String },
    /// The archive lists a target of another arch than its name says.
    #[display("is where loaders look for {arch}, and lists {target}")]
    OtherArch { arch: BaseArch, target: Target },
    /// The archive lists more features than there are.
    #[display("lists {count} features, more than there are")]
    Features { count: usize },
}

/// Why what stands at a target does not belong there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum RowFault {
    /// The target cannot be parsed.
    NoTarget { reason: String },
    /// The row refers to something else than a code object.
    #[display("what stands there is no code object")]
    NoCodeObject,
    /// The code object is compiled for another target.
    #[display("its code object is for {_0}")]
    CompiledFor(Target),
}

/// The missing partner of a database file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum PartnerLack {
    /// The one of its name; for these archs, if there is one for others.
    #[display("has no {wanted} of its name{} beside it", for_archs(archs))]
    Absent { wanted: DatabasePartner, archs: Vec<BaseArch> },
    /// The one of its name, which is in a package that it does not need.
    #[display("its {wanted} is in {package}, which it does not need")]
    Elsewhere { wanted: DatabasePartner, package: String },
    /// One that it refers to.
    #[display("refers to {reference}, which is not beside it")]
    ReferenceAbsent { reference: String },
    /// One that it refers to, which is in a package that it does not need.
    #[display("refers to {reference}, which is in {package}, which it does not need")]
    ReferenceElsewhere { reference: String, package: String },
}

fn for_archs(archs: &[BaseArch]) -> String {
    if archs.is_empty() { String::new() } else { format!(" for {}", few(archs, 5)) }
}

/// The partner that a database file needs beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum DatabasePartner {
    /// Code needs an index.
    #[display("index")]
    Index,
    /// An index needs code.
    #[display("code object")]
    CodeObject,
}

/// The loader that finds no code under a key, or less specific code than exists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowLack {
    /// Everybody: no archive has a row.
    Everywhere,
    /// A device for which there is code, and no target that it looks for is listed.
    NotListed { device: Target },
    /// A device, because what it looks for is listed and has no row.
    WithoutRow { device: Target, listed: Target },
    /// A device finds code, and there is more specific code.
    LessSpecific { device: Target, listed: Target },
    /// Devices of an arch, for which there is code of its generic target alone, in another archive.
    OnlyGeneric { arch: BaseArch, generic: BaseArch },
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
            Self::OnlyGeneric { arch, generic } => format!(
                "{key}: {arch} has no row, and loaders stop here with an error, although there is code for \
                 {generic}: build the set again, which copies it here"
            ),
        }
    }
}

/// An inconsistency of a host binary.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum HostFault {
    /// The file cannot be read.
    Unreadable { reason: String },
    /// The marker cannot be read.
    Marker { reason: String },
    /// Nothing points to its marker.
    #[display("has a marker, but no wrapper that points to it")]
    MarkerAlone,
    /// Some of its wrappers are transformed.
    #[display("{transformed} of {wrappers} wrappers are transformed")]
    Partly { transformed: usize, wrappers: usize },
    /// One of its wrappers is not as runtimes expect.
    #[display("wrapper {wrapper} {fault}")]
    Wrapper { wrapper: usize, fault: WrapperFault },
}

/// The way in which a wrapper is not as runtimes expect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum WrapperFault {
    /// The version is another one.
    #[display("has version {version}, where runtimes expect 1")]
    Version { version: u32 },
    /// The pointer leads elsewhere.
    #[display("points to {address:#x}, not to the marker")]
    Pointer { address: u64 },
    /// Nothing moves its pointer with the file.
    #[display("has a pointer that no relocation moves with the file")]
    Unmoved,
    /// The number is another one.
    #[display("has the index {index}")]
    Index { index: u32 },
}

/// A fault of a kernel manifest, or of an archive that should be in one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum ManifestFault {
    /// The manifest cannot be read.
    Unreadable { reason: String },
    /// The manifest is in another place than it says.
    #[display("says it is {component}.kpm in a folder of {prefix}")]
    Misplaced { component: String, prefix: String },
    /// An archive is not there, while database code of its arch is, at `path`.
    #[display("lists {archive}, which is not there, and {path} is for {arch}")]
    ArchGone { archive: String, arch: String, path: String },
    /// An archive is not there.
    #[display("lists {archive}, which is not there")]
    ArchiveAbsent { archive: String },
    /// An archive is larger or smaller.
    #[display("says that {archive} has {stated} bytes, and it has {size}")]
    Size { archive: String, size: u64, stated: u64 },
    /// An archive has another number of kernels.
    #[display("says that {archive} has {stated} kernels, and it has other rows")]
    KernelCount { archive: String, stated: u64 },
    /// An archive is for other archs.
    #[display("lists {archive} for {arch}, and it is for {}", few(targets, 5))]
    Archs { archive: String, arch: String, targets: Vec<String> },
    /// The archive is in no manifest.
    #[display("no manifest of the set lists it")]
    NotListed,
}
