//! OpenPGP armour: several keys or signatures in one file.
//!
//! ```text
//! -----BEGIN PGP PUBLIC KEY BLOCK-----      RFC 9580, 6.2
//! …
//! -----END PGP PUBLIC KEY BLOCK-----
//! ```
//!
//! gpg and apt read every block of a file; the `pgp` crate reads the first, and ignores the checksum after it.
//! A checksum may be absent (RFC 9580, 6.1). gpg, gpgv, apt and rpm 4 refuse a wrong one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use rockpack_core::error::{Error, Result};

/// The beginning of a block, at the beginning of a line.
const BEGIN: &[u8] = b"-----BEGIN PGP ";

/// Splits a file into its blocks, each with the text up to the next one; the whole file if it has no block.
/// Fails if a block has the checksum of other content.
pub fn blocks(bytes: &[u8]) -> Result<Vec<&[u8]>> {
    let starts: Vec<usize> = (0..bytes.len()).filter(|at| begins_block(bytes, *at)).collect();
    if starts.is_empty() {
        return Ok(vec![bytes]);
    }
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    let blocks = starts.iter().zip(ends).filter_map(|(start, end)| bytes.get(*start..end));
    let blocks: Vec<&[u8]> = blocks.collect();
    if blocks.iter().any(|block| has_other_checksum(block)) {
        return Err(Error::malformed("has OpenPGP armour with a wrong checksum (CRC-24)")
            .hint("the file is damaged: export the key again, or sign again"));
    }
    Ok(blocks)
}

/// Whether the block has a checksum, and not of its content. Content that cannot be decoded has no checksum.
fn has_other_checksum(block: &[u8]) -> bool {
    let lines = block.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let body = lines.skip_while(|line| !line.is_empty());
    let body: Vec<&[u8]> = body.take_while(|line| !line.starts_with(b"-----END ")).collect();
    let is_checksum = |line: &&[u8]| line.len() == 5 && line.starts_with(b"=");
    let Some(at) = body.iter().position(is_checksum) else { return false };
    let (content, stated) = body.split_at(at);
    let Ok(content) = STANDARD.decode(content.concat()) else { return false };
    let [_, checksum @ ..] = crc24(&content).to_be_bytes();
    stated.first() != Some(&format!("={}", STANDARD.encode(checksum)).as_bytes())
}

/// The checksum of RFC 9580, 6.1.1.
fn crc24(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0xB7_04CE, |sum, byte| {
        (0..8).fold(sum ^ (u32::from(*byte) << 16), |sum, _| {
            (sum << 1) ^ if sum & 0x80_0000 == 0 { 0 } else { 0x186_4CFB }
        })
    })
}

fn begins_block(bytes: &[u8], at: usize) -> bool {
    let is_first = at.checked_sub(1).is_none_or(|before| bytes.get(before) == Some(&b'\n'));
    is_first && bytes.get(at..).is_some_and(|rest| rest.starts_with(BEGIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_one() {
        let [one, two] = ["one", "two"]
            .map(|text| format!("-----BEGIN PGP X-----\n\n{text}\n-----END PGP X-----\n"));
        let both = format!("text\n{one}\n{two}");
        let found: Vec<&[u8]> = blocks(both.as_bytes()).unwrap();
        assert_eq!(found, [format!("{one}\n").as_bytes(), two.as_bytes()]);
        let inside = b"\x98\x33 -----BEGIN PGP X-----";
        assert_eq!(blocks(inside).unwrap(), [inside]);
        assert_eq!(blocks(b"").unwrap(), [b""]);
    }

    #[test]
    fn a_checksum_is_right_or_absent() {
        for (end, is_right) in [("=Ic8C", true), ("", true), ("=Ic8D", false), ("=AAAA", false)] {
            let body = format!("MTIzNDU2Nzg5\n{end}");
            let block = format!("-----BEGIN PGP X-----\n\n{body}\n-----END PGP X-----\n");
            assert_eq!(blocks(block.as_bytes()).is_ok(), is_right, "{end}");
        }
    }
}
