//! Device code in files whose section headers do not show it.

use std::ops::Range;

use rockpack_core::content::Content;
use rockpack_core::error::{Kind, Result};
use rockpack_elf::ElfFile;
use rockpack_elf::ccob;
use rockpack_elf::offload_bundle;

use super::search;

/// Fails if a load segment of `file` holds an offload bundle that sections do not show, for the reason `why`:
/// it cannot be removed, and passing it on would put device code into a host package unnoticed.
pub fn refuse_bundles(file: &ElfFile, why: &str) -> Result<()> {
    for range in ranges(file) {
        if let Some(offset) = find(file, range)? {
            let message = format!("holds an offload bundle, and {why}");
            let error = file.refuse(Kind::Unsupported, "load segment", offset, message);
            return Err(
                error.hint("do not change the section headers of binaries with device code")
            );
        }
    }
    Ok(())
}

/// The bytes of all load segments inside the file, by offset. Shared bytes are in one range only.
fn ranges(file: &ElfFile) -> Vec<Range<u64>> {
    let len = file.content().len();
    let mut all: Vec<Range<u64>> = file
        .loads()
        .map(|(_, load)| load.p_offset..load.file_end().min(len))
        .filter(|range| range.start < range.end)
        .collect();
    all.sort_by_key(|range| range.start);
    all.dedup_by(|next, last| {
        let joined = next.start <= last.end;
        if joined {
            last.end = last.end.max(next.end);
        }
        joined
    });
    all
}

/// Offset of the first bundle in a range of the file.
fn find(file: &ElfFile, range: Range<u64>) -> Result<Option<u64>> {
    search::first(file.content(), range, &|at, head| Ok(is_bundle(head).then_some(at)))
}

/// Whether the bytes are the head of a bundle rather than of a program that knows its magic.
fn is_bundle(bytes: &[u8]) -> bool {
    match bytes.strip_prefix(offload_bundle::MAGIC) {
        Some(rest) => is_entry_table(rest).unwrap_or(false),
        None if bytes.starts_with(ccob::MAGIC) => is_compressed(bytes),
        None => false,
    }
}

/// Whether the bytes look like an entry table. Less strict than reading the table: damaged or unknown entries
/// are device code too.
fn is_entry_table(bytes: &[u8]) -> Option<bool> {
    let count = word_at(bytes, 0)?;
    let id_length = usize::try_from(word_at(bytes, 3)?).ok()?;
    let id = bytes.get(32..32usize.checked_add(id_length.min(16))?)?;
    let named = id_length > 0 && id.iter().all(u8::is_ascii_graphic);
    Some((1..=offload_bundle::ENTRY_LIMIT).contains(&count) && named)
}

fn word_at(bytes: &[u8], index: usize) -> Option<u64> {
    let bytes = bytes.get(index * 8..index * 8 + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

fn is_compressed(bytes: &[u8]) -> bool {
    ccob::read_header(&Content::of_bytes(bytes)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of load segments (offset, bytes in the file).
    fn file(loads: &[(u64, u64)]) -> ElfFile {
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(64, 0);
        (bytes[16], bytes[18], bytes[32]) = (3, 62, 64);
        (bytes[54], bytes[56]) = (56, u8::try_from(loads.len()).unwrap());
        for (offset, size) in loads {
            bytes.extend([1, 4].map(u32::to_le_bytes).concat());
            bytes.extend([*offset, 0, 0, *size, *size, 0].map(u64::to_le_bytes).concat());
        }
        bytes.resize(0x1000, 0);
        let content = Content::of_bytes(bytes);
        ElfFile::read(&content, object::elf::EM_X86_64).unwrap().unwrap()
    }

    /// Otherwise each of the file's many segments could cost a scan of its whole length.
    #[test]
    fn bytes_of_many_segments_are_looked_at_once() {
        assert_eq!(bytes_looked_at(&[(0, 0x1000); 20]), [(0, 0x1000)]);
        let loads = [(0x800, 0x100), (0x100, 0x200), (0x280, 0x100), (0x380, 0x80), (0x120, 8)];
        assert_eq!(bytes_looked_at(&loads), [(0x100, 0x400), (0x800, 0x900)]);
        let outside = [(0xf00, u64::MAX), (0x2000, 8), (u64::MAX, u64::MAX), (0x100, 0)];
        assert_eq!(bytes_looked_at(&outside), [(0xf00, 0x1000)]);
    }

    fn bytes_looked_at(loads: &[(u64, u64)]) -> Vec<(u64, u64)> {
        ranges(&file(loads)).iter().map(|range| (range.start, range.end)).collect()
    }

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
