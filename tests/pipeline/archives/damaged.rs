//! Archives that were cut or changed.

use super::*;

/// Wherever a compressed archive is cut, the error names the file and an offset.
#[test]
fn a_truncated_archive_is_an_error_wherever_it_is_cut() {
    need(&archives::TOOLS);
    let mut archive = Handmade::with_manifest();
    archive.file("libs/A/stage/x", b"some text");
    archive.member("libs/A/stage/y", b'2', "x", 0o777, b"");
    let tar = archive.finish();
    for packing in BOTH {
        let bytes = packing.compress(&tar);
        let packed = Packed::compressed(packing, &bytes);
        packed.scan().unwrap();
        for len in 0..bytes.len() {
            fs::write(&packed.archive, &bytes[..len]).unwrap();
            let error = packed.refusal();
            assert_eq!(error.place().file.as_deref(), Some(packed.archive.as_path()), "{error}");
            assert!(error.place().offset.unwrap() <= len as u64, "{len}: {error}");
        }
        let mut more = bytes.clone();
        more.extend(b"more");
        fs::write(&packed.archive, more).unwrap();
        assert_names(&packed.refusal(), &packed.archive, "decode the compressed stream");
    }
}

/// After its two final blocks of zeros, a tar archive may have any number of further zeros.
#[test]
fn a_truncated_tar_is_an_error_up_to_its_end() {
    let mut archive = Handmade::with_manifest();
    archive.file("libs/A/stage/x", b"some text");
    let mut tar = archive.finish();
    let end = tar.len();
    tar.resize(10240, 0);
    let packed = Packed::new(&tar);
    for len in 0..end {
        let error = scan_of(&packed, &tar[..len]).unwrap_err();
        assert!(error.place().file.is_some(), "{error}");
        if len > 512 && len % 512 == 0 {
            let text = error.to_string();
            assert!(text.contains("tar archive at its byte"), "{len}: {error}");
        }
    }
    for len in [end, end + 1, end + 512, tar.len()] {
        scan_of(&packed, &tar[..len]).unwrap();
    }
    tar[end + 600] = 1;
    fs::write(&packed.archive, zstd::encode_all(&tar[..], 1).unwrap()).unwrap();
    assert_names(&packed.refusal(), &packed.archive, "has data after its end");
}

fn scan_of(packed: &Packed, tar: &[u8]) -> Result<Scan, Error> {
    fs::write(&packed.archive, zstd::encode_all(tar, 1).unwrap()).unwrap();
    packed.scan()
}

#[test]
fn every_damaged_byte_of_a_header_is_an_error() {
    let mut archive = Handmade::with_manifest();
    archive.file("libs/A/stage/x", b"some text");
    let tar = archive.finish();
    let packed = Packed::new(&tar);
    // Readers ignore the two bytes after the digits of the checksum.
    let says_something = |at: &usize| !(154..156).contains(&(at % 512));
    for at in (0..512).chain(1024..1536).filter(says_something) {
        let mut damaged = tar.clone();
        damaged[at] ^= 0x11;
        fs::write(&packed.archive, zstd::encode_all(&damaged[..], 1).unwrap()).unwrap();
        let error = packed.refusal();
        assert!(error.to_string().contains("checksum"), "{at}: {error}");
    }
}

#[test]
fn a_build_of_a_damaged_archive_leaves_nothing() {
    need(&archives::TOOLS);
    let folder = tempfile::tempdir().unwrap();
    let shards = folder.path().join("shards");
    copy_shards(&shards);
    let artifact = GROUPS[0].folder(&shards).join("blas_lib_gfx110X-dgpu");
    let archive = pack(&artifact, Packing::Zstd);
    let mut bytes = fs::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes.truncate(middle);
    fs::write(&archive, bytes).unwrap();
    let out = folder.path().join("out");
    let output = build_of(&shards, &out).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("blas_lib_gfx110X-dgpu.tar.zst: "), "{said}");
    assert!(said.contains("copied only in part"), "{said}");
    assert!(!out.exists());
}

/// The error for a file in an archive names the archive, the member, and the offset within it.
#[test]
fn a_fault_of_a_member_has_its_place() {
    need(&archives::TOOLS);
    let folder = tempfile::tempdir().unwrap();
    let shards = folder.path().join("shards");
    copy_shards(&shards);
    let group = &GROUPS[0];
    let name = "lib/rocblas/library/TensileLibrary_gfx1101.co";
    let file = group.original(&shards, name);
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..2000]).unwrap();
    pack(&group.folder(&shards).join("blas_lib_gfx110X-dgpu"), Packing::Zstd);
    let output = build_of(&shards, &folder.path().join("out")).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap().replace(['\n', ' ', '│'], "");
    let member = format!("tar.zst(math-libs/BLAS/rocBLAS/stage/{name}):");
    assert!(said.contains(&member) && said.contains("atoffset0x"), "{said}");
}
