//! The tags of the main header, as rpmbuild writes them.
//!
//! Omitted on purpose: COOKIE (names the build host and time), OPTFLAGS (nothing is compiled here), FILECLASS
//! and CLASSDICT (libmagic's wording, which differs between its versions; nothing installs by it),
//! FILEDEPENDSX, FILEDEPENDSN and DEPENDSDICT (the dependencies of each file: the plan finds dependencies of
//! the package only). RPMVERSION names rockpack. Refused: more files or directories than a header can number.

use std::collections::HashMap;

use rpm::{FileFlags, HeaderEntry, IndexData, IndexTag};

use super::specification::{self, RpmControl, RpmSpecification};
use super::structure::VALUES;
use super::{MODE_DIRECTORY, MODE_FILE, MODE_LINK, SHA256_ALGORITHM, dependencies, installed_size};
use crate::payload::{PayloadEntry, PayloadEntryKind, SpecialKind, Treatment};
use rockpack_core::content::hex;
use rockpack_core::error::{Error, Kind, Result};

/// BUILDHOST of every package: a fixed word, so that the machine leaves no trace.
const BUILD_HOST: &str = "rockpack";

pub(super) type Tag = (IndexTag, IndexData);

pub(super) fn text(text: impl Into<String>) -> IndexData {
    IndexData::StringTag(text.into())
}

/// Values that are known only after the content was read.
#[derive(Debug, Clone)]
pub(super) struct PayloadFacts {
    /// Per entry: SHA-256 of a regular file, `None` for others.
    pub files: Vec<Option<[u8; 32]>>,
    /// Per entry: rpm's colour, 1 for 32-bit and 2 for 64-bit ELF.
    pub colors: Vec<u32>,
    /// SHA-256 of the payload as stored in the package.
    pub payload: [u8; 32],
    /// SHA-256 of the payload before compression.
    pub archive: [u8; 32],
    /// Bytes of the payload as stored in the package.
    pub payload_size: u64,
    /// Bytes of the payload before compression.
    pub archive_size: u64,
}

impl PayloadFacts {
    /// Zeros in place of the values for `entries`, but for the size of their archive.
    pub fn blank(entries: &[PayloadEntry], archive_size: u64) -> Self {
        Self {
            files: entries.iter().map(|entry| entry.is_file().then_some([0; 32])).collect(),
            colors: vec![0; entries.len()],
            payload: [0; 32],
            archive: [0; 32],
            payload_size: 0,
            archive_size,
        }
    }
}

pub(super) fn mode(entry: &PayloadEntry) -> u32 {
    let kind = match entry.kind {
        PayloadEntryKind::Directory => MODE_DIRECTORY,
        PayloadEntryKind::File | PayloadEntryKind::Special(SpecialKind::HardLink { .. }) => {
            MODE_FILE
        }
        PayloadEntryKind::Link { .. } => MODE_LINK,
        // The payload writer refuses special files.
        PayloadEntryKind::Special(_) => 0,
    };
    kind | (entry.mode & 0o7777)
}

pub(super) fn entries(
    specification: &RpmSpecification,
    digests: &PayloadFacts,
) -> Result<Vec<HeaderEntry>> {
    let mut tags = identity(specification);
    tags.extend(build(specification));
    tags.extend(specification::scriptlets(&specification.scriptlets));
    tags.extend(specification::changelog(&specification.changes));
    tags.extend(payload(specification, digests));
    tags.extend(dependencies::tags(specification));
    let files = &specification.entries;
    if !files.is_empty() {
        tags.extend(content(specification, digests)?);
        tags.extend(constants(files)?);
        tags.push(sizes(files));
        tags.extend(paths(files)?);
    }
    Ok(tags.into_iter().map(|(tag, data)| HeaderEntry::new(tag.into(), data)).collect())
}

fn identity(specification: &RpmSpecification) -> Vec<Tag> {
    let mut tags = vec![
        (IndexTag::RPMTAG_HEADERI18NTABLE, repeated_text("C", 1)),
        (IndexTag::RPMTAG_NAME, text(&specification.name)),
        (IndexTag::RPMTAG_VERSION, text(&specification.version)),
        (IndexTag::RPMTAG_RELEASE, text(&specification.release)),
        (IndexTag::RPMTAG_SUMMARY, localized(&specification.summary)),
        (IndexTag::RPMTAG_DESCRIPTION, localized(&specification.description)),
        (IndexTag::RPMTAG_LICENSE, text(&specification.license)),
        (IndexTag::RPMTAG_GROUP, localized(&specification.group)),
        (IndexTag::RPMTAG_OS, text("linux")),
        (IndexTag::RPMTAG_ARCH, text(&specification.arch)),
    ];
    if let Some(epoch) = specification.epoch {
        tags.push((IndexTag::RPMTAG_EPOCH, IndexData::Int32(vec![epoch])));
    }
    let optional = [
        (IndexTag::RPMTAG_URL, &specification.url),
        (IndexTag::RPMTAG_VENDOR, &specification.vendor),
        (IndexTag::RPMTAG_PACKAGER, &specification.packager),
    ];
    tags.extend(optional.into_iter().filter_map(|(tag, value)| Some((tag, text(value.as_ref()?)))));
    if !specification.prefixes.is_empty() {
        let prefixes = IndexData::StringArray(specification.prefixes.clone());
        tags.push((IndexTag::RPMTAG_PREFIXES, prefixes));
    }
    tags
}

fn localized(text: &str) -> IndexData {
    IndexData::I18NString(vec![text.to_owned()])
}

/// The tags about the build. rpm treats a package as a source package unless it has SOURCERPM, so that tag is
/// written although no such source package exists.
fn build(specification: &RpmSpecification) -> Vec<Tag> {
    let RpmControl { name, version, release, arch, .. } = &specification.control;
    vec![
        (IndexTag::RPMTAG_BUILDTIME, IndexData::Int32(vec![specification.build_time])),
        (IndexTag::RPMTAG_BUILDHOST, text(BUILD_HOST)),
        (IndexTag::RPMTAG_SOURCERPM, text(format!("{name}-{version}-{release}.src.rpm"))),
        (IndexTag::RPMTAG_RPMVERSION, text(concat!("rockpack ", env!("CARGO_PKG_VERSION")))),
        (IndexTag::RPMTAG_PLATFORM, text(format!("{arch}-unknown-linux"))),
        (IndexTag::RPMTAG_ENCODING, text("utf-8")),
    ]
}

fn payload(specification: &RpmSpecification, digests: &PayloadFacts) -> Vec<Tag> {
    let total = installed_size(&specification.entries);
    let size = match u32::try_from(total) {
        Ok(total) => (IndexTag::RPMTAG_SIZE, IndexData::Int32(vec![total])),
        Err(_) => (IndexTag::RPMTAG_LONGSIZE, IndexData::Int64(vec![total])),
    };
    vec![
        size,
        (IndexTag::RPMTAG_PAYLOADFORMAT, text("cpio")),
        (IndexTag::RPMTAG_PAYLOADCOMPRESSOR, text(specification.compression.method().as_str())),
        (IndexTag::RPMTAG_PAYLOADFLAGS, text(specification.compression.level().to_string())),
        (IndexTag::RPMTAG_PAYLOADSHA256, repeated_text(&hex(&digests.payload), 1)),
        (IndexTag::RPMTAG_PAYLOADSHA256ALGO, IndexData::Int32(vec![SHA256_ALGORITHM])),
        (IndexTag::RPMTAG_PAYLOADSHA256ALT, repeated_text(&hex(&digests.archive), 1)),
        (IndexTag::RPMTAG_FILEDIGESTALGO, IndexData::Int32(vec![SHA256_ALGORITHM])),
    ]
}

/// The tags that differ between files, and their common time.
fn content(specification: &RpmSpecification, digests: &PayloadFacts) -> Result<Vec<Tag>> {
    let entries = &specification.entries;
    let modes: Result<Vec<u16>, _> = entries.iter().map(|it| u16::try_from(mode(it))).collect();
    let modes = modes.map_err(|_| Error::bug("a mode has more than 16 bits"))?;
    let sums = digests.files.iter().map(|sum| sum.map(|sum| hex(&sum)).unwrap_or_default());
    let links = entries.iter().map(|entry| entry.target().unwrap_or_default().to_owned());
    let flags = entries.iter().map(|entry| flags(entry).bits());
    let colors = IndexData::Int32(digests.colors.clone());
    Ok(vec![
        (IndexTag::RPMTAG_FILEMODES, IndexData::Int16(modes)),
        (IndexTag::RPMTAG_FILEMTIMES, IndexData::Int32(vec![specification.mtime; entries.len()])),
        (IndexTag::RPMTAG_FILEDIGESTS, IndexData::StringArray(sums.collect())),
        (IndexTag::RPMTAG_FILELINKTOS, IndexData::StringArray(links.collect())),
        (IndexTag::RPMTAG_FILEFLAGS, IndexData::Int32(flags.collect())),
        (IndexTag::RPMTAG_FILECOLORS, colors),
    ])
}

/// The tags that are the same for all files, and the number of each file.
fn constants(entries: &[PayloadEntry]) -> Result<Vec<Tag>> {
    let len = entries.len();
    let count = u32::try_from(len)
        .ok()
        .filter(|count| *count < VALUES)
        .ok_or_else(|| Error::new(Kind::Limit, "more files than rpm takes in one package"))?;
    Ok(vec![
        (IndexTag::RPMTAG_FILERDEVS, IndexData::Int16(vec![0; len])),
        (IndexTag::RPMTAG_FILEUSERNAME, repeated_text("root", len)),
        (IndexTag::RPMTAG_FILEGROUPNAME, repeated_text("root", len)),
        (IndexTag::RPMTAG_FILEVERIFYFLAGS, IndexData::Int32(vec![u32::MAX; len])),
        (IndexTag::RPMTAG_FILEDEVICES, IndexData::Int32(vec![1; len])),
        (IndexTag::RPMTAG_FILEINODES, IndexData::Int32((1..=count).collect())),
        (IndexTag::RPMTAG_FILELANGS, repeated_text("", len)),
    ])
}

/// The value of a tag that is `text` for each of `count` files.
pub(super) fn repeated_text(text: &str, count: usize) -> IndexData {
    IndexData::StringArray(vec![text.to_owned(); count])
}

/// The tags of paths. rpm splits these into directories, each stored once, and base names.
fn paths(entries: &[PayloadEntry]) -> Result<[Tag; 3]> {
    let mut known: HashMap<&str, u32> = HashMap::new();
    let (mut directories, mut indexes, mut bases) = (Vec::new(), Vec::new(), Vec::new());
    for entry in entries {
        let (parent, base) = entry.path.rsplit_once('/').unwrap_or(("", &entry.path));
        let next = u32::try_from(directories.len())
            .map_err(|_| Error::new(Kind::Limit, "more directories than a header can number"))?;
        let index = *known.entry(parent).or_insert_with(|| {
            let slash = if parent.is_empty() { "" } else { "/" };
            directories.push(format!("/{parent}{slash}"));
            next
        });
        indexes.push(index);
        bases.push(base.to_owned());
    }
    Ok([
        (IndexTag::RPMTAG_DIRNAMES, IndexData::StringArray(directories)),
        (IndexTag::RPMTAG_DIRINDEXES, IndexData::Int32(indexes)),
        (IndexTag::RPMTAG_BASENAMES, IndexData::StringArray(bases)),
    ])
}

fn sizes(entries: &[PayloadEntry]) -> Tag {
    let small: Result<Vec<u32>, _> =
        entries.iter().map(|entry| u32::try_from(entry.stored_size())).collect();
    match small {
        Ok(sizes) => (IndexTag::RPMTAG_FILESIZES, IndexData::Int32(sizes)),
        Err(_) => {
            let sizes = entries.iter().map(PayloadEntry::stored_size).collect();
            (IndexTag::RPMTAG_LONGFILESIZES, IndexData::Int64(sizes))
        }
    }
}

fn flags(entry: &PayloadEntry) -> FileFlags {
    match entry.treatment {
        Treatment::Plain | Treatment::Library => FileFlags::empty(),
        Treatment::Config => FileFlags::CONFIG | FileFlags::NOREPLACE,
        Treatment::Doc => FileFlags::DOC,
        Treatment::License => FileFlags::LICENSE,
    }
}
