//! What is in front of an `.rpm`'s payload: lead, signature and header.
//!
//! The header's structure is checked here before the `rpm` crate parses it, because that parser
//! trusts offsets and counts.

use std::collections::HashSet;
use std::ops::Range;

use rpm::{Header, IndexSignatureTag, IndexTag, PackageMetadata};
use sha2::{Digest as _, Sha256};

use super::{HEADER_MAGIC, LEAD_MAGIC, LEAD_SIZE};
use crate::content::{Content, hex};
use crate::error::{Error, Kind, Result};

/// rpm refuses headers with more data.
const HEADER_DATA_MAX: u64 = 256 << 20;

/// rpm refuses headers with more entries.
const HEADER_ENTRIES_MAX: u64 = 0xffff;

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
        let (short, long) = (IndexSignatureTag::RPMSIGTAG_SIZE, IndexTag::RPMTAG_LONGSIGSIZE);
        match size_of(signature, short, long)? {
            Some(stated) if stated != size => Err(mismatch(&format!(
                "header and payload have {size} bytes, the signature states {stated}"
            ))),
            _ => Ok(()),
        }
    }

    /// Bytes of the payload before compression, as the signature states them; 0 if it does not.
    pub fn archive_size(&self) -> Result<u64> {
        let stated = archive_size(&self.metadata.signature)?
            .or(number(&self.metadata.header, IndexTag::RPMTAG_ARCHIVESIZE as u32)?);
        Ok(stated.unwrap_or(0))
    }
}

/// Bytes of the payload before compression, if a signature states them.
pub(super) fn archive_size(signature: &Header<IndexSignatureTag>) -> Result<Option<u64>> {
    let short = IndexSignatureTag::RPMSIGTAG_PAYLOADSIZE;
    size_of(signature, short, IndexTag::RPMTAG_LONGARCHIVESIZE)
}

/// A size that a signature states under a tag of 32 bits or one of 64. Where both are there, readers
/// take one and pass over the other.
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

/// Checks the structure of the header at `start` and returns where it ends. A tag twice is refused:
/// the `rpm` crate takes the first entry of a tag, and rpm itself the last.
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
    let mut tags = HashSet::new();
    for entry in index.chunks_exact(16) {
        let tag = check_entry(entry, &bytes).map_err(place)?;
        if !tags.insert(tag) {
            return Err(place(Error::malformed(format!("tag {tag} is there twice"))));
        }
    }
    Ok(data + size)
}

/// The tag of an index entry, whose type, alignment and extent are checked; strings must end
/// inside the data.
fn check_entry(entry: &[u8], data: &Content) -> Result<u32> {
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
    Ok(tag)
}

fn be32(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |word, byte| word << 8 | u32::from(*byte))
}

/// A tag of one number, if it is there.
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

pub(super) fn fault(message: &str) -> Error {
    Error::malformed(message.to_owned()).structure("rpm")
}

pub(super) fn mismatch(message: &str) -> Error {
    Error::new(Kind::Verify, message.to_owned()).structure("rpm")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a header ends that has a number under each of `tags`.
    fn end(tags: &[u32]) -> Result<u64> {
        let count = u32::try_from(tags.len()).unwrap();
        let mut bytes = [&HEADER_MAGIC[..], &[0; 4]].concat();
        bytes.extend([count, 4].iter().flat_map(|word| word.to_be_bytes()));
        bytes.extend(tags.iter().flat_map(|tag| [*tag, 4, 0, 1]).flat_map(u32::to_be_bytes));
        bytes.extend([0; 4]);
        header_end(&Content::of_bytes(bytes), 0)
    }

    #[test]
    fn a_tag_is_there_once() {
        assert_eq!(end(&[63, 1000, 1001]).unwrap(), 16 + 3 * 16 + 4);
        let error = end(&[63, 1000, 1001, 1000]).unwrap_err().to_string();
        assert!(error.contains("tag 1000 is there twice"), "{error}");
    }
}
