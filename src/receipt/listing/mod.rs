//! Package sets as lists: which packages, with which names, relations, sizes and paths.
//!
//! One shape for what is planned, what was built and what lies in a folder of packages, so that
//! any two of them can be compared, and so that a plan can know the set that it updates. Each says
//! less than a package: what is not known is absent or marked as an estimate, never guessed.
//!
//! Refused: files that are no receipt, no plan and no package, folders without packages, and sets
//! with a package or a path of one twice, but for a folder that is the same each time.

mod code_digest;
mod owners;
mod package;
mod read;

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

pub use code_digest::{CodeRow, code_digest, code_digests};
pub use owners::{OwnedMember, Owners};
pub use package::{listed, payload_member, relations};
pub use read::{PLAN_KIND, PLAN_SCHEMA, of_receipt, of_records, parse, read};

use crate::package::updates::{Offered, Wish};
use crate::package::{Format, MemberKind, RelationKind, RoleKind};
use crate::receipt::{Receipt, RelationRecord};

/// A set of packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// What it was read from, for people.
    pub name: String,
    /// The install prefix, absolute, where it is known.
    pub prefix: Option<String>,
    /// The packages by format and name.
    pub packages: Vec<ListedPackage>,
    /// The receipt that it was read from, if it was one.
    pub receipt: Option<Box<Receipt>>,
}

/// One package in one format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedPackage {
    /// Its format.
    pub format: Format,
    /// The name in that format.
    pub name: String,
    /// Version and release with the epoch, if any, in front: `7.1.0-1`, `1:7.1.0-1`.
    pub version: String,
    /// E.g. `amd64`, `x86_64`, `noarch`.
    pub architecture: String,
    /// The name of the package file.
    pub file_name: String,
    /// What it is for, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleKind>,
    /// For kernel packages: the name of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// For kernel packages: the base archs inside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub archs: Vec<String>,
    /// Bytes of the package file.
    pub download: Size,
    /// Bytes that the package says it takes once it is installed.
    pub installed: Size,
    /// Relations but those that follow from the package itself (its own name, scriptlets, features
    /// of the package manager), sorted.
    pub relations: Vec<RelationRecord>,
    /// What it installs, in path order.
    pub members: Vec<ListedMember>,
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// The bytes.
    pub bytes: u64,
    /// Whether they are an estimate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

/// One installed path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedMember {
    /// Absolute path.
    pub path: String,
    /// What stands there.
    pub kind: MemberKind,
    /// Permission bits.
    pub mode: u32,
    /// For files: bytes of content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// For files: SHA-256 in hex, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// For kernel archives: the digest of what they hold, see [`code_digest`], where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_sha256: Option<String>,
    /// For links: their text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

impl Size {
    /// Bytes that were counted.
    pub fn exact(bytes: u64) -> Self {
        Self { bytes, estimated: false }
    }

    /// Bytes that nobody counted.
    pub fn estimate(bytes: u64) -> Self {
        Self { bytes, estimated: true }
    }
}

impl std::ops::Add for Size {
    type Output = Self;

    /// A sum with an estimate is one.
    fn add(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            estimated: self.estimated || other.estimated,
        }
    }
}

impl std::iter::Sum for Size {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), std::ops::Add::add)
    }
}

impl ListedMember {
    /// Whether it is a file, which has bytes.
    pub fn is_file(&self) -> bool {
        self.kind == MemberKind::File
    }

    /// Whether it is a directory, which packages share.
    pub fn is_directory(&self) -> bool {
        self.kind == MemberKind::Directory
    }
}

impl ListedPackage {
    /// Format and name: what a package is known by in a set.
    pub fn key(&self) -> (Format, &str) {
        (self.format, &self.name)
    }

    /// The order of packages in a listing. Equal are those that are one and the same to those who
    /// install them, in whatever words their versions say so.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let versions = || self.format.compare_versions(&self.version, &other.version);
        let architectures = || self.architecture.cmp(&other.architecture);
        self.key().cmp(&other.key()).then_with(versions).then_with(architectures)
    }

    /// Whether it has the version of `other`, which is of the same format, in whatever words.
    pub(crate) fn is_of_version_of(&self, other: &Self) -> bool {
        self.format.compare_versions(&self.version, &other.version).is_eq()
    }

    /// The package as clients are offered it.
    pub fn offered(&self) -> Offered<'_> {
        let mut relations = Vec::with_capacity(self.relations.len());
        for RelationRecord { kind, name, comparison, version } in &self.relations {
            let version = comparison.zip(version.as_deref());
            relations.push((*kind, Wish::of(self.format, name, version)));
        }
        let version = self.version.as_str().into();
        Offered { name: &self.name, version, arch: &self.architecture, relations }
    }

    /// The relations of a kind.
    pub fn relations_of(&self, kind: RelationKind) -> impl Iterator<Item = &RelationRecord> {
        self.relations.iter().filter(move |relation| relation.kind == kind)
    }
}

impl Listing {
    /// A set that no receipt tells of.
    pub fn new(name: String, prefix: Option<String>, packages: Vec<ListedPackage>) -> Self {
        Self { name, prefix, packages, receipt: None }
    }

    /// Brings the packages into their order: by format, name and version, the newest last, and by
    /// architecture.
    pub(crate) fn sorted(mut self) -> Self {
        self.packages.sort_by(ListedPackage::order);
        self
    }
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
        let member = |(path, kind): &(&str, MemberKind)| ListedMember {
            path: (*path).to_owned(),
            kind: *kind,
            mode: 0o644,
            size: None,
            sha256: None,
            code_sha256: None,
            target: None,
        };
        ListedPackage {
            format,
            name: name.to_owned(),
            version: version.to_owned(),
            architecture: "amd64".to_owned(),
            file_name: String::new(),
            role: None,
            group: None,
            archs: Vec::new(),
            download: Size::default(),
            installed: Size::default(),
            relations: Vec::new(),
            members: paths.iter().map(member).collect(),
        }
    }

    #[test]
    fn the_newest_of_several_versions_is_the_last() {
        let package =
            |format, version| listed(format, "rocm-blas", version, &[("/x", MemberKind::File)]);
        for format in Format::ALL {
            for versions in [["7.9.0-1", "7.10.0-1"], ["7.10.0~rc1-1", "7.10.0-1"]] {
                let both = [versions, [versions[1], versions[0]]];
                for order in both {
                    let packages = order.map(|version| package(format, version)).into();
                    let listing = Listing::new(String::new(), None, packages);
                    let sorted = listing.sorted().packages;
                    assert_eq!(sorted[1].version, versions[1]);
                    let owners = Owners::of(&sorted);
                    let owners: Vec<&str> =
                        owners.owners(format, "/x").map(|owner| &*owner.version).collect();
                    assert_eq!(owners, [versions[1]]);
                }
            }
        }
    }
}
