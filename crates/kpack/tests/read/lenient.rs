//! The reader accepts archives that AMD's loader accepts, and refuses others with the same code.

use std::time::{Duration, Instant};

use crate::support::{
    FRAMED_SIZE, Value, archive, blob, deep, framed, framed_fields, framed_of, map, plain_fields,
    plain_of, plain_with, row, set, text, texts,
};
use rockpack_kpack::archive::{Archive, FRAME_LIMIT, Row, Scheme, Span};
use rockpack_kpack::marker::{LIMIT, MarkerFields, load};
use rockpack_kpack::{Code, Names, ReadAt};

fn open(bytes: &[u8]) -> Result<Archive, Code> {
    Archive::open(bytes).map_err(|fault| fault.code())
}

fn code(bytes: &[u8]) -> Option<Code> {
    open(bytes).err()
}

fn framed_with(name: &str, value: Value) -> Vec<u8> {
    let mut fields = framed_fields(FRAMED_SIZE);
    set(&mut fields, name, value);
    framed_of(fields)
}

/// The code object for a key and a target in an archive of these tests.
fn found(bytes: &[u8], key: &str, target: &str) -> Result<Vec<u8>, Code> {
    let archive = open(bytes)?;
    let row = archive.row(key.as_bytes(), target.as_bytes()).ok_or(Code::KernelNotFound)?;
    let Span { offset, size } = archive.stored(row.ordinal)?;
    let mut stored = vec![0; usize::try_from(size).unwrap()];
    bytes.read_at(offset, &mut stored).unwrap();
    Ok(stored)
}

#[test]
fn rows_lead_to_stored_code_objects() {
    for bytes in [plain_of(plain_fields()), framed_of(framed_fields(FRAMED_SIZE))] {
        assert_eq!(found(&bytes, "lib/x.so#0", "gfx90a"), Ok(b"one".to_vec()));
        assert_eq!(found(&bytes, "lib/x.so#0", "gfx90a:xnack+"), Ok(b"four".to_vec()));
        assert_eq!(found(&bytes, "lib/x.so#1", "gfx90a"), Ok(b"four".to_vec()));
        for (key, target) in [("lib/x.so#1", "gfx90a:xnack+"), ("lib/x.so", "gfx90a"), ("", "")] {
            assert_eq!(found(&bytes, key, target), Err(Code::KernelNotFound), "{key} {target}");
        }
        let archive = open(&bytes).unwrap();
        assert_eq!(strings(archive.arches()), ["gfx90a:xnack+", "gfx90a"], "in the file's order");
        assert_eq!(strings(archive.keys()), ["lib/x.so#0", "lib/x.so#1"], "sorted");
        assert_eq!(archive.row(b"lib/x.so#0", b"gfx90a").unwrap().original_size, Some(3));
        assert_eq!(archive.count(), 2);
    }
    assert_eq!(open(&plain_of(plain_fields())).unwrap().scheme(), Scheme::None);
    let framed = open(&framed_of(framed_fields(FRAMED_SIZE))).unwrap();
    assert_eq!(framed.scheme(), Scheme::ZstdPerKernel);
}

fn strings(names: &Names) -> Vec<String> {
    names.iter().map(|name| String::from_utf8(name.to_vec()).unwrap()).collect()
}

/// `< 16 bytes, magic, TOC offset ≥ size`: 3. `version ≠ 1`: 4.
#[test]
fn headers() {
    let good = plain_of(plain_fields());
    for len in 0..16 {
        assert_eq!(code(&good[..len]), Some(Code::InvalidFormat), "{len}");
    }
    assert_eq!(code_with(&good, 3, b"C"), Some(Code::InvalidFormat));
    assert_eq!(code_with(&good, 4, b"\xff"), Some(Code::UnsupportedVersion));
    assert_eq!(code_with(&good, 8, &(good.len() as u64).to_le_bytes()), Some(Code::InvalidFormat));
    assert_eq!(code_with(&good, 8, &u64::MAX.to_le_bytes()), Some(Code::InvalidFormat));
    // Nothing forbids a TOC inside the header, but there is no map.
    assert_eq!(code_with(&good, 8, &0_u64.to_le_bytes()), Some(Code::MsgpackParseFailed));
}

/// The code for `good` with `bytes` from offset `at` on.
fn code_with(good: &[u8], at: usize, bytes: &[u8]) -> Option<Code> {
    let mut archive = good.to_vec();
    archive[at..at + bytes.len()].copy_from_slice(bytes);
    code(&archive)
}

/// `TOC no map, cut`: 10.
#[test]
fn tables_that_are_none() {
    for value in [Value::Nil, texts(&["toc"]), text("toc"), Value::Number(1)] {
        assert_eq!(code(&archive(b"", &value.bytes())), Some(Code::MsgpackParseFailed));
    }
    let good = plain_of(plain_fields());
    for len in 64 + 7 + 1..good.len() {
        assert_eq!(code(&good[..len]), Some(Code::MsgpackParseFailed), "cut at {len}");
    }
    assert_eq!(code(&archive(b"", b"\xc1")), Some(Code::MsgpackParseFailed));
}

/// `bytes behind TOC, unknown keys, any format_version`: accepted.
#[test]
fn unknown_fields_are_skipped() {
    let mut fields = plain_fields();
    fields.insert(0, (text("later"), deep(1_000_000)));
    fields.insert(0, (Value::Number(7), Value::Float(1.5)));
    fields.insert(0, (Value::Binary(b"toc".to_vec()), Value::Nil));
    fields.insert(0, (Value::Text(vec![b'x'; 100_000]), Value::Minus(-1)));
    set(&mut fields, "format_version", text("9"));
    let mut bytes = plain_of(fields);
    bytes.extend(b"\xc1 and more");
    assert_eq!(found(&bytes, "lib/x.so#0", "gfx90a"), Ok(b"one".to_vec()));
    let without = plain_fields().into_iter().skip(3).collect();
    assert_eq!(found(&plain_of(without), "lib/x.so#0", "gfx90a"), Ok(b"one".to_vec()));
}

/// `scheme unknown or absent`: read as `none`.
#[test]
fn schemes() {
    for scheme in [text("lz4"), Value::Nil, text(""), Value::Binary(b"zstd-per-kernel".to_vec())] {
        let bytes = plain_with("compression_scheme", scheme);
        assert_eq!(open(&bytes).unwrap().scheme(), Scheme::None);
        assert_eq!(found(&bytes, "lib/x.so#0", "gfx90a"), Ok(b"one".to_vec()));
    }
    let mut fields = plain_fields();
    fields.remove(4);
    assert_eq!(found(&plain_of(fields), "lib/x.so#0", "gfx90a"), Ok(b"one".to_vec()));
}

/// `number of a wrong type, negative, > u32 ordinal`: 10, as in the later loader.
#[test]
fn numbers_that_are_none() {
    let wrong = [Value::Nil, Value::Minus(-1), Value::Float(1.0), text("1"), Value::Array(vec![])];
    for number in wrong {
        assert_refused(&plain_with("toc", toc_of_row([("ordinal", number.clone())])));
        assert_refused(&plain_with("toc", toc_of_row([("original_size", number.clone())])));
        for field in ["offset", "size"] {
            let blobs = Value::Array(vec![map([(field, number.clone())])]);
            assert_refused(&plain_with("blobs", blobs));
        }
        assert_refused(&framed_with("zstd_offset", number.clone()));
        assert_refused(&framed_with("zstd_size", number.clone()));
        // Numbers that the scheme does not need are not checked.
        let mut fields = plain_fields();
        fields.push((text("zstd_size"), number.clone()));
        assert_eq!(code(&plain_of(fields)), None);
        let mut fields = framed_fields(FRAMED_SIZE);
        fields.push((text("blobs"), Value::Array(vec![map([("size", number)])])));
        assert_eq!(code(&framed_of(fields)), None);
    }
    let ordinal = Value::Number(u64::from(u32::MAX) + 1);
    let bytes = plain_with("toc", toc_of_row([("ordinal", ordinal)]));
    assert_eq!(code(&bytes), Some(Code::MsgpackParseFailed));
}

fn toc_of_row(fields: [(&str, Value); 1]) -> Value {
    map([("lib/x.so#0", map([("gfx90a", map(fields))]))])
}

fn assert_refused(bytes: &[u8]) {
    assert_eq!(code(bytes), Some(Code::MsgpackParseFailed));
}

/// `ordinal or size absent`: AMD's loader uses uninitialised memory. Here a row without an ordinal is
/// skipped, and a row without a size has `None`.
#[test]
fn rows_without_numbers() {
    assert_eq!(row_with(vec![]), None);
    assert_eq!(row_with(vec![(text("original_size"), Value::Number(3))]), None);
    let ordinal = (text("ordinal"), Value::Number(1));
    assert_eq!(row_with(vec![ordinal]), Some(Row { ordinal: 1, original_size: None }));
}

fn row_with(fields: Vec<(Value, Value)>) -> Option<Row> {
    let toc = map([("k", map([("gfx90a", Value::Map(fields))]))]);
    open(&plain_with("toc", toc)).unwrap().row(b"k", b"gfx90a")
}

/// `ordinal out of range`: 5.
#[test]
fn ordinals_of_nothing() {
    for ordinal in [2, 1000, u64::from(u32::MAX)] {
        for archive_with in [plain_with, framed_with] {
            let toc = map([("k", map([("gfx90a", row(ordinal, 3))]))]);
            let bytes = archive_with("toc", toc);
            assert_eq!(found(&bytes, "k", "gfx90a"), Err(Code::KernelNotFound), "{ordinal}");
        }
    }
}

/// `zstd_size > 4 GiB, < 4, frame table outside it, > 1,048,576 frames`: 3.
/// `zstd_offset + size beyond file`: 9.
#[test]
fn blobs_of_frames() {
    for size in [(4 << 30) + 1, u64::MAX, 3, 0, FRAMED_SIZE - 1] {
        assert_eq!(code_with_number("zstd_size", size), Some(Code::InvalidFormat), "{size}");
    }
    assert_eq!(code_with_number("zstd_size", FRAMED_SIZE + 1), None, "bytes behind the last frame");
    assert_eq!(code_with_number("zstd_size", 4 << 30), Some(Code::Io));
    assert_eq!(code_with_number("zstd_offset", 1 << 40), Some(Code::Io));
    assert_eq!(code_with_number("zstd_offset", u64::MAX), Some(Code::Io));
    let two = framed(&[b"one", b"four"]);
    assert_eq!(code_with_count(1, &two), None);
    assert_eq!(code_with_count(3, &two), Some(Code::InvalidFormat));
    assert_eq!(code_with_count(FRAME_LIMIT, &two), Some(Code::InvalidFormat));
    let many = vec![0; 4 + 4 * (FRAME_LIMIT as usize + 1)];
    assert_eq!(code_with_count(FRAME_LIMIT, &many), None);
    assert_eq!(code_with_count(FRAME_LIMIT + 1, &many), Some(Code::InvalidFormat));
    let mut fields = framed_fields(FRAMED_SIZE);
    fields.retain(|(key, _)| !matches!(key, Value::Text(text) if text == b"zstd_size"));
    assert_eq!(code(&framed_of(fields)), Some(Code::InvalidFormat), "no size is one of 0");
}

fn code_with_number(name: &str, number: u64) -> Option<Code> {
    code(&framed_with(name, Value::Number(number)))
}

/// The code for an archive of `blob` with a count of `count` frames.
fn code_with_count(count: u32, blob: &[u8]) -> Option<Code> {
    let mut blob = blob.to_vec();
    blob[..4].copy_from_slice(&count.to_le_bytes());
    let fields = framed_fields(blob.len() as u64);
    code(&archive(&blob, &Value::Map(fields).bytes()))
}

/// `none: blob beyond file`: 9, on access; `original_size` is ignored. A size of 2^40 crashes AMD's loader.
#[test]
fn blobs_of_stored_code_objects() {
    for (offset, size) in [(64, 1 << 40), (1 << 40, 3), (u64::MAX, u64::MAX), (1 << 20, 0)] {
        let blobs = vec![blob(offset, size), Value::Nil, map([])];
        let bytes = plain_with("blobs", Value::Array(blobs));
        assert_eq!(found(&bytes, "lib/x.so#0", "gfx90a"), Err(Code::Io), "{offset} {size}");
        // An item that is no map is no code object; one without numbers is empty.
        assert_eq!(found(&bytes, "lib/x.so#1", "gfx90a"), Ok(Vec::new()));
    }
    let toc = map([("k", map([("gfx90a", row(0, 1 << 40))]))]);
    assert_eq!(found(&plain_with("toc", toc), "k", "gfx90a"), Ok(b"one".to_vec()));
}

/// As many uncompressed code objects as frames.
#[test]
fn more_stored_code_objects_than_frames() {
    for (count, wanted) in [(FRAME_LIMIT, None), (FRAME_LIMIT + 1, Some(Code::InvalidFormat))] {
        let empty = vec![0x80; usize::try_from(count).unwrap()];
        let blobs = [&b"\xdd"[..], &count.to_be_bytes(), &empty].concat();
        assert_eq!(code(&plain_with("blobs", Value::Raw(blobs))), wanted, "{count}");
    }
}

/// Rows whose keys are compared byte by byte for each pair of rows would take minutes.
#[test]
fn rows_of_long_keys_are_sorted_in_seconds() {
    let rows = |odd: usize| {
        let row = map([("ordinal", Value::Number(0))]);
        let rows = (0..20_000).map(|n| (text(&format!("{:06}", 2 * n + odd)), row.clone()));
        Value::Map(rows.collect())
    };
    let long = "k".repeat(1 << 20);
    let bytes = plain_with("toc", map([(&*long, rows(1)), (&*long, rows(0)), ("a", rows(0))]));
    let start = Instant::now();
    let archive = open(&bytes).unwrap();
    let took = start.elapsed();
    assert_eq!(archive.keys().iter().collect::<Vec<_>>(), [&b"a"[..], long.as_bytes()]);
    assert_eq!(archive.rows_of(long.as_bytes()).count(), 40_000);
    assert!(took < Duration::from_secs(20), "{took:?}");
}

/// The first of equal fields counts, and the last of equal rows.
#[test]
fn what_is_there_twice() {
    let mut fields = plain_fields();
    fields.push((text("gfx_arches"), texts(&["gfx1"])));
    fields.push((text("toc"), Value::Nil));
    fields.push((text("blobs"), Value::Nil));
    fields.push((text("compression_scheme"), text("zstd-per-kernel")));
    assert_eq!(found(&plain_of(fields), "lib/x.so#0", "gfx90a"), Ok(b"one".to_vec()));
    let rows = [("gfx90a", row(0, 3)), ("gfx90a", row(1, 4))];
    let bytes = plain_with("toc", map([("k", map(rows.clone()))]));
    assert_eq!(found(&bytes, "k", "gfx90a"), Ok(b"four".to_vec()));
    let [one, other] = rows.map(|row| map([row]));
    let bytes = plain_with("toc", map([("k", one), ("k", other)]));
    assert_eq!(found(&bytes, "k", "gfx90a"), Ok(b"four".to_vec()));
    assert_eq!(open(&bytes).unwrap().keys().len(), 1);
    let ordinals = [("ordinal", Value::Number(0)), ("ordinal", Value::Nil)];
    let bytes = plain_with("toc", map([("k", map([("gfx90a", map(ordinals))]))]));
    assert_eq!(found(&bytes, "k", "gfx90a"), Ok(b"one".to_vec()));
}

#[test]
fn rows_of_other_kinds_are_left_out() {
    let odd = Value::Map(vec![
        (Value::Number(1), map([("gfx90a", row(0, 3))])),
        (text("no map"), Value::Nil),
        (text("empty"), map([])),
        (
            text("k"),
            Value::Map(vec![
                (Value::Nil, row(0, 3)),
                (text("no map"), texts(&["gfx90a"])),
                (Value::Text(b"\xff".to_vec()), row(1, 4)),
            ]),
        ),
    ]);
    let bytes = plain_with("toc", odd);
    let archive = open(&bytes).unwrap();
    assert_eq!(archive.keys().iter().collect::<Vec<_>>(), [b"k"]);
    assert_eq!(archive.row(b"k", b"no map"), None);
    assert_eq!(archive.row(b"k", b"\xff").unwrap().ordinal, 1);
    let arches = Value::Array(vec![text("a"), Value::Nil, texts(&["b"]), text("c")]);
    let archive = open(&plain_with("gfx_arches", arches)).unwrap();
    assert_eq!(archive.arches().iter().collect::<Vec<_>>(), [b"a", b"c"]);
    assert_eq!(open(&plain_with("gfx_arches", text("a"))).unwrap().arches().len(), 0);
    assert_eq!(open(&plain_with("toc", Value::Nil)).unwrap().keys().len(), 0);
}

/// A source that cannot be read from an offset on.
struct Broken<'a>(&'a [u8], u64);

impl ReadAt for Broken<'_> {
    type Error = ();

    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), ()> {
        if offset + (buffer.len() as u64) > self.1 {
            Err(())
        } else {
            self.0.read_at(offset, buffer).map_err(drop)
        }
    }
}

#[test]
fn what_cannot_be_read_is_told_as_that() {
    for bytes in [plain_of(plain_fields()), framed_of(framed_fields(FRAMED_SIZE))] {
        for from in 0..bytes.len() as u64 {
            let fault = Archive::open(&Broken(&bytes, from)).unwrap_err();
            assert_eq!(fault.code(), Code::Io, "{from}");
        }
    }
}

/// Markers: 12 unless a map with a text `kernel_name` and an array with a text
/// `kpack_search_paths`; others are skipped, and of equal keys the first counts.
#[test]
fn markers() {
    let good = map([
        ("later", texts(&["x"])),
        name_field(),
        paths_field(),
        ("kernel_name", Value::Nil),
        ("kpack_search_paths", Value::Nil),
    ]);
    let loaded = loaded_marker(&good.bytes()).unwrap();
    assert_eq!(loaded.kernel_name, b"lib/x.so");
    assert_eq!(loaded.search_paths.iter().collect::<Vec<_>>(), [&b"a"[..], b"@GFXARCH@"]);
    let followed = [good.bytes(), b"\xc1".to_vec()].concat();
    assert_eq!(loaded_marker(&followed), Ok(loaded));
    for bad in [
        map([name_field()]),
        map([paths_field()]),
        map([("kernel_name", Value::Nil), paths_field()]),
        map([("kernel_name", Value::Binary(b"x".to_vec())), paths_field()]),
        map([name_field(), ("kpack_search_paths", texts(&[]))]),
        map([name_field(), ("kpack_search_paths", Value::Array(vec![Value::Nil]))]),
        map([name_field(), ("kpack_search_paths", text("a"))]),
        map([("kernel_name", Value::Nil), name_field(), paths_field()]),
        texts(&["kernel_name"]),
        Value::Nil,
    ] {
        assert_eq!(loaded_marker(&bad.bytes()), Err(Code::InvalidMetadata), "{bad:?}");
    }
    for len in 0..good.bytes().len() {
        assert_eq!(loaded_marker(&good.bytes()[..len]), Err(Code::InvalidMetadata), "cut at {len}");
    }
    let long = map([name_field(), paths_field(), ("x", Value::Binary(vec![0; LIMIT]))]).bytes();
    assert_eq!(loaded_marker(&long[..LIMIT]), Err(Code::InvalidMetadata));
}

fn loaded_marker(bytes: &[u8]) -> Result<MarkerFields, Code> {
    load(bytes).map_err(|fault| fault.code())
}

fn paths_field() -> (&'static str, Value) {
    let paths = vec![Value::Nil, text("a"), Value::Number(1), text("@GFXARCH@")];
    ("kpack_search_paths", Value::Array(paths))
}

fn name_field() -> (&'static str, Value) {
    ("kernel_name", text("lib/x.so"))
}
