//! Device code in a host binary, wherever it lies: found by its own bytes, so that neither a
//! stripped section table nor another section name hides it.
//!
//! Compilers and runtimes contain the magic of a bundle as a constant; what counts is a magic
//! with a table (or, compressed, a header and the start of a stream) behind it that makes sense.

use crate::content::{Content, WINDOW};
use crate::error::Result;

pub(in crate::verify) const BUNDLE_MAGIC: &[u8; 24] = b"__CLANG_OFFLOAD_BUNDLE__";
pub(in crate::verify) const COMPRESSED_MAGIC: &[u8; 4] = b"CCOB";
/// Longest entry id; real ones have some sixty bytes.
pub(in crate::verify) const ID_LIMIT: u64 = 4096;
/// Most entries of a bundle; there are some hundred targets.
pub(in crate::verify) const ENTRY_LIMIT: u64 = 1 << 16;
/// First bytes of a zstd frame.
pub(super) const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The offset of the first bundle in `content`.
pub(in crate::verify) fn first_bundle(content: &Content) -> Result<Option<u64>> {
    let mut reader = content.reader();
    let mut window = vec![0; WINDOW + BUNDLE_MAGIC.len()];
    // Bytes at the front of the window that the last pass has left over, and where they are.
    let (mut kept, mut base) = (0, 0_u64);
    loop {
        let len = reader.read_window(&mut window[kept..])?;
        let filled = kept + len;
        for at in candidates(&window[..filled]) {
            let offset = base + at as u64;
            if is_bundle(content, offset)? {
                return Ok(Some(offset));
            }
        }
        if len == 0 {
            return Ok(None);
        }
        let keep = filled.min(BUNDLE_MAGIC.len() - 1);
        window.copy_within(filled - keep..filled, 0);
        base += (filled - keep) as u64;
        kept = keep;
    }
}

/// Where a magic stands in `bytes`.
fn candidates(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let magic = |rest: &[u8]| rest.starts_with(BUNDLE_MAGIC) || rest.starts_with(COMPRESSED_MAGIC);
    let firsts = bytes.iter().enumerate().filter(|(_, byte)| matches!(byte, b'_' | b'C'));
    firsts.map(|(at, _)| at).filter(move |at| magic(&bytes[*at..]))
}

fn is_bundle(content: &Content, at: u64) -> Result<bool> {
    let rest = content.slice(at..content.len())?;
    match array::<4>(&rest, 0)? {
        Some(magic) if magic == *COMPRESSED_MAGIC => is_compressed(&rest),
        Some(_) => is_plain(&rest),
        None => Ok(false),
    }
}

/// Whether a table of entries follows, the first with an id and inside of the file.
fn is_plain(bundle: &Content) -> Result<bool> {
    let Some(table) = array::<32>(bundle, 24)? else {
        return Ok(false);
    };
    let (words, _) = table.as_chunks::<8>();
    let [count, offset, size, id_len] = [0, 1, 2, 3].map(|at| u64::from_le_bytes(words[at]));
    let counted = (1..=ENTRY_LIMIT).contains(&count) && (1..=ID_LIMIT).contains(&id_len);
    let inside = offset.checked_add(size).is_some_and(|end| end <= bundle.len());
    if !counted || !inside || 56 + id_len > bundle.len() {
        return Ok(false);
    }
    let id = bundle.read_vec(56..56 + id_len, ID_LIMIT, "entry id")?;
    Ok(id.contains(&b'-') && id.iter().all(u8::is_ascii_graphic))
}

/// Whether a known version, method and sizes follow, and a stream of that method.
fn is_compressed(bundle: &Content) -> Result<bool> {
    let Some([version, 0, method, 0]) = array::<4>(bundle, 4)? else {
        return Ok(false);
    };
    let half = |at| Ok(array::<4>(bundle, at)?.map(|b| u64::from(u32::from_le_bytes(b))));
    let (header, total) = match version {
        1 => (20, Some(bundle.len())),
        2 => (24, half(8)?),
        3 => (32, array::<8>(bundle, 8)?.map(u64::from_le_bytes)),
        _ => return Ok(false),
    };
    let stream = array::<4>(bundle, header)?;
    let begins = match method {
        0 => stream.is_some_and(|bytes| bytes[0] == 0x78),
        1 => stream.is_some_and(|magic| magic == ZSTD_MAGIC || is_skippable(magic)),
        _ => false,
    };
    Ok(begins && total.is_some_and(|total| total > header && total <= bundle.len()))
}

/// Whether these are the first bytes of a skippable zstd frame.
pub(super) fn is_skippable(magic: [u8; 4]) -> bool {
    u32::from_le_bytes(magic) >> 4 == 0x184_d2a5
}

/// The bytes at `at`, if there are as many.
pub(super) fn array<const N: usize>(content: &Content, at: u64) -> Result<Option<[u8; N]>> {
    if at.checked_add(N as u64).is_some_and(|end| end <= content.len()) {
        content.read_array(at).map(Some)
    } else {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle() -> Vec<u8> {
        let id = b"hip-amdgcn-amd-amdhsa--gfx1100";
        let words = [1_u64, 96, 4, id.len() as u64].map(u64::to_le_bytes).concat();
        let mut bytes = [&BUNDLE_MAGIC[..], &words, id].concat();
        bytes.resize(96, 0);
        bytes.extend(b"code");
        bytes
    }

    fn compressed() -> Vec<u8> {
        let mut bytes = b"CCOB\x02\0\x01\0".to_vec();
        bytes.extend([40_u32, 100].map(u32::to_le_bytes).concat());
        bytes.extend([0; 8]);
        bytes.extend(ZSTD_MAGIC);
        bytes.resize(40, 0);
        bytes
    }

    fn found(bytes: Vec<u8>) -> Option<u64> {
        first_bundle(&Content::of_bytes(bytes)).unwrap()
    }

    #[test]
    fn a_bundle_is_found_wherever_it_stands() {
        for device in [bundle(), compressed()] {
            for before in [0, 1, 4095, WINDOW - 10, WINDOW, WINDOW + 13, 2 * WINDOW + 1] {
                let bytes = [vec![b'C'; before], device.clone()].concat();
                assert_eq!(found(bytes), Some(before as u64), "{before}");
            }
        }
    }

    #[test]
    fn the_magic_alone_is_no_bundle() {
        assert_eq!(found([&BUNDLE_MAGIC[..], &[0; 100]].concat()), None);
        assert_eq!(found(BUNDLE_MAGIC.to_vec()), None);
        assert_eq!(found([&b"CCOB\0compressed bundles begin so"[..], &[0; 100]].concat()), None);
        for (device, least) in [(bundle(), 100), (compressed(), 40)] {
            for len in 0..least {
                assert_eq!(found(device[..len].to_vec()), None, "{len}");
            }
        }
    }
}
