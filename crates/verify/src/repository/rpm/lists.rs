//! Reads the package lists of an rpm repository package by package, and keeps only the checked fields: the lists of a
//! large distribution have a hundred megabytes.

use std::borrow::Cow;
use std::ops::Range;

use rockpack_archive::path_digests::{PathDigests, path_digest};
use rockpack_archive::rpm_md::evr;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_package::offered::{OfferedPackage, RPM_LISTS};
use rockpack_package::requirement::{Relations, Requirement};
use rockpack_package::{Comparison, Format};
use sha2::{Digest, Sha256};

use crate::repository::RelationBudget;
use crate::repository::xml::{self, Element};

/// Minimum average bytes of a package in `primary`. In memory, it takes somewhat more.
const SHORTEST_ENTRY: usize = 400;

/// Minimum average bytes of an entry in other lists: the digest alone has 64.
const SHORTEST: usize = 64;

/// The lists of relations in `primary`.
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

/// The entry of a package in `primary`. Absent texts are empty.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RpmEntry {
    /// Relative to the root of the repository.
    pub path: String,
    /// The digest of the package, its id in the other lists.
    pub checksum: String,
    /// E.g. `sha256`.
    pub checksum_type: String,
    pub name: String,
    pub arch: String,
    /// Epoch, version and release.
    pub version: [String; 3],
    /// In bytes.
    pub size: String,
    /// The start and end of the header in the package.
    pub header_range: Option<[String; 2]>,
    relations: RelationLists,
}

/// Deduplicated relations in the order of [`RELATIONS`].
type RelationLists = [Vec<RelationEntry>; 8];

/// A relation. A list may have a million of them.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RelationEntry {
    pub name: Box<str>,
    /// The comparison, e.g. `EQ`.
    pub flags: Cow<'static, str>,
    /// `[epoch:]version[-release]`.
    pub evr: Box<str>,
}

/// The comparisons in lists.
const FLAGS: [&str; 6] = ["", "LT", "LE", "EQ", "GE", "GT"];

#[derive(Debug)]
pub(super) struct RpmFiles {
    /// The digest of all paths ([`paths_digest`]).
    pub digest: [u8; 32],
    /// Path digests of files and links.
    pub owned: PathDigests,
    /// Path digests of directories and ghosts.
    pub shared: Vec<u64>,
}

impl RpmEntry {
    /// `[epoch:]version[-release]`.
    pub fn evr(&self) -> String {
        let [epoch, version, release] = &self.version;
        evr(epoch, version, release)
    }

    /// The relations of a list, one of [`RELATIONS`].
    pub fn list(&self, list: &str) -> &[RelationEntry] {
        let at = RELATIONS.iter().position(|own| *own == list);
        at.and_then(|at| self.relations.get(at)).map_or(&[], Vec::as_slice)
    }

    /// The package with its relations for the resolver.
    pub fn offered(&self) -> OfferedPackage<'_> {
        let relations = RPM_LISTS.into_iter().flat_map(|(kind, list)| {
            let lines = self.list(&format!("rpm:{list}")).iter();
            lines.map(move |line| (kind, line.requirement()))
        });
        OfferedPackage {
            name: &self.name,
            version: self.evr().into(),
            arch: &self.arch,
            relations: Relations::of(relations),
            paths: Vec::new(),
        }
    }

    fn of(package: &Element, mut relations: RelationLists) -> Self {
        for list in &mut relations {
            list.sort_unstable();
            list.dedup();
            list.shrink_to_fit();
        }
        let version = ["epoch", "ver", "rel"].map(|name| package.attribute_of("version", name));
        let format = package.child("format");
        let range = format.and_then(|format| format.child("rpm:header-range"));
        Self {
            path: package.attribute_of("location", "href").to_owned(),
            checksum: package.text_of("checksum").to_owned(),
            checksum_type: package.attribute_of("checksum", "type").to_owned(),
            name: package.text_of("name").to_owned(),
            arch: package.text_of("arch").to_owned(),
            version: version.map(str::to_owned),
            size: package.attribute_of("size", "package").to_owned(),
            header_range: format.map(|_| {
                ["start", "end"].map(|end| range.map_or("", |it| it.attribute(end)).to_owned())
            }),
            relations,
        }
    }
}

impl RelationEntry {
    fn of(entry: &Element) -> Self {
        let evr = evr(entry.attribute("epoch"), entry.attribute("ver"), entry.attribute("rel"));
        let flags = entry.attribute("flags");
        let known = FLAGS.into_iter().find(|known| *known == flags);
        Self {
            name: entry.attribute("name").into(),
            flags: known.map_or_else(|| flags.to_owned().into(), Cow::Borrowed),
            evr: evr.into(),
        }
    }

    fn requirement(&self) -> Requirement<'_> {
        let sign = Comparison::of_index(&self.flags);
        let version = sign.map(|sign| (sign, (&*self.evr).into()));
        Requirement::of(Format::Rpm, &self.name, version)
    }
}

pub(super) fn primary(text: &[u8]) -> Result<Vec<RpmEntry>> {
    let mut left = RelationBudget::of(text.len());
    let part = |relations: &mut RelationLists, around: &[Element], part: Element| {
        match around {
            [_, package, format, list] if format.name == "format" => {
                let at = RELATIONS.iter().position(|own| *own == list.name);
                let Some(lines) = at.and_then(|at| relations.get_mut(at)) else {
                    return Ok(Some(part));
                };
                left.take()?;
                // If there are two lists, or two formats, the first counts.
                let is_first =
                    package.child("format").is_none() && format.child(&list.name).is_none();
                lines.extend(is_first.then(|| RelationEntry::of(&part)));
                Ok(None)
            }
            [_, _, above] if above.name == "format" && part.name == "file" => Ok(None),
            _ => Ok(Some(part)),
        }
    };
    packages(text, SHORTEST_ENTRY, part, |package, relations| RpmEntry::of(&package, relations))
}

/// The packages of `filelists` by their digests.
pub(super) fn filelists(text: &[u8]) -> Result<Vec<(String, RpmFiles)>> {
    let add = |files: &mut FileNames, around: &[Element], part: Element| {
        if around.len() != 2 || part.name != "file" {
            return Ok(Some(part));
        }
        files.add(&part.text, part.attribute("type").is_empty());
        Ok(None)
    };
    packages(text, SHORTEST, add, |package, files: FileNames| {
        (package.attribute("pkgid").to_owned(), files.finish())
    })
}

/// The digests of the packages in a list.
pub(super) fn ids(text: &[u8]) -> Result<Vec<String>> {
    packages(text, SHORTEST, |_, _, _| Ok(None), |it, ()| it.attribute("pkgid").to_owned())
}

/// The files of one package while it is read. Packages have hundreds of thousands of files, and hostile ones millions,
/// so only paths are held.
#[derive(Default)]
struct FileNames {
    /// All paths, concatenated.
    text: String,
    places: Vec<Range<usize>>,
    /// Path digests of files and links.
    owned: Vec<u64>,
    /// Path digests of directories and ghosts.
    shared: Vec<u64>,
}

impl FileNames {
    fn add(&mut self, path: &str, is_plain: bool) {
        let start = self.text.len();
        self.text.push_str(path);
        self.places.push(start..self.text.len());
        let numbers = if is_plain { &mut self.owned } else { &mut self.shared };
        numbers.push(path_digest(path));
    }

    fn finish(self) -> RpmFiles {
        let paths = self.places.into_iter().filter_map(|place| self.text.get(place)).collect();
        let (digest, owned) = (paths_digest(paths), PathDigests::of_digests(self.owned));
        RpmFiles { digest, owned, shared: self.shared }
    }
}

/// A digest of a set of paths, independent of order and duplicates.
pub(super) fn paths_digest(mut paths: Vec<&str>) -> [u8; 32] {
    paths.sort_unstable();
    paths.dedup();
    let mut digest = Sha256::new();
    for path in paths {
        digest.update(path);
        digest.update([0]);
    }
    digest.finalize().into()
}

/// Collects the results of `read` for all packages, of at least `shortest` bytes on average. `part` gets the elements
/// of a package before that ([`xml::each_below_root`]).
fn packages<P: Default, T>(
    text: &[u8],
    shortest: usize,
    part: impl FnMut(&mut P, &[Element], Element) -> Result<Option<Element>>,
    read: impl Fn(Element, P) -> T,
) -> Result<Vec<T>> {
    let mut all = Vec::new();
    xml::each_below_root(text, "package", part, |package, parts| {
        if (all.len() + 1).saturating_mul(shortest) > text.len() {
            return Err(Error::new(Kind::Limit, "has more packages than its bytes can describe"));
        }
        all.push(read(package, parts));
        Ok(())
    })?;
    Ok(all)
}
