//! The front of an `.rpm`: lead, signature and header, before the payload.
//!
//! `structure` checks the headers before the `rpm` crate parses them, because that parser trusts offsets and
//! counts, and copies the data of each tag. Refused: a lead that rpm 4 refuses, wrong digests of the header,
//! and paths that are too long, or that together take far more bytes than the header.

use std::ops::Range;

use rpm::{DigestStatus, Header, IndexSignatureTag, IndexTag, PackageMetadata};
use sha2::{Digest as _, Sha256};

use super::files::check_paths;
use super::structure::{self, HEADER_SIZE, NonUtf8Texts, be32};
use super::{LEAD_MAGIC, LEAD_SIZE, fault, mismatch};
use rockpack_core::content::{Content, Sha256Digest, hex};
use rockpack_core::error::{Error, Result};
use rockpack_core::package_format::MissingDigest;

/// A tag number that rpm does not use.
const UNUSED_TAG: u32 = 0x7fff_fffe;

/// SHA-256 of the stored payload, and of the uncompressed one. rpm accepts either as that of the stored bytes.
const PAYLOAD_SHA256: [IndexTag; 2] =
    [IndexTag::RPMTAG_PAYLOADSHA256, IndexTag::RPMTAG_PAYLOADSHA256ALT];

/// SHA-512 and SHA3-256 of the payload, in the header.
const PAYLOAD_DIGESTS: [u32; 2] = [5121, 5123];

/// Tags of a signature, each with the header tag of the same meaning; rpm rejects a package with both.
const EXCLUSIVE_TAGS: [(u32, u32); 3] = [(274, 5090), (275, 5091), (1007, 1046)];

/// Lead, signature and header of a package. The header matches the digest and size in the signature.
#[derive(Debug)]
pub struct RpmFront {
    /// All tags, through the `rpm` crate.
    pub metadata: PackageMetadata,
    /// The header, as a range of the package; the payload follows it.
    pub header: Range<u64>,
    /// Texts of the header that are not UTF-8.
    pub(super) non_utf8: NonUtf8Texts,
}

impl RpmFront {
    pub fn read(package: &Content) -> Result<Self> {
        check_lead(package).map_err(|e| e.structure("rpm lead").at(&package.place(0)))?;
        let (signature_end, _) = structure::check(package, LEAD_SIZE as u64, structure::SIGNATURE)?;
        let no_header = || Error::truncated("ends in the signature").at(&package.place(0));
        let start = signature_end.checked_next_multiple_of(8).ok_or_else(no_header)?;
        let (end, non_utf8) = structure::check(package, start, structure::HEADER)?;
        let front = package.read_vec(0..end, 3 * HEADER_SIZE, "rpm header")?;
        let at = usize::try_from(start).map_err(|_| Error::bug("header offset"))?;
        let metadata = parse(&front).map_err(|e| e.at(&package.place(start)))?;
        check_signature(&metadata, package.len() - start)
            .map_err(|e| e.at(&package.place(LEAD_SIZE as u64)))?;
        let lenient =
            non_utf8.is_any().then(|| parse(&without_encoding(&front, at))).transpose()?;
        let read = Self { metadata: lenient.unwrap_or(metadata), header: start..end, non_utf8 };
        check_paths(&read.metadata.header, end - start).map_err(|e| e.at(&package.place(start)))?;
        Ok(read)
    }

    /// The SHA-256 of the whole package. Fails if the header states digests of the payload, and none matches.
    pub fn digest(&self, package: &Content) -> Result<Sha256Digest> {
        let (mut whole, mut payload) = (Sha256::new(), Sha256::new());
        let mut front = usize::try_from(self.header.end).unwrap_or(usize::MAX);
        package.each_window(|bytes| {
            let before = front.min(bytes.len());
            front -= before;
            whole.update(bytes);
            payload.update(&bytes[before..]);
        })?;
        check_payload(&self.metadata.header, &payload.finalize())
            .map_err(|e| e.at(&package.place(self.header.end)))?;
        let whole: [u8; 32] = whole.finalize().into();
        Ok(whole.into())
    }

    /// Names of the fields with texts that are not UTF-8. U+FFFD replaces their invalid bytes.
    pub fn not_utf8(&self) -> impl Iterator<Item = &'static str> {
        self.non_utf8.field_names()
    }

    /// Size of the uncompressed payload in bytes, from the signature or else the header; 0 if neither states it.
    pub fn archive_size(&self) -> Result<u64> {
        let stated = archive_size(&self.metadata.signature)?
            .or(number(&self.metadata.header, IndexTag::RPMTAG_ARCHIVESIZE as u32)?);
        Ok(stated.unwrap_or(0))
    }
}

/// Checks the fields of the lead that rpm 4 reads: the magic, the format version and the signature type.
fn check_lead(package: &Content) -> Result<()> {
    let lead: [u8; LEAD_SIZE] = package.read_array(0)?;
    if !lead.starts_with(&LEAD_MAGIC) {
        return Err(Error::malformed("has no rpm lead"));
    }
    if !matches!((lead[4], &lead[78..80]), (3 | 4, [0, 5])) {
        return Err(Error::malformed("has a format version or signature type that rpm 4 refuses"));
    }
    Ok(())
}

fn parse(mut front: &[u8]) -> Result<PackageMetadata> {
    PackageMetadata::parse(&mut front)
        .map_err(|e| Error::malformed("cannot parse the rpm header").cause(e))
}

/// Compares the header's digests and the size of header and payload with the signature. Packages of old
/// tools only have the SHA-1, which proves nothing; but rpm refuses the package if it is wrong.
fn check_signature(metadata: &PackageMetadata, size: u64) -> Result<()> {
    let found = metadata.check_digests().map_err(|e| fault("has invalid digests").cause(e))?;
    let digests = [
        (IndexSignatureTag::RPMSIGTAG_SHA256, "SHA-256", found.header_sha256),
        (IndexSignatureTag::RPMSIGTAG_SHA1, "SHA-1", found.header_sha1),
        (IndexSignatureTag::RPMSIGTAG_SHA3_256, "SHA3-256", found.header_sha3_256),
    ];
    for (tag, name, status) in digests {
        let is_wrong = match status {
            // rpm accepts hex digits of both cases.
            DigestStatus::Mismatch { expected, actual } => !expected.eq_ignore_ascii_case(&actual),
            DigestStatus::NotPresent => metadata.signature.entry_is_present(tag),
            DigestStatus::Verified | DigestStatus::NotChecked => false,
        };
        if is_wrong {
            return Err(mismatch(&format!("the header's {name} differs from the signature's")));
        }
    }
    let has_both = |(twin, tag): &&(u32, u32)| {
        metadata.signature.entry_is_present(*twin) && metadata.header.entry_is_present(*tag)
    };
    if let Some((twin, tag)) = EXCLUSIVE_TAGS.iter().find(has_both) {
        return Err(fault(&format!("has both tag {tag} and its twin {twin} in the signature")));
    }
    let (short, long) = (IndexSignatureTag::RPMSIGTAG_SIZE, IndexTag::RPMTAG_LONGSIGSIZE);
    match stated_size(&metadata.signature, short, long)? {
        Some(stated) if stated != size => Err(mismatch(&format!(
            "header and payload have {size} bytes, the signature states {stated}"
        ))),
        _ => Ok(()),
    }
}

/// The digest that a package lacks: rpm 6 requires one of the payload, rpm 4 one of the header.
pub fn missing_digest(metadata: &PackageMetadata) -> Option<MissingDigest> {
    let PackageMetadata { signature, header, .. } = metadata;
    let mut digests = PAYLOAD_SHA256.map(|tag| tag as u32).into_iter().chain(PAYLOAD_DIGESTS);
    if !digests.any(|tag| header.entry_is_present(tag)) {
        Some(MissingDigest::Payload)
    } else if !signature.entry_is_present(IndexSignatureTag::RPMSIGTAG_SHA256) {
        Some(MissingDigest::Header)
    } else {
        None
    }
}

/// Compares the SHA-256 of the payload with the stated ones. rpm does not read the tag of the algorithm.
pub(super) fn check_payload(header: &Header<IndexTag>, digest: &[u8]) -> Result<()> {
    let digest = hex(digest);
    let stated = PAYLOAD_SHA256.map(|tag| header.get_entry_data_as_string_array(tag));
    let mut stated = stated.iter().flatten().filter_map(|digests| digests.first()).peekable();
    if stated.peek().is_none() || stated.any(|stated| stated.eq_ignore_ascii_case(&digest)) {
        Ok(())
    } else {
        Err(mismatch("the payload's SHA-256 differs from the header's"))
    }
}

/// Size of the uncompressed payload in bytes; `None` if the signature does not state it.
pub(super) fn archive_size(signature: &Header<IndexSignatureTag>) -> Result<Option<u64>> {
    let short = IndexSignatureTag::RPMSIGTAG_PAYLOADSIZE;
    stated_size(signature, short, IndexTag::RPMTAG_LONGARCHIVESIZE)
}

/// A size that a signature states in a 32-bit or a 64-bit tag. Both must agree: each reader ignores one of them.
fn stated_size(
    signature: &Header<IndexSignatureTag>,
    short: IndexSignatureTag,
    long: IndexTag,
) -> Result<Option<u64>> {
    match (number(signature, short as u32)?, number(signature, long as u32)?) {
        (Some(short), Some(long)) if short != long => {
            Err(mismatch(&format!("the signature states a size as both {short} and {long} bytes")))
        }
        (short, long) => Ok(short.or(long)),
    }
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

pub(super) fn number<T: rpm::Tag>(header: &Header<T>, tag: u32) -> Result<Option<u64>> {
    if !header.entry_is_present(tag) {
        return Ok(None);
    }
    match header.entry(tag) {
        Ok(rpm::IndexData::Int32(numbers)) if numbers.len() == 1 => Ok(Some(numbers[0].into())),
        Ok(rpm::IndexData::Int64(numbers)) if numbers.len() == 1 => Ok(Some(numbers[0])),
        _ => Err(fault(&format!("tag {tag} does not hold a single number"))),
    }
}
