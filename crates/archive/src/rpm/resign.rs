//! Signing of finished packages.
//!
//! Lead, header and payload stay the same, byte for byte. The signature block between lead and header is
//! rebuilt with the old digests and sizes, and with the new signature in place of all old ones. It gets the
//! SHA-256 of the header if it lacks that: rpm 6 refuses packages without one, signed or not. Signatures over
//! header and payload together (1002, 1005) are obsolete and not made.

use rpm::{Header, HeaderEntry, IndexData, IndexSignatureTag, IndexTag, PackageMetadata};
use sha2::{Digest as _, Sha256};

use super::front::Front;
use super::signer::{HeaderSignature, HeaderSigner, SignatureTag};
use rockpack_core::content::{Content, hex};
use rockpack_core::error::{Error, Result};

/// SHA-256 of the header.
const SHA256: u32 = 273;

/// Tags of digests and sizes: LONGSIZE, LONGARCHIVESIZE, SHA1, SHA256, SHA3_256, SIZE, MD5, PAYLOADSIZE.
const KEPT: [u32; 8] = [270, 271, 269, SHA256, 279, 1000, 1004, 1007];

/// Replaces all signatures of `package` by one of `signer`.
pub fn signed(package: &Content, signer: &HeaderSigner) -> Result<Content> {
    let Front { metadata, header, .. } = Front::read(package)?;
    let bytes = package.read_vec(header.clone(), u64::MAX, "rpm header")?;
    let HeaderSignature { tag, packet } = (signer.sign)(&bytes)?;
    let mut entries = Vec::new();
    for tag in KEPT {
        let data = if metadata.signature.entry_is_present(tag) {
            metadata.signature.entry(tag).map_err(fault)?
        } else if tag == SHA256 {
            IndexData::StringTag(hex(&Sha256::digest(&bytes)))
        } else {
            continue;
        };
        entries.push(HeaderEntry::new(tag, data));
    }
    let tag = match tag {
        SignatureTag::Rsa => IndexSignatureTag::RPMSIGTAG_RSA,
        SignatureTag::Dsa => IndexSignatureTag::RPMSIGTAG_DSA,
    };
    entries.push(HeaderEntry::new(tag.into(), IndexData::Bin(packet)));
    let front = PackageMetadata {
        lead: metadata.lead,
        signature: Header::from_entries(entries, IndexSignatureTag::HEADER_SIGNATURES),
        header: Header::from_entries([], IndexTag::RPMTAG_HEADERIMMUTABLE),
    };
    let mut block = Vec::new();
    front.write(&mut block).map_err(fault)?;
    let end = usize::try_from(front.get_package_segment_offsets().header).ok();
    block.truncate(end.ok_or_else(|| Error::bug("signature larger than memory"))?);
    let rest = package.slice(header.start..package.len())?;
    Ok(Content::concat([&Content::of_bytes(block), &rest]))
}

fn fault(source: rpm::Error) -> Error {
    Error::bug("cannot assemble the signature of an rpm").cause(source)
}
