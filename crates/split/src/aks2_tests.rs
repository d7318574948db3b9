use std::io::Write;

use super::*;
use rockpack_core::compression::{Compression, Encoder, Workers};

const GFX1100: u8 = 0x41;
const GFX1101: u8 = 0x46;

/// A file with kernels of these names.
fn file(kernels: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let (mut directory, mut code) = (Vec::new(), Vec::new());
    for (name, bytes) in kernels {
        let numbers = [8192, 64, code.len(), bytes.len(), name.len() + 1];
        for number in numbers {
            directory.extend(u32::try_from(number).unwrap().to_le_bytes());
        }
        directory.extend([name.as_bytes(), b"\0"].concat());
        code.extend(bytes);
    }
    stored(directory.len(), &[directory, code].concat())
}

/// A file with this stream.
fn stored(directory: usize, stream: &[u8]) -> Vec<u8> {
    let mut file = MAGICS[0].to_vec();
    for number in [stream.len(), 0, directory] {
        file.extend(u32::try_from(number).unwrap().to_le_bytes());
    }
    let (compression, size) = (Compression::Xz { preset: 0 }, stream.len() as u64);
    let mut encoder = Encoder::new(file, compression, &Workers::new(1), size).unwrap();
    encoder.write_all(stream).unwrap();
    encoder.finish().unwrap()
}

/// A code object after `skipped` other bytes, which hardly compress.
fn code(mach: u8, skipped: usize) -> Vec<u8> {
    let squares = (0..skipped).map(|n| n.wrapping_mul(n));
    let mut bytes: Vec<u8> =
        squares.map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()[7]).collect();
    bytes.resize(skipped + 64, 0);
    let header = &mut bytes[skipped..];
    header[..9].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 64, 2]);
    header[16..20].copy_from_slice(&[3, 0, 224, 0]);
    header[48] = mach;
    bytes
}

fn kernel(arch: &str) -> String {
    format!("attn_fwd-Sig-F__bf16@16_F_0_0__P__2_16__CO__wave1_warp2_stg1--Arch_{arch}")
}

/// The archs of gfx110x that a file has code for.
fn read(bytes: &[u8]) -> Vec<String> {
    let family = ["gfx1100", "gfx1101", "gfx1102", "gfx1103"];
    let family = family.map(|arch| arch.parse::<BaseArch>().unwrap());
    let found = archs(&Content::of_bytes(bytes), &family).unwrap();
    found.iter().map(ToString::to_string).collect()
}

const NONE: [&str; 0] = [];

#[test]
fn names_decide() {
    let [one, other, failed] = ["gfx1100", "gfx1101", "gfx1102"].map(kernel);
    let foreign = kernel("gfx1151");
    let kernels = [
        (&*one, code(GFX1101, 0)),
        (&*one, code(GFX1101, 0)),
        (&*other, vec![1]),
        (&*failed, Vec::new()),
        (&*foreign, vec![1]),
    ];
    assert_eq!(read(&file(&kernels)), ["gfx1100", "gfx1101"]);
}

#[test]
fn headers_decide_where_names_have_no_arch() {
    let named = kernel("gfx1102");
    // The second header is in two windows, wherever these begin.
    for skipped in [0, 1, 65_400, 200_000] {
        let kernels = [
            ("a-Gpu-Navi31", code(GFX1100, 0)),
            (&*named, Vec::new()),
            ("a-Gpu-Navi32", code(GFX1101, skipped)),
        ];
        assert_eq!(read(&file(&kernels)), ["gfx1100", "gfx1101"], "{skipped}");
    }
    let together = [code(GFX1100, 0), code(GFX1101, 7)].concat();
    for directory in [0, 1, 64, 1 << 30] {
        assert_eq!(read(&stored(directory, &together)), ["gfx1100", "gfx1101"]);
    }
}

#[test]
fn every_cut_of_a_header_is_found() {
    for before in (64 << 10) - 64..=64 << 10 {
        let bytes = stored(0, &code(GFX1100, before));
        assert_eq!(read(&bytes), ["gfx1100"], "{before}");
    }
}

/// A ZIP archive with these stored files, as AOTriton writes it.
fn archive(files: &[Vec<u8>]) -> Vec<u8> {
    let short = |number: usize| u16::try_from(number).unwrap().to_le_bytes();
    let long = |number: usize| u32::try_from(number).unwrap().to_le_bytes();
    let (mut bytes, mut central) = (Vec::new(), Vec::new());
    for (number, file) in files.iter().enumerate() {
        let name = format!("Q='*fp16:16';BLOCK={number}");
        let mut crc = flate2::Crc::new();
        crc.update(file);
        let start = [short(20), short(0x800), short(0), short(0), short(0)].concat();
        let sizes = [crc.sum().to_le_bytes(), long(file.len()), long(file.len())].concat();
        let common = [start, sizes, [short(name.len()), short(0)].concat()].concat();
        let place = [vec![0; 10], long(bytes.len()).to_vec()].concat();
        let made = &b"PK\x01\x02\x14\0"[..];
        central.extend([made, &common, &place, name.as_bytes()].concat());
        bytes.extend([&b"PK\x03\x04"[..], &common, name.as_bytes(), file].concat());
    }
    let counts = [short(0), short(0), short(files.len()), short(files.len())].concat();
    let places = [long(central.len()), long(bytes.len())].concat();
    [bytes, central, b"PK\x05\x06".to_vec(), counts, places, vec![0; 2]].concat()
}

#[test]
fn archives_have_the_archs_of_their_files() {
    let [one, other] = ["gfx1100", "gfx1102"].map(|arch| file(&[(&*kernel(arch), vec![1])]));
    let named = |arch: &str| format!(";;#F;Q='*fp16:16';;#CO;num_stages=1;;arch={arch}");
    let third = file(&[(&*named("gfx1103"), vec![1]), (&*named("gfx1201"), vec![1])]);
    let generic = file(&[(&*named("gfx11-generic"), vec![1])]);
    let whole = archive(&[one.clone(), other.clone(), third]);
    assert_eq!(read(&whole), ["gfx1100", "gfx1102", "gfx1103"]);
    for len in 4..whole.len() {
        assert_eq!(read(&whole[..len]), NONE, "{len}");
    }
    let nested = archive(std::slice::from_ref(&one));
    for odd in [generic, MAGICS[0].to_vec(), b"text".to_vec(), nested] {
        assert_eq!(read(&archive(&[one.clone(), odd])), NONE);
    }
}

#[test]
fn what_decodes_to_far_more_bytes_is_not_read() {
    let code = [vec![0; 1 << 22], code(GFX1100, 0)].concat();
    assert_eq!(read(&stored(0, &code)), NONE);
}

#[test]
fn the_folder_decides_about_other_files() {
    let generic = kernel("gfx11-generic");
    let own = kernel("gfx1100");
    let foreign = kernel("gfx942");
    for kernels in [
        vec![(&*generic, vec![1]), (&*own, vec![1])],
        vec![(&*foreign, vec![1])],
        vec![("no arch", vec![1])],
        vec![(&*own, Vec::new())],
        Vec::new(),
    ] {
        assert_eq!(read(&file(&kernels)), NONE, "{kernels:?}");
    }
    let whole = file(&[("no arch", code(GFX1100, 0))]);
    for len in 4..whole.len() {
        let found = read(&whole[..len]);
        assert!(found == NONE || found == ["gfx1100"], "{len}: {found:?}");
    }
    assert_eq!(read(b"AKS2amd-gfx11xxamd-gfx11xx"), NONE);
    for bytes in [b"".as_slice(), b"AKS", b"AKS1, with more bytes behind it", b"text"] {
        assert_eq!(read(bytes), NONE);
    }
}
