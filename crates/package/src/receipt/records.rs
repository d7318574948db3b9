//! What a receipt records of packages, their relations and paths, and code objects.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::folders::{read_folders, write_folders};
use crate::for_gpu::GpuPackage;
use crate::{
    Comparison, Format, Identity, Import, MemberKind, Package, PathChange, Relation, RelationKind,
    RoleKind,
};

/// A distribution that packages are for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DistributionRecord {
    pub format: Format,
    /// The name of its table, e.g. `debian-12`.
    pub name: String,
    /// The fields of its `os-release` that say which system it is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub os_release: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageRecord {
    /// Format-independent name, e.g. `rocm-blas-gfx110x`; equal for a package's `.deb` and `.rpm`.
    pub id: String,
    pub format: Format,
    /// File name inside the output folder.
    pub file_name: String,
    /// Size of the file in bytes.
    pub size: u64,
    /// Installed size in bytes, as the package states it: a deb's Installed-Size (whole KiB per entry,
    /// folders and documents included) × 1024, an rpm's SIZE.
    pub installed_size: u64,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
    pub role: RoleKind,
    /// The architecture group of a kernel package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The base archs in a kernel package.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub archs: Vec<String>,
    /// The vendor of an `.rpm`, empty for none. Absent for a `.deb`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// Full version, with the epoch if there is one.
    pub version: String,
    /// SHA-256, in hex, of the package's metadata without its version and the relations that an earlier set
    /// makes necessary. A later build compares it to find out whether the package changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_sha256: Option<String>,
    /// Relations and path changes that clients of earlier sets need for the update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<UpdateRecord>,
    /// The libraries of other packages of the set that its files or those of its earlier releases need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<Import>,
    /// The relations that the package states, sorted, without the ones to itself.
    pub relations: Vec<RelationRecord>,
    /// The installed paths, sorted.
    #[serde(rename = "folders", serialize_with = "write_folders")]
    #[serde(deserialize_with = "read_folders")]
    pub members: Vec<MemberRecord>,
    /// In a file, further paths, which the next package with this `id` has, too. In memory, both have all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(serialize_with = "write_folders", deserialize_with = "read_folders")]
    pub shared_folders: Vec<MemberRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpdxRecord {
    /// File name inside the output folder.
    pub file_name: String,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
}

/// One installed path. Receipts state files as arrays, whose elements are the first fields, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MemberRecord {
    /// The size of a file in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The SHA-256 of a file, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    pub mode: u32,
    #[serde(default = "file")]
    pub kind: MemberKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    #[serde(default, skip_serializing)]
    pub path: String,
}

fn file() -> MemberKind {
    MemberKind::File
}

/// A code object of the input that a package holds. Findings name those that no package holds, and say why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CodeObjectRecord {
    /// SHA-256 of the code object, in hex.
    pub sha256: String,
    /// Size in bytes.
    pub size: u64,
    /// Bytes that it took up in its binary: its share, by size, of the compressed bundle that it was taken out
    /// of. Absent if no compressed bundle of a binary held it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_size: Option<u64>,
    pub target: String,
    /// The shard it came from; absent for a file that serves all shards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// The package that holds it, by its format-independent name.
    pub package: String,
    /// The place in the package: either `binary`, `archive` and `key`, or `file` and `entry`.
    #[serde(flatten)]
    pub place: CodeObjectPlace,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CodeObjectPlace {
    Archive {
        /// Install-relative path of the binary that held it.
        binary: String,
        /// Absolute install path of the archive.
        archive: String,
        /// Key of the code object in the archive, `<kernel_name>#<co_index>`.
        key: String,
    },
    /// A file that was packed unchanged, such as one of a kernel database.
    File {
        /// Absolute install path of the file.
        file: String,
        /// The entry id in a file that is an offload bundle, or the key in a kernel archive that a component
        /// ships itself. Absent if the whole file is the code object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entry: Option<String>,
    },
}

impl CodeObjectPlace {
    /// The absolute install path of the archive or file.
    pub fn path(&self) -> &str {
        match self {
            Self::Archive { archive, .. } => archive,
            Self::File { file, .. } => file,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RelationRecord {
    /// The field or tag of the relation; rpm's `Requires` are `depends`.
    pub kind: RelationKind,
    /// Package or capability; alternatives and boolean dependencies are kept whole.
    pub name: String,
    /// The comparison with `version`, written with the same signs for both formats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// The version that installed ones are compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl RelationRecord {
    /// The relations of `package` in `format`, sorted; `None` if the package is not wanted in that format.
    pub fn of_package<F>(package: &Package<F>, format: Format) -> Option<Vec<Self>> {
        let records: BTreeSet<Self> = package.all_relations(format)?.map(Self::from).collect();
        Some(records.into_iter().collect())
    }
}

impl From<&Relation> for RelationRecord {
    fn from(relation: &Relation) -> Self {
        let (comparison, version) = relation.version.clone().unzip();
        Self { kind: relation.kind, name: relation.name.clone(), comparison, version }
    }
}

impl From<&RelationRecord> for Relation {
    fn from(record: &RelationRecord) -> Self {
        let version = record.comparison.zip(record.version.clone());
        Self { kind: record.kind, name: record.name.clone(), version }
    }
}

impl fmt::Display for RelationRecord {
    /// Writes the relation as a `.deb` does, without parentheses: `rocm-blas = 7.1.0-1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.comparison, &self.version) {
            (Some(comparison), Some(version)) => {
                write!(f, "{} {comparison} {version}", self.name)
            }
            _ => f.write_str(&self.name),
        }
    }
}

/// The relations and path changes by which a package replaces contents of earlier sets. Later sets of the same
/// version need them, too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateRecord {
    /// Relations to packages that had paths of this package, or import what it no longer has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relations: Vec<RelationRecord>,
    /// Paths at which a folder was replaced by something else, or the reverse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathChange>,
}

impl UpdateRecord {
    /// The record of `package` in `format`; `None` if it needs none.
    pub fn of_package<F>(package: &Package<F>, format: Format) -> Option<Self> {
        let Identity { superseding, changed, .. } = &package.identity;
        let superseding = superseding.iter().filter(|(of, _)| *of == format);
        let relations: BTreeSet<RelationRecord> = superseding.map(|(_, it)| it.into()).collect();
        let relations = Vec::from_iter(relations);
        let changed = changed.iter().filter(|(of, _)| *of == format);
        let paths: Vec<PathChange> = changed.map(|(_, change)| change.clone()).collect();
        (!relations.is_empty() || !paths.is_empty()).then_some(Self { relations, paths })
    }
}

/// Name and architecture in the file name of a package: `name_version_arch.deb` or
/// `name-version-release.arch.rpm`; `None` for any other text.
pub(super) fn name_parts(format: Format, file_name: &str) -> Option<(&str, &str)> {
    let stem = file_name.strip_suffix(format.as_str())?.strip_suffix('.')?;
    match format {
        Format::Deb => {
            let (rest, architecture) = stem.rsplit_once('_')?;
            let (name, _version) = rest.split_once('_')?;
            Some((name, architecture))
        }
        Format::Rpm => {
            let (rest, architecture) = stem.rsplit_once('.')?;
            let (with_version, _release) = rest.rsplit_once('-')?;
            let (name, _version) = with_version.rsplit_once('-')?;
            Some((name, architecture))
        }
    }
}

/// The format and the name of the package with this file name; `None` if it is not that of a package.
pub fn package_of_file(file_name: &str) -> Option<(Format, String)> {
    Format::ALL.into_iter().find_map(|it| Some((it, name_parts(it, file_name)?.0.to_owned())))
}

impl PackageRecord {
    /// The facts that decide which GPUs need the package; `None` if its file name is not one of a package.
    pub fn offer(&self) -> Option<GpuPackage> {
        let relations = self.relations.iter().map(|relation| (relation.kind, &*relation.name));
        Some(GpuPackage::new(&self.name()?, &self.version, &self.archs, relations))
    }

    /// The name of the package in its format, from its file name; `None` if that is not one of a package.
    pub fn name(&self) -> Option<String> {
        name_parts(self.format, &self.file_name).map(|(name, _)| name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_taken_apart() {
        let expected = Some(["rocm-blas", "amd64"].map(str::to_owned));
        assert_eq!(name_and_architecture(Format::Deb, "rocm-blas_7.1.0-1_amd64.deb"), expected);
        let expected = Some(["rocm-blas-devel", "noarch"].map(str::to_owned));
        let file_name = "rocm-blas-devel-7.1.0~rc1-1.el9.noarch.rpm";
        assert_eq!(name_and_architecture(Format::Rpm, file_name), expected);
        for (format, name) in
            [(Format::Deb, "x.deb"), (Format::Rpm, "a-1.rpm"), (Format::Deb, "a_1_b.rpm")]
        {
            assert_eq!(name_and_architecture(format, name), None, "{name}");
        }
    }

    fn name_and_architecture(format: Format, file_name: &str) -> Option<[String; 2]> {
        let (name, architecture) = name_parts(format, file_name)?;
        Some([name, architecture].map(str::to_owned))
    }
}
