//! Walks over all rows, and over the notes of code objects, of crafted archives.

use std::time::{Duration, Instant};

use rmpv::Value;

use crate::archives::{Draft, code, frame};
use crate::program::{both, steps};

/// A note of a code object.
fn note(name: &[u8], descriptor: &[u8], kind: u32) -> Vec<u8> {
    let words = [name.len() as u32, descriptor.len() as u32, kind];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    for part in [name, descriptor] {
        bytes.extend_from_slice(part);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}

/// The note with the names of these kernels.
fn kernels(names: &[&str]) -> Vec<u8> {
    let list = names.iter().map(|name| Value::Map(vec![(".name".into(), (*name).into())]));
    let mut bytes = Vec::new();
    let map = Value::Map(vec![("amdhsa.kernels".into(), Value::Array(list.collect()))]);
    rmpv::encode::write_value(&mut bytes, &map).unwrap();
    note(b"AMDGPU\0", &bytes, 32)
}

/// A code object whose program headers declare these parts (offset, size) of `body` as notes.
fn code_object(parts: &[(usize, usize)], body: &[u8]) -> Vec<u8> {
    let start = 64 + 56 * parts.len();
    let mut bytes = b"\x7fELF\x02\x01\x01\x40\x04".to_vec();
    bytes.resize(16, 0);
    bytes.extend([3, 0, 224, 0, 1, 0, 0, 0]);
    for word in [0_u64, 64, 0] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend([0; 4]);
    for half in [64, 56, parts.len() as u16, 0, 0, 0] {
        bytes.extend(half.to_le_bytes());
    }
    for (offset, size) in parts {
        bytes.extend([4, 0, 0, 0, 4, 0, 0, 0]);
        let at = (start + offset) as u64;
        for word in [at, at, at, *size as u64, *size as u64, 4] {
            bytes.extend(word.to_le_bytes());
        }
    }
    bytes.extend_from_slice(body);
    bytes
}

/// The lines of steps with an open archive, and their duration.
fn timed(draft: &Draft, list: &[&str]) -> (Vec<String>, Duration) {
    let folder = tempfile::tempdir().unwrap();
    let path = draft.write(folder.path().join("x.kpack"));
    let open = format!("open {}", path.display());
    let start = Instant::now();
    let (out, _) = both(&mut steps(&[&[open.as_str()], list].concat()));
    (out.lines().skip(1).map(str::to_owned).collect(), start.elapsed())
}

fn walk(code_object: Vec<u8>) -> [String; 2] {
    let draft = Draft::zstd(&["gfx1100"], &[code_object]);
    timed(&draft, &["kernels lib/x.so#0 gfx1100", "find third"]).0.try_into().unwrap()
}

#[test]
fn kernels_of_all_notes_are_found() {
    let (first, second) = (kernels(&["first", "second"]), kernels(&["third"]));
    let other = note(b"other\0", b"", 32);
    let body = [&first[..], &other, &second].concat();
    let (a, b, c) = (first.len(), other.len(), second.len());
    let all = ["kernels first second third 0", "rows lib/x.so#0@gfx1100 0"];
    // One segment, several, one that occurs twice, an empty one.
    for parts in [
        &[(0, body.len())][..],
        &[(0, a), (a, b + c)],
        &[(a + b, c), (0, a), (a, b)],
        &[(0, a + b), (0, a + b), (a + b, c), (a, 0)],
    ] {
        assert_eq!(walk(code_object(parts, &body)), all, "{parts:?}");
    }
    assert_eq!(walk(code_object(&[], &[])), ["kernels 0", "rows 0"]);
    assert_eq!(walk(b"no ELF file".to_vec()), ["kernels 0", "rows 0"]);
}

#[test]
fn damaged_notes_are_no_missing_kernels() {
    let whole = kernels(&["third"]);
    let len = whole.len();
    let cut = &whole[..len - 8];
    let odd = note(b"AMDGPU\0", b"\x93", 32);
    let mut no_headers = code_object(&[(0, len)], &whole);
    no_headers.truncate(100);
    for (code_object, why) in [
        (code_object(&[(0, cut.len())], cut), "a note leaves its segment"),
        (code_object(&[(0, len)], cut), "a segment of notes leaves it"),
        (code_object(&[(usize::MAX >> 1, 8)], &whole), "a segment of notes leaves it"),
        (code_object(&[(0, odd.len())], &odd), "no MessagePack map of kernels"),
        (code_object(&[(0, len), (4, len - 4)], &whole), "two segments share notes"),
        (no_headers, "its program headers leave it"),
    ] {
        for line in walk(code_object) {
            let told = [" 12 /", "x.kpack: lib/x.so#0 for gfx1100: ", why, "; install it again"];
            assert!(told.iter().all(|part| line.contains(part)), "{line}");
        }
    }
}

/// Small archives that would keep a walk busy for minutes.
#[test]
fn small_archives_do_not_keep_walks_busy() {
    let notes = note(b"", b"", 1).repeat(100_000);
    let many = vec![(0, notes.len()); 5000];
    let mut draft = Draft::zstd(&["gfx1100"], &[code_object(&many, &notes)]);
    let all = &["find third", "verify"][..];
    let (got, took) = timed(&draft, all);
    assert_eq!(got, ["rows 0", "0 1"]);
    assert!(took < Duration::from_secs(2), "{took:?}");
    // Many rows of one code object, and many stored in one place.
    let zeros = vec![0; 8 << 20];
    draft = Draft::zstd(&["gfx1100"], std::slice::from_ref(&zeros));
    let mut stored = Draft::stored(&["gfx1100"], std::slice::from_ref(&zeros));
    for index in 1..2000 {
        for (draft, ordinal) in [(&mut draft, 0), (&mut stored, index)] {
            let (_, target, _, size) = draft.rows[0].clone();
            draft.rows.push((format!("lib/x.so#{index}"), target, ordinal.into(), size));
            draft.blobs.extend((ordinal > 0).then_some((64, zeros.len() as u64)));
        }
    }
    for draft in [&draft, &stored] {
        let (got, took) = timed(draft, all);
        assert_eq!(got, ["rows 0", "0 2000"]);
        assert!(took < Duration::from_secs(2), "{took:?}");
    }
    // Partly overlapping places.
    stored.blobs[7].1 -= 1;
    let (got, _) = timed(&stored, &["verify", "get lib/x.so#7 gfx1100"]);
    assert!(got[0].starts_with("3 ") && got[0].contains("overlap; install it again"), "{got:?}");
    assert!(got[1].starts_with("0 "), "{got:?}");
}

/// Rows whose names have a NUL are loaded by their full names.
#[test]
fn verification_loads_rows_whose_names_have_a_nul() {
    let mut draft = Draft::zstd(&["gfx1100"], &[code(1, 400), code(2, 400)]);
    draft.rows[0].0 = "a#0".to_owned();
    draft.rows[1].0 = "a#0\0b".to_owned();
    assert_eq!(timed(&draft, &["verify"]).0, ["0 2"]);
    let (_, _, ordinal, size) = draft.rows[1].clone();
    let last = draft.blob.len() - frame(&code(2, 400)).len();
    draft.blob[last] ^= 0xff;
    let named = timed(&draft, &["verify"]).0;
    assert!(named[0].starts_with("6 ") && named[0].contains("a#0\\u{0}b for gfx1100"), "{named:?}");
    // The same for targets.
    draft.rows[1] = ("a#0".to_owned(), "gfx1100\0x".to_owned(), ordinal, size);
    let named = timed(&draft, &["verify"]).0;
    assert!(named[0].starts_with("6 "), "{named:?}");
}

/// Rows of one code object with different sizes: one of them is wrong.
#[test]
fn verification_finds_a_wrong_size_of_a_code_object_that_it_knows() {
    let mut draft = Draft::zstd(&["gfx1100", "gfx1101"], &[code(1, 400)]);
    draft.rows[1].3 = 401.into();
    let got = timed(&draft, &["verify"]).0;
    assert!(got[0].starts_with("6 ") && got[0].contains("its row says 401"), "{got:?}");
    draft.rows[1] = ("lib/x.so#0".to_owned(), "gfx1101".to_owned(), 7.into(), 400.into());
    let got = timed(&draft, &["verify"]).0;
    assert!(got[0].starts_with("5 ") && got[0].ends_with("no code object 7: it has 1"), "{got:?}");
}
