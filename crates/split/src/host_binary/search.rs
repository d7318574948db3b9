//! Searches files for the first bytes of device code: offload bundles, plain or compressed, and ELF files.
//!
//! Each byte is read once, by the C library's search for a single byte: of all bytes of the magics, `O` and
//! the first one of ELF are the rarest in libraries.

use std::io::BufRead;
use std::num::TryFromIntError;
use std::ops::Range;

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};
use rockpack_elf::ccob;
use rockpack_elf::offload_bundle;

/// First bytes of an ELF file.
pub(super) const ELF_MAGIC: &[u8; 4] = b"\x7fELF";

/// Bytes searched for magics at once.
const WINDOW: usize = 1 << 20;

/// Least number of bytes available from a magic on, unless the file ends: more than any of the headers.
const HEAD: usize = 128;

/// A magic, and the place in it of the byte that is searched for.
type Magic = (&'static [u8], usize);

/// Magics by the byte that the search looks for.
const MAGICS: [(u8, &[Magic]); 2] =
    [(b'O', &[(offload_bundle::MAGIC, 8), (ccob::MAGIC, 2)]), (0x7f, &[(ELF_MAGIC, 0)])];

/// Judges a hit by its offset and at least some of the bytes from there on.
type Judge<'a, T> = &'a dyn Fn(u64, &[u8]) -> Result<Option<T>>;

/// The first result of `judge` for a magic in `range` of the file `content`.
pub(super) fn first<T>(
    content: &Content,
    range: Range<u64>,
    judge: Judge<'_, T>,
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
            if let Some(found) = judge(at + start as u64, &bytes[start..])? {
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

/// The positions of magics in `bytes`, in order.
fn magics(bytes: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    for (byte, magics) in MAGICS {
        for at in places_of(byte, bytes) {
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

/// The positions of `byte` in `bytes`.
fn places_of(byte: u8, bytes: &[u8]) -> impl Iterator<Item = usize> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let passed = rest.skip_until(byte).ok()?;
        let at = (bytes.len() - rest.len()).checked_sub(1)?;
        // Behind the last hit, the rest is passed, if there is any.
        (passed > 0 && bytes[at] == byte).then_some(at)
    })
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
}
