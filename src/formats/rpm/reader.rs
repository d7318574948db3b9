//! Reads an `.rpm` back, streaming, with everything checked that the format promises.
//!
//! The header's structure is checked here before the `rpm` crate parses it, because that parser
//! trusts offsets and counts. Digests of header and payload and all sizes are compared here; the
//! content of files is compared with its stated digest by whoever visits the entries.
//! Refused: source packages, hard links, devices, ghosts, digests other than SHA-256.

use std::collections::HashMap;
use std::io::{BufReader, Read};
use std::ops::Range;

use rpm::{FileFlags, Header, IndexSignatureTag, IndexTag, PackageMetadata};
use sha2::{Digest as _, Sha256};

use super::cpio::{Member, Members};
use super::{HEADER_MAGIC, LEAD_MAGIC, LEAD_SIZE, MODE_DIRECTORY, MODE_FILE, MODE_LINK, header};
use crate::content::{Content, ContentReader, hex, unhex};
use crate::error::{Error, Kind, Result};
use crate::formats::compression::{Decoder, Method};
use crate::formats::payload::{Digest, Entry, EntryKind, Marking, ReadEntry, Visitor};

/// rpm refuses headers with more data.
const HEADER_DATA_MAX: u64 = 256 << 20;

/// rpm refuses headers with more entries.
const HEADER_ENTRIES_MAX: u64 = 0xffff;

/// Longest text of a link (Linux's PATH_MAX).
const LINK_MAX: u64 = 4096;

/// An opened `.rpm`.
pub struct Reader {
    metadata: PackageMetadata,
    payload: Content,
    method: Method,
    entries: Vec<ReadEntry>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { payload, method, entries, .. } = self;
        f.debug_struct("Reader")
            .field("payload", payload)
            .field("method", method)
            .field("entries", entries)
            .finish_non_exhaustive()
    }
}

/// Lead, signature and header of a package, with the digest and size that the signature states of
/// the header compared.
#[derive(Debug)]
pub struct Front {
    /// All tags, through the `rpm` crate.
    pub metadata: PackageMetadata,
    /// Where the header lies in the package; the payload follows it.
    pub header: Range<u64>,
}

impl Front {
    /// Reads what is in front of the payload.
    pub fn read(package: &Content) -> Result<Self> {
        let magic: [u8; 4] = package.read_array(0)?;
        if magic != LEAD_MAGIC {
            return Err(Error::malformed("has no rpm lead").at(&package.place(0)));
        }
        let signature_end = header_end(package, LEAD_SIZE as u64)?;
        let start = signature_end
            .checked_next_multiple_of(8)
            .ok_or_else(|| Error::truncated("ends in the signature").at(&package.place(0)))?;
        let end = header_end(package, start)?;
        let front = package.read_vec(0..end, 3 * HEADER_DATA_MAX, "rpm header")?;
        let metadata = PackageMetadata::parse(&mut &front[..])
            .map_err(|e| Error::malformed("cannot parse the rpm header").cause(e))
            .map_err(|e| e.at(&package.place(start)))?;
        let raw = usize::try_from(start).map_err(|_| Error::bug("header offset"))?;
        let read = Self { metadata, header: start..end };
        read.check_signature(&front[raw..], package.len() - start)
            .map_err(|e| e.at(&package.place(LEAD_SIZE as u64)))?;
        Ok(read)
    }

    /// The header's digest and the size of header and payload. Packages of old tools have the
    /// SHA-1 alone, which says nothing.
    fn check_signature(&self, header: &[u8], size: u64) -> Result<()> {
        let signature = &self.metadata.signature;
        let tag = IndexSignatureTag::RPMSIGTAG_SHA256;
        if signature.entry_is_present(tag) {
            let stated = signature.get_entry_data_as_string(tag);
            let stated = stated.map_err(|e| fault("states a bad SHA-256").cause(e))?;
            if stated != hex(&Sha256::digest(header)) {
                return Err(mismatch("the header's SHA-256 is not the stated one"));
            }
        }
        let stated = number(signature, IndexSignatureTag::RPMSIGTAG_SIZE as u32)?
            .or(number(signature, IndexTag::RPMTAG_LONGSIGSIZE as u32)?);
        match stated {
            Some(stated) if stated != size => Err(mismatch(&format!(
                "header and payload have {size} bytes, the signature states {stated}"
            ))),
            _ => Ok(()),
        }
    }

    /// Bytes of the payload before compression, as the signature states them; 0 if it does not.
    pub fn archive_size(&self) -> Result<u64> {
        let signature = &self.metadata.signature;
        let stated = number(signature, IndexSignatureTag::RPMSIGTAG_PAYLOADSIZE as u32)?
            .or(number(signature, IndexTag::RPMTAG_LONGARCHIVESIZE as u32)?)
            .or(number(&self.metadata.header, IndexTag::RPMTAG_ARCHIVESIZE as u32)?);
        Ok(stated.unwrap_or(0))
    }
}

impl Reader {
    /// Reads signature and header and compares their digests; the payload stays where it is.
    pub fn open(package: Content) -> Result<Self> {
        let Front { metadata, header } = Front::read(&package)?;
        let place = package.place(header.start);
        if !metadata.signature.entry_is_present(IndexSignatureTag::RPMSIGTAG_SHA256) {
            return Err(fault("states no SHA-256 of its header").at(&place));
        }
        let payload = package.slice(header.end..package.len())?;
        let method = method(&metadata.header)?;
        let entries = entries(&metadata.header).map_err(|e| e.at(&place))?;
        Ok(Self { metadata, payload, method, entries })
    }

    /// All tags, through the `rpm` crate.
    pub fn metadata(&self) -> &PackageMetadata {
        &self.metadata
    }

    /// What the header lists, in its order.
    pub fn entries(&self) -> &[ReadEntry] {
        &self.entries
    }

    /// Goes once through the payload, in its order, and compares its digests and sizes.
    pub fn visit(&self, visitor: &mut Visitor<'_>) -> Result<()> {
        self.visit_payload(visitor).map_err(|e| e.at(&self.payload.place(0)))
    }

    fn visit_payload(&self, visitor: &mut Visitor<'_>) -> Result<()> {
        let source = Digesting::new(self.payload.reader());
        let source = BufReader::with_capacity(1 << 18, source);
        let decoder = Digesting::new(Decoder::new(source, self.method)?);
        let mut members = Members::new(decoder);
        let names = self.entries.iter().enumerate();
        let by_path: HashMap<&str, usize> =
            names.map(|(index, read)| (read.entry.path.as_str(), index)).collect();
        let mut seen = vec![false; self.entries.len()];
        while let Some(member) = members.next()? {
            let index = self.locate(&member, &by_path)?;
            let read = &self.entries[index];
            if std::mem::replace(&mut seen[index], true) {
                return Err(fault(&format!("payload has /{} twice", read.entry.path)));
            }
            self.check_member(&member, read)?;
            members.expect(read.entry.stored_size());
            if let Some(target) = read.entry.target()
                && members.content(LINK_MAX)? != target.as_bytes()
            {
                return Err(mismatch(&format!("link /{} differs from header", read.entry.path)));
            }
            visitor(read, &mut members)?;
        }
        if let Some(index) = seen.iter().position(|seen| !seen) {
            let path = &self.entries[index].entry.path;
            return Err(fault(&format!("/{path} is in the header but not in the payload")));
        }
        let (decoder, size) = members.into_inner();
        self.check_payload(decoder, size)
    }

    fn locate(&self, member: &Member, by_path: &HashMap<&str, usize>) -> Result<usize> {
        match member {
            Member::Newc { name, .. } => {
                let path = name.strip_prefix("./").unwrap_or(name);
                let index = by_path.get(path).copied();
                index.ok_or_else(|| fault(&format!("{name} is in the payload but not the header")))
            }
            Member::Stripped { index } => usize::try_from(*index)
                .ok()
                .filter(|index| *index < self.entries.len())
                .ok_or_else(|| fault(&format!("payload names file {index}, which is none"))),
        }
    }

    fn check_member(&self, member: &Member, read: &ReadEntry) -> Result<()> {
        let Member::Newc { name, mode, mtime, size } = member else {
            return Ok(());
        };
        let entry = &read.entry;
        let same = *mode == header::mode(entry)
            && u64::from(*mtime) == read.mtime
            && *size == entry.stored_size();
        match same {
            true => Ok(()),
            false => Err(mismatch(&format!("{name} differs between header and payload"))),
        }
    }

    fn check_payload(&self, decoder: Digesting<PayloadDecoder>, size: u64) -> Result<()> {
        let signature = &self.metadata.signature;
        let stated = number(signature, IndexSignatureTag::RPMSIGTAG_PAYLOADSIZE as u32)?
            .or(number(signature, IndexTag::RPMTAG_LONGARCHIVESIZE as u32)?);
        if stated.is_some_and(|stated| stated != size) {
            return Err(mismatch("the payload's size is not the stated one"));
        }
        let archive = decoder.digest.finalize();
        let source = decoder.source.finish()?.into_inner();
        let header = &self.metadata.header;
        let digests = [
            (IndexTag::RPMTAG_PAYLOADSHA256, source.digest.finalize()),
            (IndexTag::RPMTAG_PAYLOADSHA256ALT, archive),
        ];
        for (tag, digest) in digests {
            let stated = header.entry_is_present(tag).then(|| header.get_entry_data_as_string(tag));
            let stated = stated.transpose().map_err(|e| fault("bad payload digest").cause(e))?;
            if stated.is_some_and(|stated| stated != hex(&digest)) {
                return Err(mismatch("the payload's SHA-256 is not the stated one"));
            }
        }
        Ok(())
    }
}

type PayloadDecoder = Decoder<BufReader<Digesting<ContentReader>>>;

/// Digests what is read through it.
struct Digesting<R> {
    source: R,
    digest: Sha256,
}

impl<R> Digesting<R> {
    fn new(source: R) -> Self {
        Self { source, digest: Sha256::new() }
    }
}

impl<R: Read> Read for Digesting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = self.source.read(buffer)?;
        self.digest.update(&buffer[..len]);
        Ok(len)
    }
}

/// Checks the structure of the header at `start` and returns where it ends.
fn header_end(package: &Content, start: u64) -> Result<u64> {
    let place = |e: Error| e.structure("rpm header").at(&package.place(start));
    let intro: [u8; 16] = package.read_array(start).map_err(place)?;
    if !intro.starts_with(&HEADER_MAGIC) {
        return Err(place(Error::malformed("has no header magic")));
    }
    let word = |at: usize| u64::from(be32(&intro[at..]));
    let (count, size) = (word(8), word(12));
    if count > HEADER_ENTRIES_MAX || size > HEADER_DATA_MAX {
        let message = format!("{count} entries and {size} bytes of data exceed rpm's limits");
        return Err(place(Error::new(Kind::Limit, message)));
    }
    let index = start + 16..start + 16 + count * 16;
    let data = index.end;
    let index = package.read_vec(index, HEADER_ENTRIES_MAX * 16, "rpm header index")?;
    let bytes = package.slice(data..data + size).map_err(place)?;
    for entry in index.chunks_exact(16) {
        check_entry(entry, &bytes).map_err(place)?;
    }
    Ok(data + size)
}

/// Type, alignment and extent of one index entry; strings must end inside the data.
fn check_entry(entry: &[u8], data: &Content) -> Result<()> {
    let [tag, kind, offset, count] = [0, 4, 8, 12].map(|at| be32(&entry[at..]));
    let (offset, count) = (u64::from(offset), u64::from(count));
    let width = match kind {
        1 | 2 | 6 | 7 | 8 | 9 => 1,
        3 => 2,
        4 => 4,
        5 => 8,
        _ => {
            return Err(Error::unsupported(format!("tag {tag} has unknown type {kind}")));
        }
    };
    let end = offset + count * width;
    if count == 0 || offset % width != 0 || end > data.len() {
        return Err(Error::malformed(format!("tag {tag} lies outside of the data")));
    }
    if kind == 6 && count != 1 {
        return Err(Error::malformed(format!("tag {tag} is a string more than once")));
    }
    Ok(())
}

fn be32(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |word, byte| word << 8 | u32::from(*byte))
}

fn method(header: &Header<IndexTag>) -> Result<Method> {
    let tag = IndexTag::RPMTAG_PAYLOADCOMPRESSOR;
    let name = match header.entry_is_present(tag) {
        true => header.get_entry_data_as_string(tag).map_err(|e| fault("bad tag").cause(e))?,
        false => "gzip",
    };
    Method::of_name(name)
        .ok_or_else(|| Error::unsupported(format!("payload compressor `{name}` is not supported")))
}

/// A tag of one number, if it is there.
fn number<T: rpm::Tag>(header: &Header<T>, tag: u32) -> Result<Option<u64>> {
    if !header.entry_is_present(tag) {
        return Ok(None);
    }
    match header.entry(tag) {
        Ok(rpm::IndexData::Int32(numbers)) if numbers.len() == 1 => Ok(Some(numbers[0].into())),
        Ok(rpm::IndexData::Int64(numbers)) if numbers.len() == 1 => Ok(Some(numbers[0])),
        _ => Err(fault(&format!("tag {tag} is not one number"))),
    }
}

/// The parallel arrays that describe files.
struct Columns<'a> {
    bases: Vec<&'a str>,
    directories: Vec<&'a str>,
    indexes: Vec<u32>,
    sizes: Vec<u64>,
    modes: Vec<u16>,
    mtimes: Vec<u32>,
    flags: Vec<u32>,
    links: Vec<&'a str>,
    sums: Vec<&'a str>,
    users: Vec<&'a str>,
    groups: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    fn read(header: &'a Header<IndexTag>) -> Result<Self> {
        let bad = |e: rpm::Error| fault("has bad file tags").cause(e);
        let texts = |tag| header.get_entry_data_as_string_array(tag).map_err(bad);
        let numbers = |tag| header.get_entry_data_as_u32_array(tag).map_err(bad);
        let long = IndexTag::RPMTAG_LONGFILESIZES;
        let sizes = match header.entry_is_present(long) {
            true => header.get_entry_data_as_u64_array(long).map_err(bad)?,
            false => {
                let sizes = numbers(IndexTag::RPMTAG_FILESIZES)?;
                sizes.into_iter().map(u64::from).collect()
            }
        };
        Ok(Self {
            bases: texts(IndexTag::RPMTAG_BASENAMES)?,
            directories: texts(IndexTag::RPMTAG_DIRNAMES)?,
            indexes: numbers(IndexTag::RPMTAG_DIRINDEXES)?,
            sizes,
            modes: header.get_entry_data_as_u16_array(IndexTag::RPMTAG_FILEMODES).map_err(bad)?,
            mtimes: numbers(IndexTag::RPMTAG_FILEMTIMES)?,
            flags: numbers(IndexTag::RPMTAG_FILEFLAGS)?,
            links: texts(IndexTag::RPMTAG_FILELINKTOS)?,
            sums: texts(IndexTag::RPMTAG_FILEDIGESTS)?,
            users: texts(IndexTag::RPMTAG_FILEUSERNAME)?,
            groups: texts(IndexTag::RPMTAG_FILEGROUPNAME)?,
        })
    }

    fn check(&self) -> Result<()> {
        let count = self.bases.len();
        let lengths = [
            self.indexes.len(),
            self.sizes.len(),
            self.modes.len(),
            self.mtimes.len(),
            self.flags.len(),
            self.links.len(),
            self.sums.len(),
            self.users.len(),
            self.groups.len(),
        ];
        match lengths.iter().all(|len| *len == count) {
            true => Ok(()),
            false => Err(fault("has file tags of different lengths")),
        }
    }

    /// The entry at `index`, which is below the number of base names.
    fn entry(&self, index: usize) -> Result<ReadEntry> {
        let path = self.path(index)?;
        let mode = u32::from(self.modes[index]);
        let kind = self.kind(index, mode, &path)?;
        let flags = FileFlags::from_bits_retain(self.flags[index]);
        if flags.contains(FileFlags::GHOST) {
            return Err(Error::unsupported(format!("/{path} is a ghost")));
        }
        let sum = self.sums[index];
        let declared = match (&kind, unhex::<32>(sum)) {
            (EntryKind::File, Some(sum)) => Some(Digest::Sha256(sum)),
            (EntryKind::File, None) => return Err(fault(&format!("/{path} has no SHA-256"))),
            (_, _) if sum.is_empty() => None,
            (_, _) => return Err(fault(&format!("/{path} is no file but has a digest"))),
        };
        let stored = self.sizes[index];
        let size = if kind == EntryKind::File { stored } else { 0 };
        let entry = Entry { path, kind, mode: mode & 0o7777, size, marking: marking(flags) };
        if entry.stored_size() != stored && entry.kind != EntryKind::Directory {
            return Err(fault(&format!("link /{} has another size", entry.path)));
        }
        let (user, group) = (self.users[index].to_owned(), self.groups[index].to_owned());
        Ok(ReadEntry { entry, user, group, mtime: self.mtimes[index].into(), declared })
    }

    fn path(&self, index: usize) -> Result<String> {
        let directory = usize::try_from(self.indexes[index]).ok();
        let directory = directory.and_then(|at| self.directories.get(at));
        let directory = directory
            .and_then(|text| text.strip_prefix('/'))
            .filter(|text| text.is_empty() || text.ends_with('/'))
            .ok_or_else(|| fault("has a file in no directory"))?;
        Ok(format!("{directory}{}", self.bases[index]))
    }

    fn kind(&self, index: usize, mode: u32, path: &str) -> Result<EntryKind> {
        Ok(match mode & 0o170_000 {
            MODE_DIRECTORY => EntryKind::Directory,
            MODE_FILE => EntryKind::File,
            MODE_LINK => EntryKind::Link { target: self.links[index].to_owned() },
            _ => {
                let message = format!("/{path} of mode {mode:o} is not supported");
                return Err(Error::unsupported(message).structure("rpm header"));
            }
        })
    }
}

fn marking(flags: FileFlags) -> Marking {
    if flags.contains(FileFlags::CONFIG) {
        Marking::Config
    } else if flags.contains(FileFlags::DOC) {
        Marking::Doc
    } else if flags.contains(FileFlags::LICENSE) {
        Marking::License
    } else {
        Marking::Plain
    }
}

fn entries(header: &Header<IndexTag>) -> Result<Vec<ReadEntry>> {
    if !header.entry_is_present(IndexTag::RPMTAG_SOURCERPM) {
        return Err(Error::unsupported("is a source package"));
    }
    if !header.entry_is_present(IndexTag::RPMTAG_BASENAMES) {
        return Ok(Vec::new());
    }
    let algorithm = number(header, IndexTag::RPMTAG_FILEDIGESTALGO as u32)?;
    if algorithm != Some(super::SHA256_ALGORITHM.into()) {
        return Err(Error::unsupported(format!(
            "file digests of algorithm {algorithm:?} are not supported"
        )));
    }
    let columns = Columns::read(header)?;
    columns.check()?;
    (0..columns.bases.len()).map(|index| columns.entry(index)).collect()
}

fn fault(message: &str) -> Error {
    Error::malformed(message.to_owned()).structure("rpm")
}

fn mismatch(message: &str) -> Error {
    Error::new(Kind::Verify, message.to_owned()).structure("rpm")
}
