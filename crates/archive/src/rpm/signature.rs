//! Lead, signature and header as one block of bytes in front of the payload.
//!
//! ```text
//! signature  267 or 268: OpenPGP signature of the header, by Ed25519 or RSA
//!            269 SHA1, 273 SHA256 of the header   1000 SIZE (header and payload)
//!            270 LONGSIZE, 271 LONGARCHIVESIZE    1007 PAYLOADSIZE (archive before compression)
//!                   (those of 4 GiB and more)     1008 RESERVEDSPACE, zeros for a later signature
//! ```
//!
//! rpmbuild also writes 1004, an MD5 over header and payload, which one pass cannot know; rpm has verified
//! packages by the other digests since 4.14. The reserved space shrinks by the bytes of a signature and of
//! long sizes. So the block of a package has the same size with and without a signature.
//!
//! A signature covers the header, and with it the digests of payload and files. It equals the signature that
//! `rpmsign` makes for a package of format 4; signatures over header and payload (1002, 1005) are obsolete
//! and not made.

use std::sync::Arc;

use rpm::{Header, HeaderEntry, IndexData, IndexSignatureTag, IndexTag, Lead, PackageMetadata};
use rpm::{RpmFormat, SignatureHeaderBuilder};
use sha2::{Digest as _, Sha256};

use super::front::RpmFront;
use super::header::{self, PayloadFacts};
use super::specification::RpmSpecification;
use super::structure::HEADER_SIZE;
use rockpack_core::content::{Content, hex};
use rockpack_core::error::{Error, Kind, Result};

const LONG_SIZE: u32 = 270;
const LONG_ARCHIVE_SIZE: u32 = 271;

/// Bytes of RESERVEDSPACE that rpmbuild writes: 4096, and a header entry with its region.
const RESERVED: usize = 4128;

/// Bytes of data in front of RESERVEDSPACE if both sizes are short: the minimum.
const SHORT_SIZES: usize = 116;

const INDEX_ENTRY: usize = 16;

/// The bytes in front of the payload. Their number does not depend on a signature.
pub(super) fn front(
    specification: &RpmSpecification,
    facts: &PayloadFacts,
    signer: Option<&HeaderSigner>,
) -> Result<Vec<u8>> {
    let tags = header::entries(specification, facts)?;
    let header = Header::from_entries(tags, IndexTag::RPMTAG_HEADERIMMUTABLE);
    let mut metadata = PackageMetadata {
        lead: Lead::new(&format!("{}-{}", specification.name, specification.evr())),
        signature: Header::<IndexSignatureTag>::new_empty(),
        header,
    };
    let bytes = metadata.header_bytes().map_err(fault)?;
    // rpm does not count the magic.
    if bytes.len() as u64 >= HEADER_SIZE + 8 {
        let message = format!("header of {} bytes exceeds rpm's limit", bytes.len());
        return Err(Error::new(Kind::Limit, message).structure("rpm header"));
    }
    let signed = signer.map(|signer| (signer.sign)(&bytes)).transpose()?;
    metadata.signature = signature(&bytes, facts, signed)?;
    let mut front = Vec::new();
    metadata.write(&mut front).map_err(fault)?;
    Ok(front)
}

/// Makes the signature block. The crate's own builder knows neither PAYLOADSIZE nor LONGARCHIVESIZE.
fn signature(
    header: &[u8],
    facts: &PayloadFacts,
    signed: Option<HeaderSignature>,
) -> Result<Header<IndexSignatureTag>> {
    let digests = SignatureHeaderBuilder::new()
        .format(RpmFormat::V4)
        .reserved_space(None)
        .calculate_digests(header)
        .build()
        .map_err(fault)?;
    let mut entries = Vec::new();
    for tag in [IndexSignatureTag::RPMSIGTAG_SHA1, IndexSignatureTag::RPMSIGTAG_SHA256] {
        let digest = digests.get_entry_data_as_string(tag).map_err(fault)?;
        let data = IndexData::StringTag(digest.to_owned());
        entries.push(HeaderEntry::new(tag.into(), data));
    }
    let total = header.len() as u64 + facts.payload_size;
    let sizes = [
        size_entry(total, IndexSignatureTag::RPMSIGTAG_SIZE, LONG_SIZE),
        size_entry(facts.archive_size, IndexSignatureTag::RPMSIGTAG_PAYLOADSIZE, LONG_ARCHIVE_SIZE),
    ];
    let signature_len = signed.as_ref().map_or(0, |signed| signed.packet.len());
    let index = if signed.is_some() { INDEX_ENTRY } else { 0 };
    let taken = before_reserved(signature_len, &sizes) + index;
    let reserved = (RESERVED + SHORT_SIZES).checked_sub(taken).ok_or_else(|| {
        let message = format!("a signature of {signature_len} bytes is too long for an rpm");
        Error::new(Kind::Limit, message).hint("sign with RSA of 4096 bits or less, or Ed25519")
    })?;
    let reserved = IndexData::Bin(vec![0; reserved]);
    entries.extend(signed.map(HeaderSignature::into_entry));
    entries.extend(sizes);
    let tag = IndexSignatureTag::RPMSIGTAG_RESERVEDSPACE.into();
    entries.push(HeaderEntry::new(tag, reserved));
    Ok(Header::from_entries(entries, IndexSignatureTag::HEADER_SIGNATURES))
}

/// Bytes of data in front of RESERVEDSPACE. Data follows the order of the tags: the signature,
/// SHA1 (41 bytes), long sizes (aligned to 8), SHA256 (65 bytes), short sizes (aligned to 4).
fn before_reserved(signature: usize, sizes: &[HeaderEntry]) -> usize {
    let long = sizes.iter().filter(|entry| matches!(entry.data, IndexData::Int64(_))).count();
    let mut at: usize = signature + 41;
    for _ in 0..long {
        at = at.next_multiple_of(8) + 8;
    }
    at += 65;
    for _ in long..sizes.len() {
        at = at.next_multiple_of(4) + 4;
    }
    at
}

fn size_entry(size: u64, short: IndexSignatureTag, long: u32) -> HeaderEntry {
    match u32::try_from(size) {
        Ok(size) => HeaderEntry::new(short.into(), IndexData::Int32(vec![size])),
        Err(_) => HeaderEntry::new(long, IndexData::Int64(vec![size])),
    }
}

fn fault(source: rpm::Error) -> Error {
    Error::bug("cannot assemble the rpm header").cause(source)
}

/// The tag of a header's signature: rpm has one for each algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureTag {
    /// RSAHEADER.
    Rsa,
    /// DSAHEADER, for DSA and Ed25519.
    Dsa,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderSignature {
    pub tag: SignatureTag,
    /// One OpenPGP signature packet.
    pub packet: Vec<u8>,
}

impl HeaderSignature {
    fn into_entry(self) -> HeaderEntry {
        let tag = match self.tag {
            SignatureTag::Rsa => IndexSignatureTag::RPMSIGTAG_RSA,
            SignatureTag::Dsa => IndexSignatureTag::RPMSIGTAG_DSA,
        };
        HeaderEntry::new(tag.into(), IndexData::Bin(self.packet))
    }
}

#[derive(Clone, derive_more::Debug)]
#[debug("HeaderSigner")]
pub struct HeaderSigner {
    /// Signs the header's bytes, magic included.
    pub sign: Arc<SignFunction>,
}

type SignFunction = dyn Fn(&[u8]) -> Result<HeaderSignature> + Send + Sync;

const SHA256: u32 = 273;

/// Tags of digests and sizes: LONGSIZE, LONGARCHIVESIZE, SHA1, SHA256, SHA3_256, SIZE, MD5, PAYLOADSIZE.
const KEPT_TAGS: [u32; 8] = [270, 271, 269, SHA256, 279, 1000, 1004, 1007];

/// Replaces all signatures of the finished `package` by one of `signer`.
///
/// Lead, header and payload stay the same, byte for byte. The signature block between lead and header is
/// rebuilt with the old digests and sizes, and with the new signature in place of all old ones. It gets the
/// SHA-256 of the header if it lacks that: rpm 6 refuses packages without one, signed or not.
pub fn signed(package: &Content, signer: &HeaderSigner) -> Result<Content> {
    let RpmFront { metadata, header, .. } = RpmFront::read(package)?;
    let bytes = package.read_vec(header.clone(), u64::MAX, "rpm header")?;
    let signature = (signer.sign)(&bytes)?;
    let mut entries = Vec::new();
    for tag in KEPT_TAGS {
        let data = if metadata.signature.entry_is_present(tag) {
            metadata.signature.entry(tag).map_err(block_fault)?
        } else if tag == SHA256 {
            IndexData::StringTag(hex(&Sha256::digest(&bytes)))
        } else {
            continue;
        };
        entries.push(HeaderEntry::new(tag, data));
    }
    entries.push(signature.into_entry());
    let front = PackageMetadata {
        lead: metadata.lead,
        signature: Header::from_entries(entries, IndexSignatureTag::HEADER_SIGNATURES),
        header: Header::from_entries([], IndexTag::RPMTAG_HEADERIMMUTABLE),
    };
    let mut block = Vec::new();
    front.write(&mut block).map_err(block_fault)?;
    let end = usize::try_from(front.get_package_segment_offsets().header).ok();
    block.truncate(end.ok_or_else(|| Error::bug("signature larger than memory"))?);
    let rest = package.slice(header.start..package.len())?;
    Ok(Content::concat([&Content::of_bytes(block), &rest]))
}

fn block_fault(source: rpm::Error) -> Error {
    Error::bug("cannot assemble the signature of an rpm").cause(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_long_sizes_nor_signatures_move_what_follows() {
        let long = 1 << 33;
        let short = header_offset(1, 1, 0);
        for signed in [0, 119, 120, 121, 122, 563, 1000] {
            let all = [
                header_offset(1, 1, signed),
                header_offset(long, 1, signed),
                header_offset(long, long, signed),
            ];
            assert_eq!(all, [short; 3], "{signed}");
        }
        let facts = PayloadFacts { payload_size: 1, ..PayloadFacts::blank(&[], 1) };
        let long = HeaderSignature { tag: SignatureTag::Rsa, packet: vec![1; 5000] };
        assert!(signature(b"header", &facts, Some(long)).is_err());
    }

    fn header_offset(total: u64, archive: u64, signed: usize) -> u64 {
        let facts = PayloadFacts { payload_size: total, ..PayloadFacts::blank(&[], archive) };
        let (tag, packet) = (SignatureTag::Dsa, vec![1; signed]);
        let signed = (signed > 0).then_some(HeaderSignature { tag, packet });
        let signature = signature(b"header", &facts, signed).unwrap();
        let metadata = PackageMetadata {
            lead: Lead::new("x"),
            signature,
            header: Header::from_entries([], IndexTag::RPMTAG_HEADERIMMUTABLE),
        };
        metadata.get_package_segment_offsets().header
    }
}
