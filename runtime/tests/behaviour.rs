//! Archives that callers open themselves: their content, and the codes of damage.

use std::fs::{self, File};
use std::io::Write;

use rmpv::Value;
use tempfile::TempDir;

use crate::archives::{Draft, code, digest, frame};
use crate::program::run;
use crate::world::{World, loaded};

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn contents() -> Vec<Vec<u8>> {
    vec![code(1, 40_000), code(2, 7), Vec::new(), code(3, 900_000)]
}

#[test]
fn both_schemes_give_the_bytes_that_went_in() {
    let folder = folder();
    let arches = ["gfx1100", "gfx90a:xnack-"];
    for draft in [Draft::zstd(&arches, &contents()), Draft::stored(&arches, &contents())] {
        let path = draft.write(folder.path().join("x.kpack"));
        let file = path.to_str().unwrap();
        let keys = "lib/x.so#0 lib/x.so#1 lib/x.so#2 lib/x.so#3";
        let told = format!("0 arches gfx1100 gfx90a:xnack- binaries {keys} above 1 1\n");
        assert_eq!(run(&["open", file]), told);
        for (index, content) in contents().iter().enumerate() {
            let (size, hash) = (content.len(), digest(content));
            let got = run(&["get", file, &format!("lib/x.so#{index}"), "gfx90a:xnack-"]);
            assert_eq!(got, format!("0 {size} {hash}\n"));
        }
        for (key, arch) in [("lib/x.so#4", "gfx1100"), ("lib/x.so", "gfx1100"), ("lib/x.so#0", "x")]
        {
            let got = run(&["get", file, key, arch]);
            assert!(got.starts_with("5 untouched ") && got.contains("has no row of"), "{got}");
        }
        assert_eq!(run(&["nulls", file]).lines().next(), Some("0 wrong"));
        let stopped = run(&["arches", file]);
        assert_eq!(stopped, "0 stopped after 1\n1 null path\n1 null callback\n");
    }
}

#[test]
fn an_address_is_found_in_its_file_and_in_no_other_memory() {
    let folder = folder();
    let file = Draft::stored(&["gfx1100"], &contents()).write(folder.path().join("x.kpack"));
    let got = run(&["nulls", file.to_str().unwrap()]);
    let lines: Vec<&str> = got.lines().collect();
    assert_eq!(lines[1], format!("0 {}", crate::program::program().display()));
    assert_eq!(lines[2], "11 heap, 11 unmapped");
}

/// Files that are no archives get the codes of AMD's library.
#[test]
fn damage_has_the_code_of_the_contract_and_a_text() {
    let folder = folder();
    let whole = Draft::zstd(&["gfx1100"], &contents()).bytes();
    let toc = u64::from_le_bytes(whole[8..16].try_into().unwrap());
    let end = whole.len() as u64;
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("9", Vec::new()),
        ("3", whole[..15].to_vec()),
        ("3", changed(&whole, 0, b"KPAC")),
        ("4", changed(&whole, 4, &[2])),
        ("3", changed(&whole, 8, &end.to_le_bytes())),
        ("3", changed(&whole, 8, &u64::MAX.to_le_bytes())),
        ("10", changed(&whole, toc as usize, &[0x93])),
        ("10", changed(&whole, toc as usize, &[0xc1])),
        ("10", whole[..whole.len() - 1].to_vec()),
        ("10", draft_with(|draft| draft.zstd_offset = "64".into())),
        ("10", draft_with(|draft| draft.zstd_offset = (-1).into())),
        ("10", draft_with(|draft| draft.rows[0].2 = 1.5.into())),
        ("10", draft_with(|draft| draft.rows[0].2 = (1_u64 << 32).into())),
        ("10", draft_with(|draft| draft.rows[0].3 = Value::Boolean(true))),
        ("3", draft_with(|draft| draft.zstd_size = Some(((4_u64 << 30) + 1).into()))),
        ("3", draft_with(|draft| draft.zstd_size = Some(3.into()))),
        ("9", draft_with(|draft| draft.zstd_size = Some((1_u64 << 31).into()))),
        ("3", changed(&whole, 64, &((1_u32 << 20) + 1).to_le_bytes())),
        ("3", changed(&whole, 64, &5_u32.to_le_bytes())),
        ("3", changed(&whole, 68, &u32::MAX.to_le_bytes())),
    ];
    let file = folder.path().join("x.kpack");
    for (index, (wanted, bytes)) in cases.iter().enumerate() {
        fs::write(&file, bytes).unwrap();
        let got = run(&["open", file.to_str().unwrap()]);
        let told = format!("{wanted} untouched {}: ", file.display());
        assert!(got.starts_with(&told) && got.len() > told.len() + 8, "case {index}: {got}");
    }
    let got = run(&["open", folder.path().join("none").to_str().unwrap()]);
    assert!(got.starts_with("2 untouched "), "{got}");
    assert!(run(&["open", folder.path().to_str().unwrap()]).starts_with("3 untouched "));
    assert!(run(&["open", file.join("below").to_str().unwrap()]).starts_with("9 untouched "));
    assert!(run(&["open", "/dev/null"]).starts_with("9 untouched "));
}

/// A sparse file costs nothing to make, and has the bytes that a table claims.
#[test]
fn a_sparse_file_of_terabytes_is_refused_at_once() {
    let world = World::new(&["sound.kpack"]);
    let long = |name: &str, bytes: &[u8]| {
        let mut file = File::create(world.path().join(name)).unwrap();
        file.write_all(bytes).unwrap();
        file.set_len(8 << 40).unwrap();
    };
    let claims: [&[u8]; 7] = [
        b"\xdf\xff\xff\xff\xff",
        b"\x81\xa1x\xdd\xff\xff\xff\xff",
        b"\x81\xa1x\xc6\xff\xff\xff\xff",
        b"\x81\xa1x\xdd\x03\x00\x00\x00\xdd\x03\x00\x00\x00",
        b"\x81\xaagfx_arches\x91\xdb\xff\xff\xff\xff",
        b"\x81\xa5blobs\xdd\xff\xff\xff\xff",
        b"\x81\xa3toc\xdf\xff\xff\xff\xff",
    ];
    let mut list = vec!["alarm 120".to_owned(), "start".to_owned()];
    for (number, claim) in claims.iter().enumerate() {
        long(&number.to_string(), &[b"KPAK\x01\0\0\0\x10\0\0\0\0\0\0\0", *claim].concat());
        list.push(format!("open @/{number}"));
    }
    // Code objects that are too large.
    let mut draft = Draft::stored(&["gfx1100"], &contents());
    draft.blobs = [(64, (4 << 30) + 1), (64, 7), (5 << 30, 4 << 30), (9 << 30, 1)].into();
    long("large", &draft.bytes());
    let large = ["open @/large", "get lib/x.so#0 gfx1100", "get lib/x.so#1 gfx1100"];
    list.extend(large.map(str::to_owned));
    // Bytes behind the table of a sound archive do not matter.
    long("sound.kpack", &Draft::zstd(&["gfx1100"], &[code(1, 5000)]).bytes());
    list.extend(["load @/x.so 0 gfx1100", "read"].map(str::to_owned));
    let got = world.run(&list.iter().map(String::as_str).collect::<Vec<_>>());
    for line in &got[..claims.len()] {
        assert!(line.starts_with("3 ") && line.ends_with("more than 67108864 bytes"), "{line}");
    }
    let [open, large, small, load, read] = &got[claims.len()..] else { panic!("{got:?}") };
    assert_eq!([open.as_str(), load], ["0", &loaded(1)]);
    assert!(large.starts_with("9 ") && large.ends_with("exceeds 4 GiB"), "{large}");
    assert!(small.starts_with("0 7 "), "{small}");
    assert!(read.parse::<u64>().unwrap() < 4 << 20, "{read}");
}

/// The bytes of `whole` with other `bytes` at offset `at`.
fn changed(whole: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut copy = whole.to_vec();
    copy[at..at + bytes.len()].copy_from_slice(bytes);
    copy
}

fn draft_with(change: fn(&mut Draft)) -> Vec<u8> {
    let mut draft = Draft::zstd(&["gfx1100"], &contents());
    change(&mut draft);
    draft.bytes()
}

type Change<'a> = dyn Fn(&mut Draft) + 'a;

/// Rows with false fields, among sound ones.
#[test]
fn a_row_that_lies_fails_alone() {
    let folder = folder();
    let file = folder.path().join("x.kpack");
    let cases: [(bool, &str, &str, &Change<'_>); 9] = [
        (false, "5", "no code object 99: it has 4", &|draft| draft.rows[0].2 = 99.into()),
        (false, "5", "has no row of", &|draft| draft.rows[0].2 = Value::Nil),
        (false, "6", "has no original_size", &|draft| draft.rows[0].3 = Value::Nil),
        (false, "6", "install it again", &|draft| draft.rows[0].3 = 39_999.into()),
        (false, "6", "its row says 40001", &|draft| draft.rows[0].3 = 40_001.into()),
        (false, "6", "cannot become", &|draft| draft.rows[0].3 = Value::from(1_u64 << 40)),
        (false, "6", "install it again", &|draft| *draft.blob.get_mut(20).unwrap() ^= 0x55),
        (true, "9", "exceeds 4 GiB", &|draft| draft.blobs[0].1 = 1 << 40),
        (true, "9", "is not within the file", &|draft| draft.blobs[0].0 = u64::MAX),
    ];
    for (index, (stored, wanted, why, change)) in cases.iter().enumerate() {
        let make = if *stored { Draft::stored } else { Draft::zstd };
        let mut draft = make(&["gfx1100"], &contents());
        change(&mut draft);
        draft.write(&file);
        let file = file.to_str().unwrap();
        let got = run(&["get", file, "lib/x.so#0", "gfx1100"]);
        assert!(got.starts_with(&format!("{wanted} untouched {file}: ")), "case {index}: {got}");
        assert!(got.contains("lib/x.so#0 for gfx1100") && got.contains(why), "case {index}: {got}");
        let whole = run(&["get", file, "lib/x.so#1", "gfx1100"]);
        assert!(whole.starts_with("0 7 "), "case {index}: {whole}");
    }
}

/// Forms that zstd decoders accept: several frames, skippable ones, no content size; and a checksum.
#[test]
fn frames_of_any_form_are_read_and_a_wrong_checksum_is_found() {
    let folder = folder();
    let content = code(4, 300_000);
    let with_checksum = {
        let mut compressor = zstd::bulk::Compressor::new(3).unwrap();
        compressor.include_checksum(true).unwrap();
        compressor.include_contentsize(false).unwrap();
        compressor.compress(&content).unwrap()
    };
    let two = [frame(&content[..1000]), frame(&content[1000..])].concat();
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9][..], &frame(&content)].concat();
    let mut damaged = with_checksum.clone();
    *damaged.last_mut().unwrap() ^= 1;
    for (wanted, bytes) in [("0", with_checksum), ("0", two), ("0", skippable), ("6", damaged)] {
        let mut draft = Draft::zstd(&["gfx1100"], std::slice::from_ref(&content));
        draft.blob =
            [&1_u32.to_le_bytes()[..], &(bytes.len() as u32).to_le_bytes(), &bytes].concat();
        let file = draft.write(folder.path().join("x.kpack"));
        let got = run(&["get", file.to_str().unwrap(), "lib/x.so#0", "gfx1100"]);
        assert!(got.starts_with(wanted), "{got}");
        assert!(wanted != "0" || got.contains(&digest(&content)), "{got}");
    }
}

#[test]
fn stored_code_objects_that_overlap_are_loaded() {
    let folder = folder();
    let content = code(5, 9000);
    let mut draft = Draft::stored(&["gfx1100", "gfx1101"], std::slice::from_ref(&content));
    draft.blobs.push((64 + 100, 8000));
    draft.rows[1].2 = 1.into();
    let path = draft.write(folder.path().join("x.kpack"));
    for (arch, part) in [("gfx1100", &content[..]), ("gfx1101", &content[100..8100])] {
        let got = run(&["get", path.to_str().unwrap(), "lib/x.so#0", arch]);
        let len = part.len();
        assert_eq!(got, format!("0 {len} {}\n", digest(part)));
    }
}
