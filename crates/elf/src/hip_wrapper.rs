//! The wrappers by which host code registers its device code, in `.hipFatBinSegment`.
//!
//! ```text
//! offset size
//! 0      4    magic: 0x48495046 ("HIPF") a fat binary, 0x4B504948 ("HIPK") a kernel archive
//! 4      4    version: 1
//! 8      8    pointer: to the offload bundle (HIPF) or to the archive reference (HIPK)
//! 16     8    reserved: zero (HIPF); the low 32 bits are the co_index (HIPK)
//! ```
//!
//! Source: clang's `CGCUDANV.cpp` for HIPF, the runtime's loader for HIPK. Wrappers are 8-aligned,
//! one per translation unit. A sanitizer puts redzones of zero bytes between them, so the size of
//! the section need not be a multiple of 24. Anything else in the section is refused.

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};

pub const SIZE: usize = 24;
/// The wrapper's alignment, and the step of the search for wrappers.
const STEP: usize = 8;
pub const POINTER: u64 = 8;
pub const VERSION: u32 = 1;
/// Largest section that is read, in bytes: it holds 700,000 wrappers, and real libraries have some hundred.
pub const MAX_SECTION: u64 = 16 << 20;

/// The kind of target that a wrapper points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Magic {
    /// "HIPF": an offload bundle.
    Fat = 0x4849_5046,
    /// "HIPK": a reference to kernel archives.
    Kpack = 0x4b50_4948,
}

/// A wrapper as stored in the file, before relocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wrapper {
    pub offset: u64,
    pub magic: Magic,
    /// The pointer's bytes: an address, or arbitrary bytes if a relocation sets the address.
    pub pointer: u64,
    pub reserved: u64,
}

impl Wrapper {
    /// The index by which the runtime looks up the code of a HIPK wrapper.
    pub fn co_index(&self) -> u32 {
        let [a, b, c, d, ..] = self.reserved.to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }

    pub fn to_bytes(&self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[0..4].copy_from_slice(&(self.magic as u32).to_le_bytes());
        bytes[4..8].copy_from_slice(&VERSION.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.pointer.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.reserved.to_le_bytes());
        bytes
    }
}

/// The wrappers of a `.hipFatBinSegment` section, in order of their offsets.
pub fn parse(section: &Content) -> Result<Vec<Wrapper>> {
    let bytes = section.read_vec(0..section.len(), MAX_SECTION, ".hipFatBinSegment")?;
    let mut wrappers = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        if rest.iter().take(STEP).all(|byte| *byte == 0) {
            at += STEP;
            continue;
        }
        let wrapper = wrapper(rest, at as u64).map_err(|error| {
            let place = section.place(at as u64);
            error.structure(".hipFatBinSegment").at(&place)
        })?;
        wrappers.push(wrapper);
        at += SIZE;
    }
    Ok(wrappers)
}

fn wrapper(bytes: &[u8], offset: u64) -> Result<Wrapper> {
    let Some(([head, pointer, reserved], _)) = bytes.as_chunks::<8>().0.split_first_chunk() else {
        let message = format!("{} bytes are left of a wrapper of 24", bytes.len());
        return Err(Error::truncated(message));
    };
    let [m0, m1, m2, m3, v0, v1, v2, v3] = *head;
    let value = u32::from_le_bytes([m0, m1, m2, m3]);
    let mut magics = [Magic::Fat, Magic::Kpack].into_iter();
    let Some(magic) = magics.find(|magic| *magic as u32 == value) else {
        let message = format!("neither a wrapper nor zero: the magic is {value:#010x}");
        return Err(Error::malformed(message));
    };
    let version = u32::from_le_bytes([v0, v1, v2, v3]);
    if version != VERSION {
        let message = format!("wrapper version {version} is unknown");
        return Err(Error::unsupported(message));
    }
    let [pointer, reserved] = [pointer, reserved].map(|bytes| u64::from_le_bytes(*bytes));
    Ok(Wrapper { offset, magic, pointer, reserved })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rockpack_core::error::Kind;

    fn fat(pointer: u64) -> [u8; 24] {
        Wrapper { offset: 0, magic: Magic::Fat, pointer, reserved: 0 }.to_bytes()
    }

    #[test]
    fn wrappers_are_found_between_redzones() {
        let mut bytes = vec![0; 192];
        bytes[0..24].copy_from_slice(&fat(7));
        bytes[64..88].copy_from_slice(&fat(8));
        bytes[136..160].copy_from_slice(&fat(9));
        let wrappers = parse(&Content::of_bytes(bytes)).unwrap();
        let found: Vec<_> = wrappers.iter().map(|w| (w.offset, w.pointer)).collect();
        assert_eq!(found, [(0, 7), (64, 8), (136, 9)]);
    }

    #[test]
    fn every_truncation_of_a_wrapper_is_refused() {
        let bytes = fat(0x1000);
        for len in 1..24 {
            let error = parse(&Content::of_bytes(&bytes[..len])).unwrap_err();
            assert_eq!(error.kind(), Kind::Truncated, "{len}");
        }
    }

    #[test]
    fn other_bytes_and_versions_are_refused() {
        let mut bytes = fat(0);
        bytes[4] = 2;
        let error = parse(&Content::of_bytes(bytes)).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported);
        let error = parse(&Content::of_bytes(*b"a string, not a wrapper!")).unwrap_err();
        assert_eq!(error.kind(), Kind::Malformed);
    }
}
