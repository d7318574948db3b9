//! Alignment, and checks of the bytes in a range of a file.

use std::ops::Range;

use rockpack_core::error::Result;
use rockpack_elf::ElfFile;

/// The next multiple of `align`, a power of two. Addresses are validated to be small.
pub fn align_up(value: u64, align: u64) -> u64 {
    value.checked_next_multiple_of(align).unwrap_or(u64::MAX)
}

/// Whether the bytes of `range` are all zero; an empty or reversed range is.
pub fn is_zero(file: &ElfFile, range: Range<u64>) -> Result<bool> {
    is_filled_with(file, range, &[0])
}

/// Whether the bytes of `range` are all among `fillers`.
pub fn is_filled_with(file: &ElfFile, range: Range<u64>, fillers: &[u8]) -> Result<bool> {
    let size = range.end.saturating_sub(range.start).min(64 << 10);
    let mut window = vec![0; usize::try_from(size).unwrap_or_default()];
    let mut at = range.start;
    while at < range.end {
        let len = usize::try_from(range.end - at).map_or(window.len(), |len| len.min(window.len()));
        file.content().read_at(at, &mut window[..len])?;
        if window[..len].iter().any(|byte| !fillers.contains(byte)) {
            return Ok(false);
        }
        at += len as u64;
    }
    Ok(true)
}
