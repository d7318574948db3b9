//! The front of an `.rpm`: lead, signature and header, before the payload.
//!
//! The header's structure is checked before the `rpm` crate parses it, because that parser trusts offsets and
//! counts, and copies the data of each tag. Refused: tags that share bytes of the data, as by rpm itself; a
//! tag twice; paths that are too long, or take far more bytes than the header that lists them.

use std::collections::HashSet;
use std::ops::Range;

use rpm::{Header, IndexSignatureTag, IndexTag, PackageMetadata};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use super::faults::{fault, mismatch};
use super::odd_texts::OddTexts;
use super::{HEADER_MAGIC, LEAD_MAGIC, LEAD_SIZE, SHA256_ALGORITHM, paths};
use crate::content::{Content, hex};
use crate::error::{Error, Kind, Result};
use crate::named::named_enum;

/// Most bytes of data in a header; rpm refuses more.
const HEADER_DATA_MAX: u64 = 256 << 20;

/// Most entries in a header; rpm refuses more.
const HEADER_ENTRIES_MAX: u64 = 0xffff;

/// A number that no tag of rpm has.
const UNUSED_TAG: u32 = 0x7fff_fffe;

/// SHA-256 and SHA3-256 of the header, in the signature.
const HEADER_DIGESTS: [u32; 2] = [273, 279];

/// SHA-512 and SHA3-256 of the payload, in the header.
const PAYLOAD_DIGESTS: [u32; 2] = [5121, 5123];

named_enum! {
    /// A digest without which rpm 6 refuses to install a package: it ignores MD5 and SHA-1.
    pub enum MissingDigest {
        /// The digest of the header, which is part of the signature.
        Header = "header",
        /// The digest of the payload, which is part of the header. The package may lack both.
        Payload = "payload",
    }
}

/// Lead, signature and header of a package. The header matches the digest and size in the signature.
#[derive(Debug)]
pub struct Front {
    /// All tags, through the `rpm` crate.
    pub metadata: PackageMetadata,
    /// The header, as a range of the package; the payload follows it.
    pub header: Range<u64>,
    /// Texts of the header that are not UTF-8.
    pub(super) odd: OddTexts,
}

impl Front {
    /// Reads lead, signature and header.
    pub fn read(package: &Content) -> Result<Self> {
        let magic: [u8; 4] = package.read_array(0)?;
        if magic != LEAD_MAGIC {
            return Err(Error::malformed("has no rpm lead").at(&package.place(0)));
        }
        let (signature_end, _) = header_end(package, LEAD_SIZE as u64)?;
        let start = signature_end
            .checked_next_multiple_of(8)
            .ok_or_else(|| Error::truncated("ends in the signature").at(&package.place(0)))?;
        let (end, odd) = header_end(package, start)?;
        let front = package.read_vec(0..end, 3 * HEADER_DATA_MAX, "rpm header")?;
        let raw = usize::try_from(start).map_err(|_| Error::bug("header offset"))?;
        let lenient = odd.is_any().then(|| without_encoding(&front, raw));
        let metadata = PackageMetadata::parse(&mut lenient.as_deref().unwrap_or(&front))
            .map_err(|e| Error::malformed("cannot parse the rpm header").cause(e))
            .map_err(|e| e.at(&package.place(start)))?;
        let read = Self { metadata, header: start..end, odd };
        read.check_signature(&front[raw..], package.len() - start)
            .map_err(|e| e.at(&package.place(LEAD_SIZE as u64)))?;
        paths::check(&read.metadata.header, end - start)
            .map_err(|e| e.at(&package.place(start)))?;
        Ok(read)
    }

    /// Compares the header's digests and the size of header and payload with the signature. Packages of old
    /// tools only have the SHA-1, which proves nothing; but rpm refuses the package if it is wrong.
    fn check_signature(&self, header: &[u8], size: u64) -> Result<()> {
        let signature = &self.metadata.signature;
        let digests = [
            (IndexSignatureTag::RPMSIGTAG_SHA256, "SHA-256", hex(&Sha256::digest(header))),
            (IndexSignatureTag::RPMSIGTAG_SHA1, "SHA-1", hex(&Sha1::digest(header))),
        ];
        for (tag, name, digest) in digests {
            if !signature.entry_is_present(tag) {
                continue;
            }
            let stated = signature
                .get_entry_data_as_string(tag)
                .map_err(|e| fault(&format!("states a bad {name}")).cause(e))?;
            if stated != digest {
                return Err(mismatch(&format!("the header's {name} is not the stated one")));
            }
        }
        let (short, long) = (IndexSignatureTag::RPMSIGTAG_SIZE, IndexTag::RPMTAG_LONGSIGSIZE);
        match size_of(signature, short, long)? {
            Some(stated) if stated != size => Err(mismatch(&format!(
                "header and payload have {size} bytes, the signature states {stated}"
            ))),
            _ => Ok(()),
        }
    }

    /// Names of the fields with texts that are not UTF-8; these are read with U+FFFD.
    pub fn not_utf8(&self) -> impl Iterator<Item = &'static str> {
        self.odd.named()
    }

    /// Bytes of the payload before compression, by the signature or else the header; 0 if neither has them.
    pub fn archive_size(&self) -> Result<u64> {
        let stated = archive_size(&self.metadata.signature)?
            .or(number(&self.metadata.header, IndexTag::RPMTAG_ARCHIVESIZE as u32)?);
        Ok(stated.unwrap_or(0))
    }
}

/// The digest that a package lacks for rpm 6.
pub fn missing_digest(metadata: &PackageMetadata) -> Option<MissingDigest> {
    let PackageMetadata { signature, header, .. } = metadata;
    // Format 6 does not name the algorithm.
    let algorithm = number(header, IndexTag::RPMTAG_PAYLOADSHA256ALGO as u32);
    let is_sha256 = algorithm.is_ok_and(|it| it.is_none_or(|it| it == u64::from(SHA256_ALGORITHM)));
    let has_sha256 = is_sha256 && header.entry_is_present(IndexTag::RPMTAG_PAYLOADSHA256);
    if !has_sha256 && !PAYLOAD_DIGESTS.into_iter().any(|tag| header.entry_is_present(tag)) {
        Some(MissingDigest::Payload)
    } else if !HEADER_DIGESTS.into_iter().any(|tag| signature.entry_is_present(tag)) {
        Some(MissingDigest::Header)
    } else {
        None
    }
}

/// Bytes of the payload before compression; `None` if the signature does not state them.
pub(super) fn archive_size(signature: &Header<IndexSignatureTag>) -> Result<Option<u64>> {
    let short = IndexSignatureTag::RPMSIGTAG_PAYLOADSIZE;
    size_of(signature, short, IndexTag::RPMTAG_LONGARCHIVESIZE)
}

/// A size that a signature states in a tag of 32 bits or one of 64. Both must agree, because each reader
/// ignores one of them.
fn size_of(
    signature: &Header<IndexSignatureTag>,
    short: IndexSignatureTag,
    long: IndexTag,
) -> Result<Option<u64>> {
    match (number(signature, short as u32)?, number(signature, long as u32)?) {
        (Some(short), Some(long)) if short != long => {
            Err(mismatch(&format!("the signature states one size as {short} and as {long} bytes")))
        }
        (short, long) => Ok(short.or(long)),
    }
}

/// Checks the structure of the header at `start`, and returns its end and its odd texts. A tag twice is
/// refused: the `rpm` crate reads the first entry of a tag, and rpm itself the last.
fn header_end(package: &Content, start: u64) -> Result<(u64, OddTexts)> {
    unplaced_header_end(package, start)
        .map_err(|e| e.structure("rpm header").at(&package.place(start)))
}

fn unplaced_header_end(package: &Content, start: u64) -> Result<(u64, OddTexts)> {
    let intro: [u8; 16] = package.read_array(start)?;
    if !intro.starts_with(&HEADER_MAGIC) {
        return Err(Error::malformed("has no header magic"));
    }
    let [count, size] = [8, 12].map(|at| u64::from(be32(&intro[at..])));
    if count > HEADER_ENTRIES_MAX || size > HEADER_DATA_MAX {
        let message = format!("{count} entries and {size} bytes of data exceed rpm's limits");
        return Err(Error::new(Kind::Limit, message));
    }
    let index = start + 16..start + 16 + count * 16;
    let data = index.end..index.end + size;
    let index = package.read_vec(index, HEADER_ENTRIES_MAX * 16, "rpm header index");
    let bytes = package.read_vec(data.clone(), HEADER_DATA_MAX, "rpm header data");
    let odd = check_entries(&index?, &bytes?)?;
    Ok((data.end, odd))
}

/// A copy of `front` whose header, at `start`, does not claim that all texts are UTF-8, so that the `rpm`
/// crate reads texts in other encodings too. The tag gets an unused number.
fn without_encoding(front: &[u8], start: usize) -> Vec<u8> {
    let mut copy = front.to_vec();
    let header = copy.get_mut(start..).unwrap_or_default();
    let count = header.get(8..12).map_or(0, be32) as usize;
    let entries = header.get_mut(16..).unwrap_or_default().chunks_exact_mut(16).take(count);
    for entry in entries.filter(|entry| be32(entry) == IndexTag::RPMTAG_ENCODING as u32) {
        entry[..4].copy_from_slice(&UNUSED_TAG.to_be_bytes());
    }
    copy
}

/// Checks that every tag occurs once, and that all tags together take no more than the data. If tags shared
/// bytes, the `rpm` crate would hold a copy for each of them.
fn check_entries(index: &[u8], data: &[u8]) -> Result<OddTexts> {
    let (mut tags, mut odd) = (HashSet::new(), OddTexts::default());
    let mut left = data.len();
    for entry in index.chunks_exact(16) {
        let [tag, kind, offset, count] = [0, 4, 8, 12].map(|at| be32(&entry[at..]));
        if !tags.insert(tag) {
            return Err(Error::malformed(format!("tag {tag} is there twice")));
        }
        let taken = taken(tag, kind, offset, count, data)?;
        if let (6 | 8 | 9, Ok(at), Ok(count)) =
            (kind, usize::try_from(offset), usize::try_from(count))
        {
            odd.look(tag, data.get(at..at + taken).unwrap_or_default(), count);
        }
        left = left.checked_sub(taken).ok_or_else(|| {
            Error::malformed(format!("tag {tag} shares bytes of the data with other tags"))
                .hint("rpm refuses such a package, too: get it from who built it, or build it anew")
        })?;
    }
    Ok(odd)
}

/// Bytes of data that a tag takes, by its type, offset and count; strings must end inside the data.
fn taken(tag: u32, kind: u32, offset: u32, count: u32, data: &[u8]) -> Result<usize> {
    let width = match kind {
        1 | 2 | 6 | 7 | 8 | 9 => 1,
        3 => 2,
        4 => 4,
        5 => 8,
        _ => {
            return Err(Error::unsupported(format!("tag {tag} has unknown type {kind}")));
        }
    };
    let (offset, count) = usize::try_from(offset)
        .ok()
        .zip(usize::try_from(count).ok())
        .ok_or_else(|| outside_data(tag))?;
    let len = count.checked_mul(width).filter(|len| *len > 0).ok_or_else(|| outside_data(tag))?;
    let rest = data
        .get(offset..)
        .filter(|rest| offset % width == 0 && len <= rest.len())
        .ok_or_else(|| outside_data(tag))?;
    match kind {
        6 if count != 1 => Err(Error::malformed(format!("tag {tag} is a string more than once"))),
        6 | 8 | 9 => strings(rest, count).ok_or_else(|| {
            Error::malformed(format!("tag {tag} has a string that does not end in the data"))
        }),
        _ => Ok(len),
    }
}

fn outside_data(tag: u32) -> Error {
    Error::malformed(format!("tag {tag} lies outside of the data"))
}

/// Length in bytes of the first `count` strings, each with its NUL.
fn strings(bytes: &[u8], count: usize) -> Option<usize> {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == 0);
    ends.map(|(at, _)| at + 1).nth(count.checked_sub(1)?)
}

fn be32(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |word, byte| word << 8 | u32::from(*byte))
}

/// The number in a tag; `None` if the tag is missing.
pub(super) fn number<T: rpm::Tag>(header: &Header<T>, tag: u32) -> Result<Option<u64>> {
    if !header.entry_is_present(tag) {
        return Ok(None);
    }
    match header.entry(tag) {
        Ok(rpm::IndexData::Int32(numbers)) if numbers.len() == 1 => Ok(Some(numbers[0].into())),
        Ok(rpm::IndexData::Int64(numbers)) if numbers.len() == 1 => Ok(Some(numbers[0])),
        _ => Err(fault(&format!("tag {tag} is not one number"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of a header with these rows (tag, type, offset, count) and data.
    fn end(rows: &[[u32; 4]], data: &[u8]) -> Result<u64> {
        read(rows, data).map(|(end, _)| end)
    }

    fn read(rows: &[[u32; 4]], data: &[u8]) -> Result<(u64, OddTexts)> {
        let lengths = [rows.len(), data.len()].map(|len| u32::try_from(len).unwrap());
        let words: Vec<u8> = lengths
            .into_iter()
            .chain(rows.iter().copied().flatten())
            .flat_map(u32::to_be_bytes)
            .collect();
        header_end(&Content::of_bytes([&HEADER_MAGIC[..], &[0; 4], &words, data].concat()), 0)
    }

    fn refused(rows: &[[u32; 4]], data: &[u8], part: &str) {
        let error = end(rows, data).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn a_tag_is_there_once() {
        let rows = [[63, 4, 0, 1], [1000, 4, 4, 1], [1001, 4, 8, 1], [1000, 4, 12, 1]];
        assert_eq!(end(&rows[..3], &[0; 16]).unwrap(), 16 + 3 * 16 + 16);
        refused(&rows, &[0; 16], "tag 1000 is there twice");
    }

    #[test]
    fn bytes_are_those_of_one_tag() {
        for (kind, width) in [(2, 1), (3, 2), (4, 4), (5, 8), (7, 1)] {
            end(&two_rows(kind, 2 * width, 2), &[0; 32][..4 * width as usize]).unwrap();
            let shared = &[0; 32][..3 * width as usize];
            refused(&two_rows(kind, width, 2), shared, "tag 2 shares bytes");
        }
        for kind in [8, 9] {
            end(&two_rows(kind, 4, 3), b"a\0b\0\0\0c\0").unwrap();
            refused(&two_rows(kind, 2, 3), b"a\0b\0\0\0", "tag 2 shares bytes");
        }
        end(&[[1, 6, 0, 1], [2, 6, 3, 1]], b"ab\0\0").unwrap();
        refused(&[[1, 6, 0, 1], [2, 6, 1, 1]], b"ab\0", "tag 2 shares bytes");
    }

    /// Rows of two tags of one type, the second at `at` with `count` values.
    fn two_rows(kind: u32, at: u32, count: u32) -> [[u32; 4]; 2] {
        [[1, kind, 0, 2], [2, kind, at, count]]
    }

    #[test]
    fn texts_that_are_not_utf8_are_noticed() {
        let summary = IndexTag::RPMTAG_SUMMARY as u32;
        assert_eq!(odd_fields(&[[summary, 9, 0, 2]], b"a\xe4\0b\0"), ["summary"]);
        // Texts of another language do not count, nor does U+FFFD that another tool wrote.
        assert!(odd_fields(&[[summary, 9, 0, 2]], b"\xef\xbf\xbd\0b\xe4\0").is_empty());
        let changes = IndexTag::RPMTAG_CHANGELOGTEXT as u32;
        assert_eq!(odd_fields(&[[changes, 8, 0, 13]], &texts_odd_at(9)), ["change log"]);
        assert!(odd_fields(&[[changes, 8, 0, 14]], &texts_odd_at(10)).is_empty());
        let bases = IndexTag::RPMTAG_BASENAMES as u32;
        assert_eq!(odd_fields(&[[bases, 8, 0, 14]], &texts_odd_at(10)), ["file names"]);
        assert!(odd_fields(&[[bases, 7, 0, 2]], b"\xff\xff").is_empty());
    }

    fn odd_fields(rows: &[[u32; 4]], data: &[u8]) -> Vec<&'static str> {
        read(rows, data).unwrap().1.named().collect()
    }

    fn texts_odd_at(at: usize) -> Vec<u8> {
        [b"x\0".repeat(at), b"\xff\0".to_vec(), b"x\0".repeat(3)].concat()
    }

    #[test]
    fn tags_lie_in_the_data() {
        refused(&[[1, 4, 0, 1]], &[0; 3], "tag 1 lies outside");
        refused(&[[1, 4, 4, 1]], &[0; 4], "tag 1 lies outside");
        refused(&[[1, 2, 5, 1]], &[0; 4], "tag 1 lies outside");
        refused(&[[1, 5, 0, u32::MAX]], &[0; 8], "tag 1 lies outside");
        refused(&[[1, 4, 1, 1]], &[0; 8], "tag 1 lies outside");
        refused(&[[1, 4, 0, 0]], &[0; 8], "tag 1 lies outside");
        refused(&[[1, 6, 0, 1]], b"a", "tag 1 has a string that does not end");
        refused(&[[1, 8, 0, 2]], b"ab\0c", "tag 1 has a string that does not end");
    }
}
