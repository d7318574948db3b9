use std::io::Write;

use super::*;
use crate::formats::compression::{Compression, Encoder, Workers};

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
    let mut file = MAGIC.to_vec();
    for number in [stream.len(), 0, directory] {
        file.extend(u32::try_from(number).unwrap().to_le_bytes());
    }
    let (compression, size) = (Compression::Xz { preset: 0 }, stream.len() as u64);
    let mut encoder = Encoder::new(file, compression, &Workers::new(1), size).unwrap();
    encoder.write_all(stream).unwrap();
    encoder.finish().unwrap()
}

/// A code object after `skipped` other bytes.
fn code(mach: u8, skipped: usize) -> Vec<u8> {
    let mut bytes = vec![0; skipped + 64];
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
fn read(bytes: &[u8]) -> Option<Vec<String>> {
    let family = ["gfx1100", "gfx1101", "gfx1102", "gfx1103"];
    let family = family.map(|arch| arch.parse::<BaseArch>().unwrap());
    let found = archs(&Content::of_bytes(bytes), &family).unwrap();
    found.map(|archs| archs.iter().map(ToString::to_string).collect())
}

fn some(archs: &[&str]) -> Option<Vec<String>> {
    Some(archs.iter().map(|arch| (*arch).to_owned()).collect())
}

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
    assert_eq!(read(&file(&kernels)), some(&["gfx1100", "gfx1101"]));
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
        assert_eq!(read(&file(&kernels)), some(&["gfx1100", "gfx1101"]), "{skipped}");
    }
    let together = [code(GFX1100, 0), code(GFX1101, 7)].concat();
    for directory in [0, 1, 64, 1 << 30] {
        assert_eq!(read(&stored(directory, &together)), some(&["gfx1100", "gfx1101"]));
    }
}

#[test]
fn every_cut_of_a_header_is_found() {
    for before in (64 << 10) - 64..=64 << 10 {
        let bytes = stored(0, &code(GFX1100, before));
        assert_eq!(read(&bytes), some(&["gfx1100"]), "{before}");
    }
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
        assert_eq!(read(&file(&kernels)), some(&[]), "{kernels:?}");
    }
    let whole = file(&[("no arch", code(GFX1100, 0))]);
    for len in 4..whole.len() {
        let found = read(&whole[..len]);
        assert!(found == some(&[]) || found == some(&["gfx1100"]), "{len}: {found:?}");
    }
    assert_eq!(read(b"AKS2amd-gfx11xxamd-gfx11xx"), some(&[]));
    for bytes in [b"".as_slice(), b"AKS", b"AKS1, with more bytes behind it", b"text"] {
        assert_eq!(read(bytes), None);
    }
}
