//! Searches files for the first bytes of device code: offload bundles, plain or compressed, and ELF files. Refuses
//! bundles in files whose section headers do not list them.
//!
//! Each byte is read once, by the C library's search for a single byte: of all bytes of the magics, `O` and
//! the first one of ELF are the rarest in libraries.

use std::io::BufRead;
use std::num::TryFromIntError;
use std::ops::Range;

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_elf::{ElfFile, ccob, offload_bundle};

const ELF_MAGIC: &[u8; 4] = b"\x7fELF";

/// Bytes searched for magics at once.
const WINDOW: usize = 1 << 20;

/// Minimum number of bytes available from a magic on, unless the file ends: more than any of the headers.
const HEAD: usize = 128;

/// A magic, and the place in it of the byte that is searched for.
type Magic = (&'static [u8], usize);

/// Magics by the byte that the search looks for.
const MAGICS: [(u8, &[Magic]); 2] =
    [(b'O', &[(offload_bundle::MAGIC, 8), (ccob::MAGIC, 2)]), (0x7f, &[(ELF_MAGIC, 0)])];

/// Judges a hit by its offset and at least some of the bytes from there on.
type Matcher<'a, T> = &'a dyn Fn(u64, &[u8]) -> Result<Option<T>>;

/// The first result of `matcher` for a magic in `range` of the file `content`.
pub(super) fn first<T>(
    content: &Content,
    range: Range<u64>,
    matcher: Matcher<'_, T>,
) -> Result<Option<T>> {
    let mut window = vec![0; WINDOW + HEAD];
    let end = content.len().min(range.end.saturating_add(HEAD as u64));
    let mut at = range.start;
    while at < range.end {
        let len = usize::try_from(end.saturating_sub(at).min((WINDOW + HEAD) as u64));
        let bytes = &mut window[..len.map_err(huge_window)?];
        content.read_at(at, bytes)?;
        let starts = usize::try_from((range.end - at).min(WINDOW as u64)).map_err(huge_window)?;
        for start in magics(bytes).into_iter().take_while(|start| *start < starts) {
            if let Some(found) = matcher(at + start as u64, &bytes[start..])? {
                return Ok(Some(found));
            }
        }
        at += WINDOW as u64;
    }
    Ok(None)
}

fn huge_window(_: TryFromIntError) -> Error {
    Error::bug("window above usize")
}

fn magics(bytes: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    for (byte, magics) in MAGICS {
        for at in positions_of(byte, bytes) {
            let starts = magics.iter().filter_map(|(magic, skip)| {
                let start = at.checked_sub(*skip)?;
                bytes[start..].starts_with(magic).then_some(start)
            });
            found.extend(starts);
        }
    }
    found.sort_unstable();
    found
}

fn positions_of(byte: u8, bytes: &[u8]) -> impl Iterator<Item = usize> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let passed = rest.skip_until(byte).ok()?;
        let at = (bytes.len() - rest.len()).checked_sub(1)?;
        // After the last hit, the rest is skipped.
        (passed > 0 && bytes[at] == byte).then_some(at)
    })
}

/// Fails if a load segment of `file` holds an offload bundle that is in no section, for the reason `why`:
/// it cannot be removed, and packing it would put device code into a host package unnoticed.
pub fn refuse_bundles(file: &ElfFile, why: &str) -> Result<()> {
    for range in ranges(file) {
        let matcher: Matcher<'_, u64> = &|at, head| Ok(is_bundle(head).then_some(at));
        if let Some(offset) = first(file.content(), range, matcher)? {
            let message = format!("holds an offload bundle, but {why}");
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

/// Whether the bytes are the head of a bundle, not a constant in a program that searches for the magic.
fn is_bundle(bytes: &[u8]) -> bool {
    match bytes.strip_prefix(offload_bundle::MAGIC) {
        Some(rest) => is_entry_table(rest).unwrap_or(false),
        None => {
            bytes.starts_with(ccob::MAGIC) && ccob::read_header(&Content::of_bytes(bytes)).is_ok()
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn places(bytes: &[u8]) -> Vec<u64> {
        let content = Content::of_bytes(bytes);
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(place) = first(&content, at..content.len(), &|at, _| Ok(Some(at))).unwrap() {
            found.push(place);
            at = place + 1;
        }
        found
    }

    #[test]
    fn magics_are_found_wherever_they_stand() {
        let magics: [&[u8]; 3] = [offload_bundle::MAGIC, ccob::MAGIC, ELF_MAGIC];
        for magic in magics {
            for before in [0, 1, 3, 4095, WINDOW - 9, WINDOW - 1, WINDOW, WINDOW + HEAD - 2] {
                for filler in [0, b'O', b'C', b'_', 0x7f] {
                    let bytes = [&vec![filler; before], magic, &[filler; 3]].concat();
                    let found = places(&bytes);
                    assert!(found.contains(&(before as u64)), "{before} {filler}");
                    assert!(found.len() == 1, "{before} {filler} {found:?}");
                }
            }
        }
        assert!(places(b"CCO__CLANG_OFFLOAD_BUNDLE\x7fEL").is_empty());
        assert!(places(b"").is_empty());
        assert_eq!(places(b"OCCOBCCOB\x7fELFO"), [1, 5, 9]);
    }

    #[test]
    fn nothing_outside_of_the_range_is_judged() {
        let content = Content::of_bytes(*b"CCOB--CCOB--CCOB");
        for (range, expected) in [(1..16, Some((6, 10))), (1..6, None), (12..13, Some((12, 4)))] {
            let judged = first(&content, range, &|at, head| Ok(Some((at, head.len())))).unwrap();
            assert_eq!(judged, expected);
        }
    }

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
    fn the_magic_alone_is_not_a_bundle() {
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
