//! Reads the values for an index from the header of an `.rpm`.
//!
//! Accepts packages of any tool, even those that [`crate::rpm::RpmReader`] refuses: indexes do not mention ghosts,
//! devices, digests and hard links. [`RpmFront`] checks the length of paths. Refused: headers that list files only
//! by the tags of rpm 3.

use std::collections::BTreeSet;

use rpm::{FileFlags, Header, IndexTag, PackageMetadata};

use super::{
    Changelog, DependencyList, Evr, FileKind, IndexedDependency, ListedValues, RpmFile, RpmPackage,
    fault, is_primary, is_xml,
};
use crate::path_digests::PathDigests;
use crate::relation::index_word;
use crate::rpm::{RpmFront, SIGNATURES, missing_digest};
use rockpack_core::error::{Error, Result};

/// Number of changelog entries in an index: createrepo_c's default.
const CHANGELOG_MAX: usize = 10;

/// The file type bits of a mode, and their value for a directory.
const MODE_TYPE: u16 = 0o170_000;
const MODE_DIRECTORY: u16 = 0o040_000;

/// The tag for whole paths, which rpm 3 wrote.
const OLD_FILE_NAMES: u32 = 1027;

/// PREREQ, SCRIPT_PRE and SCRIPT_POST: flags of dependencies that must be installed before the package.
const PRE_FLAGS: u32 = 1 << 6 | 1 << 9 | 1 << 10;

impl RpmPackage {
    pub fn of_front(front: &RpmFront) -> Result<(Self, ListedValues)> {
        let metadata = &front.metadata;
        let header = &metadata.header;
        let files = files(header)?;
        let for_rpm4 = SIGNATURES.into_iter().any(|tag| metadata.signature.entry_is_present(tag));
        let signed = !metadata.raw_signatures().map_err(bad)?.is_empty() || for_rpm4;
        let package = Self {
            name: text(header, IndexTag::RPMTAG_NAME)?,
            arch: if metadata.is_source_package() {
                "src".to_owned()
            } else {
                text(header, IndexTag::RPMTAG_ARCH)?
            },
            epoch: number(header, IndexTag::RPMTAG_EPOCH)?,
            version: text(header, IndexTag::RPMTAG_VERSION)?,
            release: text(header, IndexTag::RPMTAG_RELEASE)?,
            packager: text(header, IndexTag::RPMTAG_PACKAGER)?,
            vendor: text(header, IndexTag::RPMTAG_VENDOR)?,
            lists: lists(metadata, &files)?,
            paths: paths(&files, true),
            shared: paths(&files, false),
            gpu_archs: BTreeSet::new(),
            signed,
            signed_for_rpm6: signed && !for_rpm4,
            missing_digest: missing_digest(metadata),
            signers: BTreeSet::new(),
            replaced: Vec::new(),
        };
        let listed = ListedValues {
            summary: localized(header, IndexTag::RPMTAG_SUMMARY)?,
            description: localized(header, IndexTag::RPMTAG_DESCRIPTION)?,
            url: text(header, IndexTag::RPMTAG_URL)?,
            license: text(header, IndexTag::RPMTAG_LICENSE)?,
            group: localized(header, IndexTag::RPMTAG_GROUP)?,
            build_host: text(header, IndexTag::RPMTAG_BUILDHOST)?,
            source_rpm: text(header, IndexTag::RPMTAG_SOURCERPM)?,
            build_time: number(header, IndexTag::RPMTAG_BUILDTIME)?.into(),
            installed_size: installed_size(header)?,
            archive_size: front.archive_size()?,
            header_start: front.header.start,
            header_end: front.header.end,
            files,
            changelog: changelog(metadata)?,
        };
        package.check(&listed)?;
        let replaced = replaced_fields(&package, &listed, front);
        Ok((Self { replaced, ..package }, listed))
    }
}

/// The paths of files and links if `plain`, and of directories and ghosts otherwise.
fn paths(files: &[RpmFile], plain: bool) -> PathDigests {
    let matching = files.iter().filter(|file| (file.kind == FileKind::Plain) == plain);
    PathDigests::of(matching.map(|file| file.path.as_str()))
}

/// Names of the fields with characters that indexes replace.
fn replaced_fields(package: &RpmPackage, listed: &ListedValues, front: &RpmFront) -> Vec<String> {
    let texts = [
        ("summary", &listed.summary),
        ("description", &listed.description),
        ("packager", &package.packager),
        ("url", &listed.url),
        ("license", &listed.license),
        ("vendor", &package.vendor),
        ("group", &listed.group),
        ("build host", &listed.build_host),
        ("source rpm", &listed.source_rpm),
    ];
    let changes = listed.changelog.iter().flat_map(|change| [&change.author, &change.text]);
    let texts = texts.into_iter().chain(changes.map(|text| ("change log", text)));
    let affected = texts.filter(|(_, text)| !text.chars().all(is_xml));
    let names: BTreeSet<&str> = affected.map(|(name, _)| name).chain(front.not_utf8()).collect();
    names.into_iter().map(str::to_owned).collect()
}

fn bad(error: rpm::Error) -> Error {
    fault("has invalid tags".to_owned()).cause(error)
}

/// The value of a tag, or the default if the header lacks it.
fn value<T: Default>(
    header: &Header<IndexTag>,
    tag: IndexTag,
    read: impl FnOnce() -> Result<T, rpm::Error>,
) -> Result<T> {
    if header.entry_is_present(tag) { read().map_err(bad) } else { Ok(T::default()) }
}

fn text(header: &Header<IndexTag>, tag: IndexTag) -> Result<String> {
    value(header, tag, || header.get_entry_data_as_string(tag).map(str::to_owned))
}

/// The text of a localized tag, which some tools write as a plain string.
fn localized(header: &Header<IndexTag>, tag: IndexTag) -> Result<String> {
    value(header, tag, || {
        let localized = header.get_entry_data_as_i18n_string(tag);
        localized.or_else(|_| header.get_entry_data_as_string(tag)).map(str::to_owned)
    })
}

fn number(header: &Header<IndexTag>, tag: IndexTag) -> Result<u32> {
    value(header, tag, || header.get_entry_data_as_u32(tag))
}

fn installed_size(header: &Header<IndexTag>) -> Result<u64> {
    let long = IndexTag::RPMTAG_LONGSIZE;
    if header.entry_is_present(long) {
        header.get_entry_data_as_u64(long).map_err(bad)
    } else {
        number(header, IndexTag::RPMTAG_SIZE).map(u64::from)
    }
}

fn files(header: &Header<IndexTag>) -> Result<Vec<RpmFile>> {
    if !header.entry_is_present(IndexTag::RPMTAG_BASENAMES) {
        return if header.entry_is_present(OLD_FILE_NAMES) {
            Err(Error::unsupported("lists its files only by the tags of rpm 3"))
        } else {
            Ok(Vec::new())
        };
    }
    let bases = header.get_entry_data_as_string_array(IndexTag::RPMTAG_BASENAMES).map_err(bad)?;
    let folders = header.get_entry_data_as_string_array(IndexTag::RPMTAG_DIRNAMES).map_err(bad)?;
    let indexes = header.get_entry_data_as_u32_array(IndexTag::RPMTAG_DIRINDEXES).map_err(bad)?;
    let flags = header.get_entry_data_as_u32_array(IndexTag::RPMTAG_FILEFLAGS).map_err(bad)?;
    let modes = header.get_entry_data_as_u16_array(IndexTag::RPMTAG_FILEMODES).map_err(bad)?;
    if [indexes.len(), flags.len(), modes.len()] != [bases.len(); 3] {
        return Err(fault("has file tags of different lengths".to_owned()));
    }
    let mut files = Vec::with_capacity(bases.len());
    for (((base, index), flags), mode) in bases.iter().zip(indexes).zip(flags).zip(modes) {
        let found = usize::try_from(index).ok().and_then(|index| folders.get(index));
        let folder = found.ok_or_else(|| fault(format!("has `{base}` in no directory")))?;
        let ghost = FileFlags::from_bits_retain(flags).contains(FileFlags::GHOST);
        let kind = match (mode & MODE_TYPE == MODE_DIRECTORY, ghost) {
            (true, _) => FileKind::Dir,
            (false, true) => FileKind::Ghost,
            (false, false) => FileKind::Plain,
        };
        files.push(RpmFile { path: format!("{folder}{base}"), kind });
    }
    Ok(files)
}

/// The non-empty lists of dependencies, in the order of `primary`.
fn lists(metadata: &PackageMetadata, files: &[RpmFile]) -> Result<Vec<DependencyList>> {
    let provides = dependencies(metadata.get_provides().map_err(bad)?);
    let mut requires = dependencies(metadata.get_requires().map_err(bad)?);
    let provided: BTreeSet<&str> = provides.iter().map(|line| line.name.as_str()).collect();
    let own_paths: BTreeSet<&str> =
        files.iter().map(|file| file.path.as_str()).filter(|path| is_primary(path)).collect();
    requires.retain(|line| {
        let name = line.name.as_str();
        !name.starts_with("rpmlib(") && !provided.contains(name) && !own_paths.contains(name)
    });
    let all = [
        ("provides", provides),
        ("requires", requires),
        ("conflicts", dependencies(metadata.get_conflicts().map_err(bad)?)),
        ("obsoletes", dependencies(metadata.get_obsoletes().map_err(bad)?)),
        ("suggests", dependencies(metadata.get_suggests().map_err(bad)?)),
        ("enhances", dependencies(metadata.get_enhances().map_err(bad)?)),
        ("recommends", dependencies(metadata.get_recommends().map_err(bad)?)),
        ("supplements", dependencies(metadata.get_supplements().map_err(bad)?)),
    ];
    let non_empty = all.into_iter().filter(|(_, entries)| !entries.is_empty());
    Ok(non_empty.map(|(kind, entries)| DependencyList { kind: kind.to_owned(), entries }).collect())
}

fn dependencies(found: Vec<rpm::Dependency>) -> Vec<IndexedDependency> {
    let mut lines: Vec<IndexedDependency> = Vec::with_capacity(found.len());
    let mut seen = BTreeSet::new();
    for rpm::Dependency { name, flags, version } in found {
        let sign = index_word(flags);
        let is_pre = flags.bits() & PRE_FLAGS != 0;
        if seen.insert((name.clone(), sign, version.clone(), is_pre)) {
            let bound = sign.map(|sign| (sign.to_owned(), Evr::parse(&version)));
            lines.push(IndexedDependency { name, bound, pre: is_pre });
        }
    }
    lines
}

/// The newest entries, oldest first, at least one second apart, because readers sort by time.
fn changelog(metadata: &PackageMetadata) -> Result<Vec<Changelog>> {
    let mut entries: Vec<Changelog> = Vec::new();
    for entry in metadata.iter_changelog_entries().map_err(bad)?.take(CHANGELOG_MAX) {
        entries.push(Changelog {
            author: entry.name.trim_end_matches(' ').to_owned(),
            date: entry.timestamp,
            text: entry.description,
        });
    }
    entries.reverse();
    for index in 1..entries.len() {
        let (before, rest) = entries.split_at_mut(index);
        if let (Some(older), Some(newer)) = (before.last(), rest.first_mut())
            && newer.date <= older.date
            && older.date - newer.date < CHANGELOG_MAX as u64
        {
            newer.date = older.date + 1;
        }
    }
    Ok(entries)
}
