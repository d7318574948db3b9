//! A writer of compressed bundles (CCOB), independent of rockpack. The unit tests of `crates/elf` include it.

use std::ops::RangeInclusive;

use md5::{Digest, Md5};

/// The versions.
pub const VERSIONS: RangeInclusive<u16> = 1..=3;

/// A bundle of this version and method around `stream`, which is `plain` compressed.
pub fn ccob(version: u16, method: u16, plain: &[u8], stream: &[u8]) -> Vec<u8> {
    let (header, width): (usize, usize) = [(20, 4), (24, 4), (32, 8)][usize::from(version) - 1];
    let sizes = [header + stream.len(), plain.len()].map(|size| (size as u64).to_le_bytes());
    let mut bytes = b"CCOB".to_vec();
    bytes.extend([version, method].map(u16::to_le_bytes).concat());
    for size in &sizes[usize::from(version == 1)..] {
        assert!(size[width..].iter().all(|byte| *byte == 0));
        bytes.extend(&size[..width]);
    }
    bytes.extend(&Md5::digest(plain)[..8]);
    assert_eq!(bytes.len(), header);
    bytes.extend(stream);
    bytes
}
