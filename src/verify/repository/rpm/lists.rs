//! The lists of packages, as far as they are looked at. They are read package by package, and little is
//! kept of each: a list is a hundred megabytes for a large distribution.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use super::names::evr;
use crate::error::{Error, Kind, Result};
use crate::formats::path_digests::PathDigests;
use crate::package::Format;
use crate::package::owners::is_shared_by_design;
use crate::verify::repository::xml::{self, Element};

/// Bytes that a package takes at least in `primary`, on the average of the list. In memory it takes
/// some more.
const SHORTEST_ENTRY: usize = 400;

/// The same in the other lists, where its digest alone has 64.
const SHORTEST: usize = 64;

/// Relations that `primary` states of a package.
pub(super) const RELATIONS: [&str; 8] = [
    "rpm:provides",
    "rpm:requires",
    "rpm:conflicts",
    "rpm:obsoletes",
    "rpm:recommends",
    "rpm:supplements",
    "rpm:suggests",
    "rpm:enhances",
];

/// What `primary` says of a package. A text that it does not state is empty.
#[derive(Debug, Default)]
pub(super) struct RpmEntry {
    /// Where the package is, from the root of the repository.
    pub path: String,
    /// The digest of the package, by which the other lists name it.
    pub checksum: String,
    /// How that is computed, e.g. `sha256`.
    pub checksum_type: String,
    pub name: String,
    pub arch: String,
    /// Epoch, version and release.
    pub version: [String; 3],
    /// Bytes of the package.
    pub size: String,
    /// Where the header begins and ends in the package.
    pub header_range: Option<[String; 2]>,
    /// By the places of their lists in [`RELATIONS`].
    relations: [Vec<RelationEntry>; 8],
    /// What is said twice of the package.
    pub twice: Option<String>,
}

/// A line of a relation.
#[derive(Debug)]
pub(super) struct RelationEntry {
    pub name: String,
    /// How the version compares, e.g. `EQ`.
    pub flags: String,
    /// `[epoch:]version[-release]`.
    pub evr: String,
}

/// The files of a package.
#[derive(Debug)]
pub(super) struct RpmFiles {
    /// Of all paths ([`paths_digest`]).
    pub digest: [u8; 32],
    /// Files and links, without those that debug files may share.
    pub owned: PathDigests,
}

impl RpmEntry {
    /// `[epoch:]version[-release]`.
    pub fn evr(&self) -> String {
        let [epoch, version, release] = &self.version;
        evr(epoch, version, release)
    }

    /// The lines of a list, one of [`RELATIONS`].
    pub fn list(&self, list: &str) -> &[RelationEntry] {
        let at = RELATIONS.iter().position(|own| *own == list);
        at.and_then(|at| self.relations.get(at)).map_or(&[], Vec::as_slice)
    }

    fn of(package: &Element) -> Self {
        let text = |name: &str| package.text_of(name).to_owned();
        let version = |name: &str| package.attribute_of("version", name).to_owned();
        let format = package.child("format");
        let lines = |list: &str| -> Vec<RelationEntry> {
            let entries = format.and_then(|format| format.child(list));
            let entries = entries.map_or(&[][..], |list| list.children.as_slice());
            entries.iter().map(RelationEntry::of).collect()
        };
        let range = format.and_then(|format| format.child("rpm:header-range"));
        let of_format = || format.and_then(|format| format.twice(&["file"]));
        Self {
            path: package.attribute_of("location", "href").to_owned(),
            checksum: text("checksum"),
            checksum_type: package.attribute_of("checksum", "type").to_owned(),
            name: text("name"),
            arch: text("arch"),
            version: ["epoch", "ver", "rel"].map(version),
            size: package.attribute_of("size", "package").to_owned(),
            header_range: format.map(|_| {
                ["start", "end"].map(|end| range.map_or("", |it| it.attribute(end)).to_owned())
            }),
            relations: RELATIONS.map(lines),
            twice: package.twice(&[]).or_else(of_format).map(str::to_owned),
        }
    }
}

impl RelationEntry {
    fn of(entry: &Element) -> Self {
        let attribute = |name: &str| entry.attribute(name).to_owned();
        let evr = evr(entry.attribute("epoch"), entry.attribute("ver"), entry.attribute("rel"));
        Self { name: attribute("name"), flags: attribute("flags"), evr }
    }
}

/// The packages of `primary`.
pub(super) fn primary(text: &[u8]) -> Result<Vec<RpmEntry>> {
    packages(text, SHORTEST_ENTRY, RpmEntry::of)
}

/// The packages of `filelists` by their digests.
pub(super) fn filelists(text: &[u8]) -> Result<Vec<(String, RpmFiles)>> {
    packages(text, SHORTEST, |package| {
        let all: BTreeSet<&str> = package.all("file").map(|file| file.text.as_str()).collect();
        let plain = package.all("file").filter(|file| file.attribute("type").is_empty());
        let plain = plain.map(|file| file.text.as_str());
        let owned = PathDigests::of(plain.filter(|path| !is_shared_by_design(Format::Rpm, path)));
        let files = RpmFiles { digest: paths_digest(&all), owned };
        (package.attribute("pkgid").to_owned(), files)
    })
}

/// The digests of the packages in a list.
pub(super) fn ids(text: &[u8]) -> Result<Vec<String>> {
    packages(text, SHORTEST, |package| package.attribute("pkgid").to_owned())
}

/// A digest of paths, in whatever order they are stated.
pub(super) fn paths_digest(paths: &BTreeSet<&str>) -> [u8; 32] {
    let mut digest = Sha256::new();
    for path in paths {
        digest.update(path);
        digest.update([0]);
    }
    digest.finalize().into()
}

/// What `read` keeps of each package, none of which takes less than `shortest` bytes.
fn packages<T>(text: &[u8], shortest: usize, read: impl Fn(&Element) -> T) -> Result<Vec<T>> {
    let mut all = Vec::new();
    xml::each_below_root(text, "package", |package| {
        if (all.len() + 1).saturating_mul(shortest) > text.len() {
            return Err(Error::new(Kind::Limit, "has more packages than its bytes can describe"));
        }
        all.push(read(&package));
        Ok(())
    })?;
    Ok(all)
}
