use super::*;
use rockpack_core::error::Kind;

const ID: &[u8] = b"hipv4-amdgcn-amd-amdhsa--gfx906";

/// A bundle with one entry at offset 128.
fn bundle(code: &[u8]) -> Vec<u8> {
    let mut bytes = offload_bundle::MAGIC.to_vec();
    for number in [1, 128, code.len() as u64, ID.len() as u64] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(ID);
    bytes.resize(128, 0);
    bytes.extend(code);
    bytes
}

fn compressed(version: u16, bytes: &[u8]) -> Vec<u8> {
    use md5::Digest;
    let stream = zstd::encode_all(bytes, 3).unwrap();
    let mut out = ccob::MAGIC.to_vec();
    out.extend(version.to_le_bytes());
    out.extend(1_u16.to_le_bytes());
    if version == 2 {
        out.extend(u32::try_from(24 + stream.len()).unwrap().to_le_bytes());
    }
    out.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
    out.extend(&md5::Md5::digest(bytes)[..8]);
    out.extend(stream);
    out
}

/// A section of `parts`, each at the next multiple of `alignment`.
fn section(parts: &[Vec<u8>], alignment: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.resize(bytes.len().next_multiple_of(alignment), 0);
        bytes.extend(part);
    }
    bytes
}

fn code_of(bundle: &FatbinBundle) -> Vec<u8> {
    let content = &bundle.bundle.entries[0].content;
    content.read_vec(0..content.len(), 1 << 20, "code").unwrap()
}

#[test]
fn plain_and_compressed_bundles_stand_side_by_side() {
    // Code that looks like a bundle must not be read as one.
    let decoy = section(&[bundle(b"decoy"), compressed(2, &bundle(b"x"))], 4096);
    let parts = [
        bundle(&decoy),
        compressed(2, &bundle(b"second")),
        compressed(1, &bundle(b"third")),
        bundle(b"fourth"),
    ];
    for alignment in [8, 64, 4096] {
        let mut bytes = section(&parts, alignment);
        bytes.extend([0; 5000]);
        let bundles = parse(&Content::of_bytes(bytes)).unwrap();
        let codes: Vec<_> = bundles.iter().map(code_of).collect();
        assert_eq!(codes, [decoy.clone(), b"second".into(), b"third".into(), b"fourth".into()]);
        let versions: Vec<_> =
            bundles.iter().map(|b| b.compression.as_ref().map(|header| header.version)).collect();
        assert_eq!(versions, [None, Some(2), Some(1), None]);
        assert!(bundles.iter().all(|b| b.offset % alignment as u64 == 0));
    }
}

#[test]
fn stray_bytes_between_bundles_are_an_error_with_their_offset() {
    let parts = [bundle(b"one"), bundle(b"two")];
    for (at, value) in [(200, 1), (4096, b'X'), (4096 + 131, 7), (5000, 1)] {
        let mut bytes = section(&parts, 4096);
        bytes.resize(6000, 0);
        bytes[at] = value;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, bytes).unwrap();
        let error =
            parse(&Content::open(file.path(), &rockpack_core::run::Budget::unlimited()).unwrap())
                .unwrap_err();
        assert_eq!(error.kind(), Kind::Malformed, "{at}");
        assert_eq!(error.place().offset, Some(at as u64));
    }
    let mut odd = vec![0; 4];
    odd.extend(bundle(b"one"));
    assert!(parse(&Content::of_bytes(odd)).is_err());
}

#[test]
fn an_empty_or_zero_section_has_no_bundle() {
    assert!(parse(&Content::default()).unwrap().is_empty());
    assert!(parse(&Content::zeros(1 << 20)).unwrap().is_empty());
}

#[test]
fn a_section_cut_anywhere_gives_fewer_bundles_or_an_error() {
    let parts = [bundle(b"one"), compressed(2, &bundle(b"two")), bundle(b"three")];
    let bytes = section(&parts, 256);
    let ends = [0, 131, 256 + parts[1].len() as u64, bytes.len() as u64];
    for len in 0..=bytes.len() {
        if let Ok(found) = parse(&Content::of_bytes(&bytes[..len])) {
            let whole = ends.iter().skip(1).filter(|end| **end <= len as u64).count();
            assert_eq!(found.len(), whole, "cut to {len}");
        }
    }
}

#[test]
fn an_entry_that_reaches_over_the_next_bundle_takes_it_in() {
    let parts = [bundle(b"one"), bundle(b"two")];
    let mut bytes = section(&parts, 256);
    let (size_at, reach) = (40, bytes.len() as u64 - 128);
    bytes[size_at..size_at + 8].copy_from_slice(&reach.to_le_bytes());
    let found = parse(&Content::of_bytes(bytes)).unwrap();
    // The second start is gone, and the wrapper that points to it finds no bundle there.
    let starts: Vec<_> = found.iter().map(|bundle| bundle.offset).collect();
    assert_eq!(starts, [0]);
}
