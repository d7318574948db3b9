use proptest::prelude::*;

use super::*;

/// A bundle of (id, offset, bytes), with each entry at its offset.
fn bundle(entries: &[(&str, u64, &[u8])]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend((entries.len() as u64).to_le_bytes());
    for (id, offset, content) in entries {
        for number in [*offset, content.len() as u64, id.len() as u64] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(id.as_bytes());
    }
    for (_, offset, content) in entries {
        let start = usize::try_from(*offset).unwrap();
        let end = start + content.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[start..end].copy_from_slice(content);
    }
    bytes
}

fn parse_bytes(bytes: impl Into<Vec<u8>>) -> Result<Bundle> {
    parse(&Content::of_bytes(bytes))
}

const HOST: &str = "host-x86_64-unknown-linux--";
const GFX906: &str = "hipv4-amdgcn-amd-amdhsa--gfx906";
const GFX942: &str = "hipv4-amdgcn-amd-amdhsa--gfx942:xnack+";

fn small() -> Vec<u8> {
    bundle(&[(HOST, 0, b""), (GFX906, 512, b"first"), (GFX942, 256, b"second")])
}

#[test]
fn entries_keep_their_order_and_bytes() {
    let mut bytes = small();
    bytes.extend([0; 100]);
    let bundle = parse_bytes(bytes).unwrap();
    assert_eq!(bundle.len, 517);
    let entries = bundle.entries.iter().map(|entry| {
        let bytes = entry.content.read_vec(0..entry.content.len(), 99, "x").unwrap();
        (entry.id.text.as_str(), bytes)
    });
    let all: Vec<_> = entries.collect();
    assert_eq!(all, [(HOST, vec![]), (GFX906, b"first".to_vec()), (GFX942, b"second".to_vec())]);
}

#[test]
fn ids_of_all_compilers_name_their_target() {
    for (id, expected) in [
        (GFX906, Some("gfx906")),
        (GFX942, Some("gfx942:xnack+")),
        ("hip-amdgcn-amd-amdhsa-unknown-gfx90a:sramecc+:xnack-", Some("gfx90a:sramecc+:xnack-")),
        ("hipv4-amdgcn-amd-amdhsa--gfx9-4-generic", Some("gfx9-4-generic")),
        ("hipv4-amdgcn-amd-amdhsa--gfx950-", Some("gfx950")),
        ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", Some("gfx90a:xnack-")),
        ("hip-spirv64-amd-amdhsa--amdgcnspirv-", Some("amdgcnspirv")),
        ("hipv4-amdgcn-amd-amdhsa--gfx1250-strict", Some("gfx1250-strict")),
        ("hip-spirv64-amd-amdhsa--amdgcnspirv", Some("amdgcnspirv")),
        ("openmp-nvptx64-nvidia-cuda--sm_70", None),
        ("host-x86_64-unknown-linux-gnu-", None),
    ] {
        let target = EntryId::parse(id).unwrap().target.map(|target| target.to_string());
        assert_eq!(target.as_deref(), expected, "{id}");
    }
    assert_eq!(EntryId::parse(HOST).unwrap().triple, "x86_64-unknown-linux");
    assert_eq!(EntryId::parse("sycl-x--").unwrap().kind, BundleEntryKind::Other("sycl".into()));
    assert!(EntryId::parse("hipv4-amdgcn-amd-amdhsa--gfx90a:bad").is_err());
    assert!(EntryId::parse("hipv4-amdgcn-amd-amdhsa--gfx950--").is_err());
    assert!(EntryId::parse("nothing").is_err());
}

#[test]
fn a_bundle_cut_anywhere_is_an_error() {
    let bytes = small();
    for len in 0..bytes.len() {
        assert!(parse_bytes(&bytes[..len]).is_err(), "cut to {len} bytes");
    }
    assert!(parse_bytes(bytes).is_ok());
}

#[test]
fn hostile_numbers_are_errors_with_a_place() {
    let second = 32 + 24 + HOST.len();
    for number in [1 << 63, u64::MAX, ENTRY_LIMIT + 1] {
        assert_eq!(kind_with_number(24, number), Kind::Limit);
    }
    for number in [1 << 63, u64::MAX, 513] {
        assert_eq!(kind_with_number(second, number), Kind::Truncated, "offset {number:#x}");
    }
    assert_eq!(kind_with_number(second, 0), Kind::Malformed, "over the table");
    assert_eq!(kind_with_number(second, 252), Kind::Malformed, "over another entry");
    assert_eq!(kind_with_number(second + 8, u64::MAX), Kind::Truncated);
    assert_eq!(kind_with_number(second + 16, u64::MAX), Kind::Limit);
}

/// The kind of the fault of a bundle with `number` at offset `at`.
fn kind_with_number(at: usize, number: u64) -> Kind {
    let mut bytes = small();
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
    parse_bytes(bytes).unwrap_err().kind()
}

#[test]
fn an_id_occurs_once() {
    let bytes = bundle(&[(GFX906, 256, b"a"), (GFX906, 257, b"b")]);
    assert_eq!(parse_bytes(bytes).unwrap_err().kind(), Kind::Malformed);
    // The features of targets that a bundler does not know are lost.
    let id = "hipv4-amdgcn-amd-amdhsa--gfx950-";
    let two = parse_bytes(bundle(&[(id, 256, b"a"), (id, 257, b"b")])).unwrap();
    assert_eq!(two.entries.len(), 2);
}

proptest! {
    #[test]
    fn any_change_gives_a_value_or_an_error(at in 0usize..520, with: u8) {
        let mut bytes = small();
        if let Some(byte) = bytes.get_mut(at) {
            *byte = with;
        }
        if let Ok(bundle) = parse_bytes(bytes.clone()) {
            prop_assert!(bundle.len <= bytes.len() as u64);
        }
    }
}
