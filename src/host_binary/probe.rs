//! Device code in files whose section table was removed.

use crate::content::Content;
use crate::error::{Kind, Result};
use crate::formats::elf::{ElfFile, ProgramHeader};
use crate::formats::{ccob, fatbin, offload_bundle};

/// Where bundles can start.
const STEP: usize = fatbin::ALIGNMENT;

/// Bytes read at once, and how far past its start a bundle is looked at.
const WINDOW: usize = 1 << 20;
const HEAD: usize = 128;

/// Fails if a load segment of `file` holds an offload bundle: without section headers it cannot
/// be taken out, and passing it on would put device code into a host package unnoticed.
pub fn refuse_bundles(file: &ElfFile) -> Result<()> {
    for (_, load) in file.loads() {
        if let Some(offset) = find(file, load)? {
            let message =
                "holds an offload bundle, and there are no section headers to find its parts by";
            let error = file.refuse(Kind::Unsupported, "load segment", offset, message);
            return Err(
                error.hint("do not remove the section headers of binaries with device code")
            );
        }
    }
    Ok(())
}

/// Offset of the first bundle in a segment. Segments may claim more than the file holds.
fn find(file: &ElfFile, load: &ProgramHeader) -> Result<Option<u64>> {
    let content = file.content();
    let end = load.p_offset.saturating_add(load.p_filesz).min(content.len());
    let Some(mut at) = load.p_offset.checked_next_multiple_of(STEP as u64) else {
        return Ok(None);
    };
    let limit = (WINDOW + HEAD) as u64;
    while at < end {
        let window_end = at.saturating_add(limit).min(end);
        let window = content.read_vec(at..window_end, limit, "window")?;
        let starts = (0..window.len()).step_by(STEP).take_while(|skip| *skip < WINDOW);
        for skip in starts {
            if is_bundle(&window[skip..]) {
                return Ok(Some(at + skip as u64));
            }
        }
        at += WINDOW as u64;
    }
    Ok(None)
}

/// Whether the bytes are the head of a bundle rather than of a program that knows its magic.
fn is_bundle(bytes: &[u8]) -> bool {
    match bytes.strip_prefix(offload_bundle::MAGIC) {
        Some(rest) => is_entry_table(rest).unwrap_or(false),
        None if bytes.starts_with(ccob::MAGIC) => is_compressed(bytes),
        None => false,
    }
}

/// Less than reading the table asks: damaged or unknown entries are device code all the same.
fn is_entry_table(bytes: &[u8]) -> Option<bool> {
    let word = |index: usize| -> Option<u64> {
        let bytes = bytes.get(index * 8..index * 8 + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    let count = word(0)?;
    let id_length = usize::try_from(word(3)?).ok()?;
    let id = bytes.get(32..32usize.checked_add(id_length.min(16))?)?;
    let named = id_length > 0 && id.iter().all(u8::is_ascii_graphic);
    Some((1..=offload_bundle::ENTRY_LIMIT).contains(&count) && named)
}

fn is_compressed(bytes: &[u8]) -> bool {
    let head = bytes.get(..HEAD).unwrap_or(bytes);
    ccob::read_header(&Content::of_bytes(head)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_magic_alone_is_no_bundle() {
        let mut bytes = offload_bundle::MAGIC.to_vec();
        bytes.extend_from_slice(&[0; 64]);
        assert!(!is_bundle(&bytes));
        assert!(!is_bundle(b"CCOBwebs"));
        let compressed = [&b"CCOB\x02\0\x01\0"[..], &[7; 16]].concat();
        assert!(is_bundle(&compressed));
        assert!(!is_bundle(&compressed[..23]));
    }

    #[test]
    fn a_header_with_entries_is_a_bundle() {
        let mut bytes = offload_bundle::MAGIC.to_vec();
        for word in [2u64, 4096, 0, 26] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(b"host-x86_64-unknown-linux--");
        assert!(is_bundle(&bytes));
        assert!(!is_bundle(&bytes[..40]));
    }
}
