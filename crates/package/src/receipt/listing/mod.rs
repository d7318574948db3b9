//! Package sets as lists: packages with names, relations, sizes and paths.
//!
//! A planned set, a built set and a folder of packages have the same shape, so that any two can be compared,
//! and a plan can know the set that it updates. A listing says less than a package: unknown facts are absent
//! or marked as estimates, never guessed.
//!
//! Refused are files that are neither receipt, plan nor package, folders without packages, and sets with a
//! duplicate package or a duplicate path in a package. Exact duplicates of packages and folders are dropped.

mod package;
mod read;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::content::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use package::{listed, payload_member};
pub use read::{PLAN_KIND, PLAN_SCHEMA, of_receipt, of_records, parse, read};

use crate::offered::OfferedPackage;
use crate::receipt::{CodeObjectPlace, CodeObjectRecord, PackageRecord, Receipt, RelationRecord};
use crate::requirement::{Relations, Requirement};
use crate::{Format, MemberKind, RelationKind, RoleKind};
use rockpack_report::ReceiptDoubt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The path that the set was read from, for messages.
    pub name: String,
    /// The install prefix, absolute, if it is known.
    pub prefix: Option<String>,
    /// The packages, sorted by format and name.
    pub packages: Vec<ListedPackage>,
    /// The receipt, if the set was read from one.
    pub receipt: Option<Box<Receipt>>,
    /// Why no signature proves the receipt, if that was asked and none does.
    pub doubt: Option<ReceiptDoubt>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedPackage {
    pub format: Format,
    pub name: String,
    /// Version and release, after the epoch if there is one: `7.1.0-1`, `1:7.1.0-1`.
    pub version: String,
    /// The architecture as the format names it: `amd64`, `x86_64`, `noarch`.
    pub architecture: String,
    pub file_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleKind>,
    /// The architecture group of a kernel package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The base archs in a kernel package.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub archs: Vec<String>,
    /// The vendor of an `.rpm`, empty for none. Absent if it is not known, and for a `.deb`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// Size of the package file.
    pub download: Size,
    /// Installed size, as the package states it.
    pub installed: Size,
    /// The relations, sorted, except those that follow from the package itself (its own name, scriptlets,
    /// features of the package manager).
    pub relations: Vec<RelationRecord>,
    /// The installed paths, sorted.
    pub members: Vec<ListedMember>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    pub bytes: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedMember {
    pub path: String,
    pub kind: MemberKind,
    pub mode: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// The SHA-256 of a file in hex, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The digest of a kernel archive's code objects, see [`code_digest`], if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

impl Size {
    pub fn exact(bytes: u64) -> Self {
        Self { bytes, estimated: false }
    }

    pub fn estimate(bytes: u64) -> Self {
        Self { bytes, estimated: true }
    }
}

impl std::iter::Sum for Size {
    /// Adds the bytes. The sum is an estimate if any of the sizes is.
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), |sum, size| Self {
            bytes: sum.bytes.saturating_add(size.bytes),
            estimated: sum.estimated || size.estimated,
        })
    }
}

impl ListedMember {
    /// Whether the entry is a file, and so has content.
    pub fn is_file(&self) -> bool {
        self.kind == MemberKind::File
    }

    /// Whether the entry is a directory, which several packages may have.
    pub fn is_directory(&self) -> bool {
        self.kind == MemberKind::Directory
    }
}

impl ListedPackage {
    /// Format and name, which identify a package in a set.
    pub fn key(&self) -> (Format, &str) {
        (self.format, &self.name)
    }

    /// The order of packages in a listing. Packages are equal if a package manager treats them as the same,
    /// even if their versions are spelt differently.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        self.key()
            .cmp(&other.key())
            .then_with(|| self.format.compare_versions(&self.version, &other.version))
            .then_with(|| self.architecture.cmp(&other.architecture))
    }

    /// Whether it has the same version as `other`, which has the same format. Spelling does not matter.
    pub(crate) fn is_of_version_of(&self, other: &Self) -> bool {
        self.format.compare_versions(&self.version, &other.version).is_eq()
    }

    pub fn offered(&self) -> OfferedPackage<'_> {
        let relations = Relations::of(self.relations.iter().map(|record| {
            let RelationRecord { kind, name, comparison, version } = record;
            let version = comparison.zip(version.as_deref().map(Into::into));
            (*kind, Requirement::of(self.format, name, version))
        }));
        let version = self.version.as_str().into();
        let paths = self.members.iter().map(|member| member.path.as_str()).collect();
        OfferedPackage { name: &self.name, version, arch: &self.architecture, relations, paths }
    }

    pub fn relations_of(&self, kind: RelationKind) -> impl Iterator<Item = &RelationRecord> {
        self.relations.iter().filter(move |relation| relation.kind == kind)
    }
}

impl Listing {
    /// A set that was not read from a receipt.
    pub fn new(name: String, prefix: Option<String>, packages: Vec<ListedPackage>) -> Self {
        Self { name, prefix, packages, receipt: None, doubt: None }
    }

    /// The records of the packages, if the set was read from a receipt.
    pub fn records(&self) -> impl Iterator<Item = &PackageRecord> {
        self.receipt.iter().flat_map(|receipt| receipt.all_packages())
    }

    /// Sorts the packages by format, name, version (newest last) and architecture.
    pub fn sorted(mut self) -> Self {
        self.packages.sort_by(ListedPackage::order);
        self
    }
}

/// A package of a set and its entry at one path.
#[derive(Debug, Clone, Copy)]
pub struct OwnedMember<'a> {
    pub package: &'a ListedPackage,
    pub member: &'a ListedMember,
}

/// The paths of a set by format, path and package name. Several packages may have one path; each is updated.
#[derive(Debug, Default)]
pub struct PathOwners<'a>(BTreeMap<(Format, &'a str, &'a str), OwnedMember<'a>>);

impl<'a> PathOwners<'a> {
    /// Indexes the paths of `packages`, which are sorted. If several versions of a package have a path, the
    /// newest counts.
    pub fn of(packages: impl IntoIterator<Item = &'a ListedPackage>) -> Self {
        let mut owners = BTreeMap::new();
        for package in packages {
            for member in &package.members {
                let key = (package.format, &*member.path, &*package.name);
                owners.insert(key, OwnedMember { package, member });
            }
        }
        Self(owners)
    }

    /// All entries at `path` in `format`, directories included, sorted by package name.
    pub fn at<'s>(
        &'s self,
        format: Format,
        path: &'s str,
    ) -> impl Iterator<Item = OwnedMember<'a>> + 's {
        let from = self.0.range((format, path, "")..);
        let there = from.take_while(move |((of, at, _), _)| (*of, *at) == (format, path));
        there.map(|(_, owned)| *owned)
    }

    /// The packages that have `path` as something other than a directory.
    pub fn owners<'s>(
        &'s self,
        format: Format,
        path: &'s str,
    ) -> impl Iterator<Item = &'a ListedPackage> + 's {
        let files = self.at(format, path).filter(|owned| !owned.member.is_directory());
        files.map(|owned| owned.package)
    }

    /// Whether a package has `path` as something other than a directory.
    pub fn has(&self, format: Format, path: &str) -> bool {
        self.owners(format, path).next().is_some()
    }

    /// Every path that is not a directory, once for each package that has it.
    pub fn files(&self) -> impl Iterator<Item = OwnedMember<'a>> {
        self.0.values().copied().filter(|owned| !owned.member.is_directory())
    }
}

/// A code object of an archive: its key, its target, and its SHA-256 in hex.
pub type CodeRow = (String, String, String);

/// The digest of the contents of a kernel archive, independent of compression: SHA-256, in hex, of the sorted lines
/// `key target sha256` of its code objects. Rows that repeat a code object for a more specific target are left out.
/// A receipt yields it for packed archives, a plan for planned ones.
pub fn code_digest(rows: &BTreeSet<CodeRow>) -> String {
    let mut hasher = Sha256::new();
    for (key, target, sha256) in rows {
        hasher.update(format!("{key} {target} {sha256}\n"));
    }
    hex(&hasher.finalize())
}

/// Maps the absolute path of each kernel archive to the digest of its code objects among `records`.
pub fn code_digests<'a>(
    records: impl Iterator<Item = &'a CodeObjectRecord>,
) -> BTreeMap<String, String> {
    let mut rows: BTreeMap<&str, BTreeSet<CodeRow>> = BTreeMap::new();
    for record in records {
        if let CodeObjectPlace::Archive { archive, key, .. } = &record.place {
            let row = (key.clone(), record.target.clone(), record.sha256.clone());
            rows.entry(archive).or_default().insert(row);
        }
    }
    rows.into_iter().map(|(archive, rows)| (archive.to_owned(), code_digest(&rows))).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A package with entries of these paths and kinds.
    pub(crate) fn listed(
        format: Format,
        name: &str,
        version: &str,
        paths: &[(&str, MemberKind)],
    ) -> ListedPackage {
        ListedPackage {
            format,
            name: name.to_owned(),
            version: version.to_owned(),
            architecture: "amd64".to_owned(),
            file_name: String::new(),
            role: None,
            group: None,
            archs: Vec::new(),
            vendor: None,
            download: Size::default(),
            installed: Size::default(),
            relations: Vec::new(),
            members: paths.iter().map(|(path, kind)| listed_member(path, *kind)).collect(),
        }
    }

    fn listed_member(path: &str, kind: MemberKind) -> ListedMember {
        ListedMember {
            path: path.to_owned(),
            kind,
            mode: 0o644,
            size: None,
            sha256: None,
            code_sha256: None,
            target: None,
        }
    }

    #[test]
    fn the_newest_of_several_versions_is_the_last() {
        let paths = [("/x", MemberKind::File)];
        for format in Format::ALL {
            for versions in [["7.9.0-1", "7.10.0-1"], ["7.10.0~rc1-1", "7.10.0-1"]] {
                let both = [versions, [versions[1], versions[0]]];
                for order in both {
                    let packages =
                        order.map(|version| listed(format, "rocm-blas", version, &paths)).into();
                    let listing = Listing::new(String::new(), None, packages);
                    let sorted = listing.sorted().packages;
                    assert_eq!(sorted[1].version, versions[1]);
                    let owners = PathOwners::of(&sorted);
                    let newest: Vec<&str> =
                        owners.owners(format, "/x").map(|owner| &*owner.version).collect();
                    assert_eq!(newest, [versions[1]]);
                }
            }
        }
    }
}
