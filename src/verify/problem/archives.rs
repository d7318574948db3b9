//! Faults of databases, rows and manifests, with their texts.

use derive_more::Display;
use rockpack_base::gfx::{BaseArch, Target};
use serde::Serialize;

use crate::report::words::few;

/// The missing partner of a database file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum PartnerLack {
    /// The one of its name; for these archs, if there is one for others.
    #[display("has no {wanted} of its name{} beside it", for_archs(archs))]
    Absent { wanted: &'static str, archs: Vec<BaseArch> },
    /// The one of its name, which is in a package that it does not need.
    #[display("its {wanted} is in {package}, which it does not need")]
    Elsewhere { wanted: &'static str, package: String },
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

/// A fault of a kernel manifest, or of an archive that should be in one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum ManifestFault {
    /// The manifest cannot be read, or is not about its place or archives.
    Wrong { reason: String },
    /// An archive is not there, while database code of its arch is, at `path`.
    #[display("lists {archive}, which is not there, and {path} is for {arch}")]
    ArchGone { archive: String, arch: String, path: String },
    /// An archive is not there.
    #[display("lists {archive}, which is not there")]
    ArchiveAbsent { archive: String },
    /// The archive is in no manifest.
    #[display("no manifest of the set lists it")]
    NotListed,
}
