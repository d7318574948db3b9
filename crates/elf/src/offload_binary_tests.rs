use proptest::prelude::*;

use super::*;

/// An image: its triple, its arch and its bytes.
type Image<'a> = [&'a [u8]; 3];

const AMD: &[u8] = b"amdgcn-amd-amdhsa";
const GFX906: Image<'static> = [AMD, b"gfx906", b"first"];
const GFX942: Image<'static> = [AMD, b"gfx942:xnack+", b"second"];

/// A binary of HIP images; one of version 1 holds one image.
fn binary(version: u32, images: &[Image<'_>]) -> Vec<u8> {
    let (producer, row_len) = if version == 1 { (3, 16) } else { (4, 24) };
    let strings_at = 32 + images.len() * (40 + 2 * row_len);
    let mut strings = b"triple\0arch\0".to_vec();
    let mut rows: Vec<u64> = Vec::new();
    for [triple, arch, _] in images {
        for (key, value) in [(0, triple), (7, arch)] {
            rows.extend([(strings_at + key) as u64, (strings_at + strings.len()) as u64]);
            rows.extend((version > 1).then_some(value.len() as u64));
            strings.extend_from_slice(value);
            strings.push(0);
        }
    }
    let mut body = Vec::new();
    let mut entries: Vec<u64> = Vec::new();
    for (index, [.., bytes]) in images.iter().enumerate() {
        body.resize(body.len().next_multiple_of(8), 0);
        let rows_at = 32 + images.len() * 40 + index * 2 * row_len;
        let at = (strings_at + strings.len()).next_multiple_of(8) + body.len();
        entries.extend([producer << 16, rows_at as u64, 2, at as u64, bytes.len() as u64]);
        body.extend(*bytes);
    }
    let body_at = (strings_at + strings.len()).next_multiple_of(8);
    let len = (body_at + body.len()).next_multiple_of(8);
    let counted = if version == 1 { 40 } else { images.len() as u64 };
    let words = [vec![len as u64, 32, counted], entries, rows].concat();
    let mut file = [&MAGIC[..], &version.to_le_bytes()].concat();
    file.extend(words.into_iter().flat_map(u64::to_le_bytes));
    file.extend(strings);
    file.resize(body_at, 0);
    file.extend(body);
    file.resize(len, 0);
    file
}

fn parse_bytes(bytes: impl Into<Vec<u8>>) -> Result<Bundle> {
    parse(&Content::of_bytes(bytes))
}

fn images(bundle: &Bundle) -> Vec<(&str, Vec<u8>)> {
    let image = |entry: &BundleEntry| entry.content.read_vec(0..entry.content.len(), 99, "x");
    bundle.entries.iter().map(|it| (it.id.text.as_str(), image(it).unwrap())).collect()
}

#[test]
fn images_of_both_versions_keep_their_order_and_bytes() {
    let (first, second) = (b"first".to_vec(), b"second".to_vec());
    let one = parse_bytes(binary(1, &[GFX906])).unwrap();
    assert_eq!(images(&one), [("hip-amdgcn-amd-amdhsa--gfx906", first.clone())]);
    let mut bytes = binary(2, &[GFX942, GFX906, GFX942]);
    let len = bytes.len() as u64;
    bytes.extend([1; 9]);
    let three = parse_bytes(bytes).unwrap();
    let gfx942 = ("hip-amdgcn-amd-amdhsa--gfx942:xnack+", second);
    let expected = [gfx942.clone(), ("hip-amdgcn-amd-amdhsa--gfx906", first), gfx942];
    assert_eq!((images(&three), three.len), (expected.to_vec(), len));
}

/// clang-offload-packager of LLVM 19 and llvm-offload-binary of LLVM 23 made the files of two texts.
#[test]
fn what_llvm_writes_is_read() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/fatbin");
    let seed = |name: &str| std::fs::read(format!("{seeds}/{name}")).unwrap();
    let [gfx1100, gfx90a] =
        ["openmp-amdgcn-amd-amdhsa--gfx1100", "hip-amdgcn-amd-amdhsa--gfx90a:xnack+"];
    let (first, second) = (b"first\n".to_vec(), b"the second\n".to_vec());
    let of_llvm_23 = parse_bytes(seed("offload-binary-23")).unwrap();
    assert_eq!(images(&of_llvm_23), [(gfx1100, first.clone()), (gfx90a, second.clone())]);
    let bytes = seed("offload-binary-19");
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let binary = parse_bytes(&bytes[at..]).unwrap();
        found.extend(images(&binary).into_iter().map(|(id, code)| (id.to_owned(), code)));
        at += usize::try_from(binary.len).unwrap();
    }
    assert_eq!(found, [(gfx1100.to_owned(), first), (gfx90a.to_owned(), second)]);
}

#[test]
fn a_triple_says_whose_code_an_image_is() {
    for (triple, arch, kind, target) in [
        ("amdgcn-amd-amdhsa-llvm", "gfx90a:xnack-", BundleEntryKind::Hip, Some("gfx90a:xnack-")),
        ("spirv64-amd-amdhsa", "amdgcnspirv", BundleEntryKind::Hip, Some("amdgcnspirv")),
        ("amdgcn-amd-amdhsa", "any", BundleEntryKind::Hip, None),
        ("nvptx64-nvidia-cuda", "sm_70", BundleEntryKind::Other("hip".to_owned()), None),
        ("spirv64-intel", "gfx906", BundleEntryKind::Other("hip".to_owned()), None),
        ("x86_64-pc-linux-gnu", "", BundleEntryKind::Host, None),
    ] {
        let image = [triple.as_bytes(), arch.as_bytes(), b"code"];
        let entry = parse_bytes(binary(2, &[image])).unwrap().entries.remove(0);
        let found = entry.id.target.map(|target| target.to_string());
        assert_eq!((entry.id.kind, found.as_deref()), (kind, target), "{triple}");
    }
}

#[test]
fn a_binary_cut_anywhere_is_an_error() {
    for bytes in [binary(1, &[GFX906]), binary(2, &[GFX942, GFX906])] {
        for len in 0..bytes.len() {
            assert!(parse_bytes(&bytes[..len]).is_err(), "cut to {len} bytes");
        }
        assert!(parse_bytes(bytes).is_ok());
    }
}

#[test]
fn hostile_numbers_are_errors_with_a_place() {
    let bytes = binary(2, &[GFX906, GFX942]);
    // The header, both entries and the first row.
    let (first, second, row) = (32, 72, 112);
    let first_image = u64::from_le_bytes(bytes[first + 24..first + 32].try_into().unwrap());
    for (at, number, kind) in [
        (4, 3, Kind::Unsupported),
        (8, u64::MAX, Kind::Truncated),
        (8, 32, Kind::Truncated),
        (16, u64::MAX, Kind::Truncated),
        (24, 0, Kind::Unsupported),
        (24, ENTRY_LIMIT + 1, Kind::Unsupported),
        (first + 8, u64::MAX, Kind::Truncated),
        (first + 16, ROW_LIMIT + 1, Kind::Limit),
        (first + 24, 0, Kind::Malformed),
        (first + 32, u64::MAX, Kind::Truncated),
        (second + 24, first_image, Kind::Malformed),
        (row, u64::MAX, Kind::Truncated),
        (row + 8, u64::MAX, Kind::Truncated),
        (row + 16, u64::MAX, Kind::Truncated),
    ] {
        let mut damaged = bytes.clone();
        damaged[at..at + 8].copy_from_slice(&number.to_le_bytes());
        let error = parse_bytes(damaged).unwrap_err();
        assert_eq!(error.kind(), kind, "{number:#x} at {at}: {error}");
        assert_eq!(error.place().structure.as_deref(), Some("offload binary"), "{error}");
    }
    let endless = [AMD, &[b'x'; 2000], b"code"];
    assert_eq!(parse_bytes(binary(1, &[endless])).unwrap_err().kind(), Kind::Malformed);
    assert_eq!(parse_bytes(binary(2, &[endless])).unwrap_err().kind(), Kind::Limit);
    let not_text = [AMD, b"\xff", b"code"];
    assert_eq!(parse_bytes(binary(2, &[not_text])).unwrap_err().kind(), Kind::Malformed);
}

proptest! {
    #[test]
    fn any_change_gives_a_value_or_an_error(at in 0usize..400, with: u8, version in 1u32..3) {
        let images = if version == 1 { &[GFX906][..] } else { &[GFX906, GFX942] };
        let mut bytes = binary(version, images);
        if let Some(byte) = bytes.get_mut(at) {
            *byte = with;
        }
        if let Ok(binary) = parse_bytes(bytes.clone()) {
            prop_assert!(binary.len <= bytes.len() as u64 && !binary.entries.is_empty());
        }
    }
}
