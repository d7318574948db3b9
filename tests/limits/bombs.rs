//! Small input that claims a huge size, or decodes to one.

use std::fs;
use std::io::Write;

use md5::{Digest, Md5};
use support::archives::{Handmade, Packing};
use support::tools::{self, need, repository};

use crate::{Input, STAGE, hostile_packages, inspect, limited, refusal};

/// The memory of a run in MiB.
const MEMORY: u32 = 200;

/// A compressed bundle of version 3.
pub fn ccob(method: u16, declared: u64, hash: &[u8], stream: &[u8]) -> Vec<u8> {
    let mut bytes = b"CCOB\x03\0".to_vec();
    bytes.extend(method.to_le_bytes());
    bytes.extend((32 + stream.len() as u64).to_le_bytes());
    bytes.extend(declared.to_le_bytes());
    bytes.extend(&hash[..8]);
    bytes.extend(stream);
    bytes
}

/// Compresses `len` zeros.
fn zeros(method: u16, len: u64) -> Vec<u8> {
    if method == 0 {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(1));
        write_zeros(&mut encoder, len);
        return encoder.finish().unwrap();
    }
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    write_zeros(&mut encoder, len);
    encoder.finish().unwrap()
}

fn write_zeros(sink: &mut dyn Write, len: u64) {
    let chunk = vec![0; 1 << 20];
    (0..len >> 20).for_each(|_| sink.write_all(&chunk).unwrap());
}

fn inspected(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bundle");
    fs::write(&file, bytes).unwrap();
    refusal(&mut limited(&inspect(&file), MEMORY))
}

#[test]
fn a_bundle_that_claims_too_much_is_refused() {
    let stream = zeros(1, 1 << 20);
    for declared in [u64::MAX, (16 << 30) + 1] {
        let said = inspected(&ccob(1, declared, &[0; 8], &stream));
        assert!(said.contains("exceed the limit of 17179869184"), "{said}");
    }
    // The largest size allowed, for a stream that does not have it: nothing is allocated for the claim.
    let said = inspected(&ccob(1, 16 << 30, &[0; 8], &stream));
    assert!(said.contains("yields 1048576 bytes, and 17179869184 are declared"), "{said}");
}

/// A stream is never decoded beyond its declared size, nor kept beyond a limit.
#[test]
fn a_bundle_that_decodes_to_much_costs_little_memory() {
    const LEN: u64 = 300 << 20;
    let streams = [0, 1].map(|method| zeros(method, LEN));
    for (method, stream) in (0..).zip(&streams) {
        assert!(stream.len() < 16 << 20);
        let said = inspected(&ccob(method, 1 << 20, &[0; 8], stream));
        assert!(said.contains("yields more than the 1048576 bytes declared"), "{said}");
    }
    let (mut md5, chunk) = (Md5::new(), vec![0_u8; 1 << 20]);
    (0..LEN >> 20).for_each(|_| md5.update(&chunk));
    let said = inspected(&ccob(1, LEN, &md5.finalize(), &streams[1]));
    assert!(said.contains("offload bundle"), "{said}");
}

fn word(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

/// The start of a bundle with entries of 40 bytes.
pub fn bundle(count: u64, entries: &[[u64; 2]], id: &str) -> Vec<u8> {
    let mut bytes = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bytes.extend(word(count));
    for [offset, size] in entries {
        bytes.extend([word(*offset), word(*size), word(id.len() as u64)].concat());
        bytes.extend(id.as_bytes());
    }
    bytes
}

#[test]
fn a_bundle_of_a_million_entries_is_refused() {
    const ID: &str = "hipv4-amdgcn-amd-amdhsa--gfx1100";
    let entries = vec![[0, 0]; 1_000_000];
    let said = inspected(&bundle(1_000_000, &entries, ID));
    assert!(said.contains("1000000") && said.contains("4096"), "{said}");
}

#[test]
fn entries_outside_of_the_bundle_or_in_its_head_are_refused() {
    const ID: &str = "hipv4-amdgcn-amd-amdhsa--gfx1100";
    const BEYOND: &str = "of the bundle on, beyond its end at 0x1000";
    const IN_HEAD: &str = "overlaps the table";
    for (entry, expected) in [
        ([1 << 40, 16], BEYOND),
        ([u64::MAX - 7, 16], BEYOND),
        ([64, u64::MAX], BEYOND),
        ([4096, 1], BEYOND),
        ([4095, 2], BEYOND),
        ([0, 16], IN_HEAD),
        ([40, 4056], IN_HEAD),
    ] {
        let mut bytes = bundle(1, &[entry], ID);
        bytes.resize(4096, 0);
        let said = inspected(&bytes);
        assert!(said.contains(expected) && said.contains(ID), "{entry:?}: {said}");
    }
}

#[test]
fn entries_that_overlap_are_refused() {
    let object = fs::read(repository("fuzz/seeds/code_object/gfx1100")).unwrap();
    let mut bytes = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bytes.extend(word(2));
    for id in ["hipv4-amdgcn-amd-amdhsa--gfx1100", "hipv4-amdgcn-amd-amdhsa--gfx1101"] {
        bytes.extend([word(4096), word(object.len() as u64), word(id.len() as u64)].concat());
        bytes.extend(id.as_bytes());
    }
    bytes.resize(4096, 0);
    bytes.extend(&object);
    let said = inspected(&bytes);
    assert!(said.contains("overlaps hipv4-amdgcn-amd-amdhsa--gfx1100"), "{said}");
}

/// An archive of a few kilobytes with more content than the run's memory does not use that memory.
#[test]
fn an_archive_that_decodes_to_much_costs_little_memory() {
    need(&["zstd", "xz"]);
    let mut archive = Handmade::with_manifest();
    archive.file(&format!("{STAGE}/zeros"), &vec![0; 132 << 20]);
    let tar = archive.finish();
    for packing in [Packing::Zstd, Packing::Xz] {
        let bytes = packing.compress(&tar);
        assert!(bytes.len() < 1 << 20);
        let input = Input::packed(packing, &bytes);
        let mut discover = crate::rockpack();
        discover.arg("discover").arg(input.shard());
        tools::run(&mut limited(&discover, 128));
    }
}

/// The decoder has to allocate the window.
#[test]
fn windows_above_the_limit_are_refused_in_archives_and_packages() {
    need(&["zstd", "xz"]);
    // One frame whose header claims a window of 2 GiB, without content.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00];
    Input::packed(Packing::Zstd, &frame).refused(&["a_lib_generic.tar.zst", "--long=27"]);
    let folder = tempfile::tempdir().unwrap();
    let package = hostile_packages::with_data(folder.path(), "zst", &frame);
    let said = refusal(&mut inspect(&package));
    assert!(said.contains("requires too much memory"), "{said}");
}

/// An xz stream that states any dictionary size, for a much smaller `tar`.
fn with_dictionary(tar: &[u8], code: u8) -> Vec<u8> {
    let mut bytes = Packing::Xz.compress(tar);
    // After the stream's header come the block header's length, flags, the only filter, the length of its
    // properties, the properties, zeros, and a checksum.
    assert_eq!(bytes[12..16], [2, 0, 0x21, 1]);
    bytes[16] = code;
    let mut sum = flate2::Crc::new();
    sum.update(&bytes[12..20]);
    bytes[20..24].copy_from_slice(&sum.sum().to_le_bytes());
    bytes
}

/// Output of `xz -9` is read; a larger dictionary is refused.
#[test]
fn dictionaries_above_the_limit_are_refused_in_archives_and_packages() {
    need(&["zstd", "xz"]);
    let mut archive = Handmade::with_manifest();
    archive.file(&format!("{STAGE}/x"), b"x");
    let tar = archive.finish();
    let folder = tempfile::tempdir().unwrap();
    let data = Handmade::new().finish();
    // 64 MiB, as with `xz -9`, and 96 MiB.
    for code in [28, 29] {
        let input = Input::packed(Packing::Xz, &with_dictionary(&tar, code));
        tools::run(&mut input.build());
        let data = with_dictionary(&data, code);
        tools::run(&mut inspect(&hostile_packages::with_data(folder.path(), "xz", &data)));
    }
    // 128 MiB, 256 MiB, and the largest possible statement: 4 GiB - 1.
    for code in [30, 32, 40] {
        Input::packed(Packing::Xz, &with_dictionary(&tar, code))
            .refused(&["a_lib_generic.tar.xz", "or xz -9"]);
        let data = with_dictionary(&data, code);
        let package = hostile_packages::with_data(folder.path(), "xz", &data);
        let said = refusal(&mut limited(&inspect(&package), MEMORY));
        assert!(said.contains("memory"), "{code}: {said}");
    }
}

#[test]
fn a_member_that_claims_more_than_the_archive_has_is_refused() {
    for size in ["77777777777", "00100000000"] {
        let mut tar = {
            let mut archive = Handmade::with_manifest();
            archive.file(&format!("{STAGE}/x"), b"x");
            archive.finish()
        };
        let header = 1024;
        tar[header + 124..header + 135].copy_from_slice(size.as_bytes());
        tar[header + 148..header + 156].fill(b' ');
        let sum: u32 = tar[header..header + 512].iter().map(|byte| u32::from(*byte)).sum();
        tar[header + 148..header + 156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let bytes = zstd::encode_all(&tar[..], 1).unwrap();
        Input::packed(Packing::Zstd, &bytes)
            .refused(&["a_lib_generic.tar.zst", "ends inside a member"]);
    }
}
