use std::io::Write;

use super::*;
use rockpack_core::content::HOLD_LIMIT;

#[path = "../../../tests/support/ccob.rs"]
mod written;

fn compress(method: CcobMethod, bytes: &[u8]) -> Vec<u8> {
    match method {
        CcobMethod::Zstd => zstd::encode_all(bytes, 3).unwrap(),
        CcobMethod::Zlib => {
            let mut encoder =
                flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
    }
}

/// A hand-made compressed bundle.
fn ccob(version: u16, method: CcobMethod, bytes: &[u8]) -> Vec<u8> {
    let number = u16::from(method == CcobMethod::Zstd);
    written::ccob(version, number, bytes, &compress(method, bytes))
}

fn open_bytes(bytes: impl Into<Vec<u8>>) -> Result<OpenedBundle> {
    open(&Content::of_bytes(bytes))
}

fn kind(bytes: impl Into<Vec<u8>>) -> Kind {
    open_bytes(bytes).unwrap_err().kind()
}

const METHODS: [CcobMethod; 2] = [CcobMethod::Zlib, CcobMethod::Zstd];

/// Every version with every method.
fn variants() -> impl Iterator<Item = (u16, CcobMethod)> {
    written::VERSIONS.flat_map(|version| METHODS.map(|method| (version, method)))
}

#[test]
fn every_version_decodes_and_ends_where_its_stream_ends() {
    let bytes: Vec<u8> = (0..5000_u32).flat_map(u32::to_le_bytes).collect();
    for (version, method) in variants() {
        let mut file = ccob(version, method, &bytes);
        let extent = file.len() as u64;
        file.extend([0; 99]);
        file.extend(b"CCOB");
        let opened = open_bytes(file).unwrap();
        assert_eq!((opened.header.version, opened.header.method), (version, method));
        assert_eq!(opened.extent, extent);
        for _ in 0..2 {
            let len = opened.content.len();
            assert_eq!(opened.content.read_vec(0..len, len, "x").unwrap(), bytes);
        }
        let OpenedBundle { content, pinned, .. } = opened;
        drop(pinned);
        assert_eq!(content.read_vec(100..104, 4, "x").unwrap(), bytes[100..104]);
    }
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    for (version, method) in variants() {
        let file = ccob(version, method, b"some bytes some bytes some bytes");
        for len in 0..file.len() {
            assert!(open_bytes(&file[..len]).is_err(), "v{version} {method:?} cut to {len}");
        }
    }
}

#[test]
fn wrong_sizes_are_errors() {
    for method in METHODS {
        let good = ccob(2, method, b"some bytes some bytes some bytes");
        let total = u32::try_from(good.len()).unwrap();
        assert_eq!(kind_with_size(&good, 8, total + 1), Kind::Malformed);
        assert_eq!(kind_with_size(&good, 8, total + 9), Kind::Truncated);
        assert_eq!(kind_with_size(&good, 8, total - 1), Kind::Truncated);
        assert_eq!(kind_with_size(&good, 8, 23), Kind::Malformed);
        assert_eq!(kind_with_size(&good, 12, 31), Kind::Malformed);
        assert_eq!(kind_with_size(&good, 12, 33), Kind::Malformed);
        assert_eq!(kind_with_size(&good, 12, u32::MAX), Kind::Malformed);
    }
    let mut huge = ccob(3, CcobMethod::Zstd, b"x");
    huge[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_eq!(kind(huge), Kind::Limit);
}

fn kind_with_size(good: &[u8], at: usize, number: u32) -> Kind {
    let mut file = good.to_vec();
    file.extend([0; 8]);
    file[at..at + 4].copy_from_slice(&number.to_le_bytes());
    kind(file)
}

#[test]
fn unknown_versions_methods_and_hashes_are_refused() {
    let good = ccob(2, CcobMethod::Zstd, b"bytes");
    assert_eq!(kind_with_byte(&good, 4, u8::MAX), Kind::Unsupported);
    assert_eq!(kind_with_byte(&good, 4, 0), Kind::Unsupported);
    assert_eq!(kind_with_byte(&good, 6, 2), Kind::Unsupported);
    assert_eq!(kind_with_byte(&good, 0, b'D'), Kind::Malformed);
    assert_eq!(kind_with_byte(&good, 16, !good[16]), Kind::Malformed);
}

fn kind_with_byte(good: &[u8], at: usize, value: u8) -> Kind {
    let mut file = good.to_vec();
    file[at] = value;
    kind(file)
}

#[test]
fn a_stream_too_long_to_hold_is_read_all_the_same() {
    let mut bytes = vec![0; usize::try_from(HOLD_LIMIT).unwrap()];
    bytes.extend(b"the end");
    let opened = open_bytes(ccob(3, CcobMethod::Zstd, &bytes)).unwrap();
    let len = bytes.len() as u64;
    assert_eq!(opened.content.len(), len);
    assert_eq!(opened.content.read_vec(len - 7..len, 7, "x").unwrap(), b"the end");
}
