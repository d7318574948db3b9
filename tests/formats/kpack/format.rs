//! Kernel archives as bytes: our writer with an independent reader, an independent writer with our reader,
//! and everything that must be refused.
//!
//! Needs python3-msgpack and python3-zstandard for the judges.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use proptest::prelude::*;
use rockpack_core::content::Content;
use rockpack_core::error::Kind;
use rockpack_elf::kpack::{
    BLOB_LIMIT, FRAME_LIMIT, KpackReader, Scheme, Toc, TocRow, VERSION, key, write,
};
use support::kpack::{bytes, code, judged, need_python, python, sha256};

fn toc(scheme: Scheme, rows: &[(&str, u32, u32, u64)]) -> Toc {
    let mut table: BTreeMap<String, BTreeMap<String, TocRow>> = BTreeMap::new();
    for (name, co_index, ordinal, original_size) in rows {
        let row = TocRow {
            kind: "hsaco".to_owned(),
            ordinal: *ordinal,
            original_size: *original_size,
            metadata: None,
        };
        let targets = table.entry(key(name, *co_index)).or_default();
        targets.insert("gfx1100".to_owned(), row);
    }
    Toc {
        group_name: "blas_lib".to_owned(),
        gfx_arch_family: "gfx1100".to_owned(),
        gfx_arches: vec!["gfx1100".to_owned()],
        scheme,
        rows: table,
    }
}

/// Stores `objects` under wrappers 0, 1, … of one binary.
fn archive(scheme: Scheme, objects: &[Vec<u8>]) -> (Toc, Content) {
    let rows: Vec<_> =
        (0_u32..).zip(objects).map(|(n, object)| ("lib/x.so", n, n, object.len() as u64)).collect();
    let stored = objects.iter().map(|object| match scheme {
        Scheme::None => Content::of_bytes(object.clone()),
        Scheme::ZstdPerKernel => Content::of_bytes(zstd::bulk::compress(object, 3).unwrap()),
    });
    let toc = toc(scheme, &rows);
    let content = write(&toc, &stored.collect::<Vec<_>>()).unwrap();
    (toc, content)
}

#[test]
fn the_independent_reader_accepts_both_schemes() {
    need_python();
    let objects: Vec<_> = (0..12).map(|n| code(n, 100 + 999 * n as usize)).collect();
    for scheme in [Scheme::ZstdPerKernel, Scheme::None] {
        let (_, content) = archive(scheme, &objects);
        let json = judged(&content);
        assert_eq!(json["compression_scheme"], scheme.as_str());
        assert_eq!(json["objects"], 12);
        for (n, object) in objects.iter().enumerate() {
            assert_eq!(json["rows"][format!("lib/x.so#{n}")]["gfx1100"]["sha256"], sha256(object));
            assert_eq!(json["keys"][n], format!("lib/x.so#{n}"), "numeric order");
        }
    }
}

#[test]
fn archives_of_an_independent_writer_are_read() {
    need_python();
    for (scheme, start) in
        [("zstd-per-kernel", "64"), ("none", "64"), ("zstd-per-kernel", "16"), ("none", "16")]
    {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        let expected = python("kpack_writer.py", &[path, scheme, start]).unwrap();
        let reader = KpackReader::open(support::fixtures::content(path)).unwrap();
        let mut seen = serde_json::Map::new();
        for (key, targets) in &reader.toc().rows {
            let digests = targets.iter().map(|(target, row)| {
                let object = bytes(&reader.code_object(row.ordinal).unwrap());
                assert_eq!(object.len() as u64, row.original_size);
                (target.clone(), sha256(&object).into())
            });
            seen.insert(key.clone(), serde_json::Value::Object(digests.collect()));
        }
        assert_eq!(serde_json::Value::Object(seen), expected, "{scheme} at {start}");
        assert_eq!(reader.toc().group_name, "one_lib");
    }
}

#[test]
fn an_archive_cut_anywhere_is_refused() {
    for scheme in [Scheme::ZstdPerKernel, Scheme::None] {
        let (_, content) = archive(scheme, &[code(1, 70), code(2, 40)]);
        let whole = bytes(&content);
        for len in 0..whole.len() {
            let cut = Content::of_bytes(&whole[..len]);
            assert!(KpackReader::open(cut).is_err(), "{scheme:?} {len}");
        }
        let longer = [whole, vec![0xc0]].concat();
        assert!(KpackReader::open(Content::of_bytes(longer)).is_err());
    }
}

/// Reads all code objects of an archive.
fn read_all(content: Content) -> Result<Vec<Vec<u8>>, rockpack_core::error::Error> {
    use std::io::Read;
    let reader = KpackReader::open(content)?;
    let mut objects = Vec::new();
    for ordinal in 0..u32::try_from(reader.len()).unwrap() {
        let mut object = Vec::new();
        let mut content = reader.code_object(ordinal)?.reader();
        let read = content.read_to_end(&mut object);
        read.map_err(|e| rockpack_core::error::Error::io("archive", "read", e))?;
        objects.push(object);
    }
    Ok(objects)
}

/// A frame as the pack stage writes it, with content size and checksum.
fn checked_frame(object: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    encoder.set_pledged_src_size(Some(object.len() as u64)).unwrap();
    encoder.include_checksum(true).unwrap();
    std::io::Write::write_all(&mut encoder, object).unwrap();
    encoder.finish().unwrap()
}

/// Frames of one block and of many, with the checksum in another read than the content.
#[test]
fn the_end_of_a_frame_is_checked() {
    for len in [40, 127 << 10, 128 << 10, 300 << 10, 3 << 20] {
        let object = code(3, len);
        let toc = toc(Scheme::ZstdPerKernel, &[("a", 0, 0, len as u64)]);
        let frame = checked_frame(&object);
        assert_eq!(read_stored(&toc, frame.clone()).unwrap(), [object]);
        let mut wrong = frame.clone();
        *wrong.last_mut().unwrap() ^= 1;
        assert!(read_stored(&toc, wrong).is_err(), "checksum, {len}");
        let longer = [frame.clone(), vec![0]].concat();
        assert!(read_stored(&toc, longer).is_err(), "a byte behind, {len}");
        let twice = [frame.clone(), frame.clone()].concat();
        assert!(read_stored(&toc, twice).is_err(), "a frame behind, {len}");
        let shorter = frame[..frame.len() - 1].to_vec();
        assert!(read_stored(&toc, shorter).is_err(), "cut, {len}");
    }
}

fn read_stored(toc: &Toc, frame: Vec<u8>) -> Result<Vec<Vec<u8>>, rockpack_core::error::Error> {
    read_all(write(toc, &[Content::of_bytes(frame)]).unwrap())
}

#[test]
fn a_changed_byte_changes_nothing_silently() {
    let objects = [code(1, 300), code(2, 40)];
    let stored: Vec<_> =
        objects.iter().map(|object| Content::of_bytes(checked_frame(object))).collect();
    let toc = toc(Scheme::ZstdPerKernel, &[("a", 0, 0, 300), ("a", 1, 1, 40)]);
    let content = write(&toc, &stored).unwrap();
    let whole = bytes(&content);
    for position in 0..toc_offset(&whole) {
        let mut damaged = whole.clone();
        damaged[position] ^= 0x10;
        let read = read_all(Content::of_bytes(damaged));
        // Header bits of a frame that decoders ignore may differ; content may not.
        assert!(read.is_err() || read.unwrap() == objects, "{position}");
    }
}

fn patched(whole: &[u8], from: &[u8], to: &[u8]) -> Content {
    let places: Vec<_> = (0..whole.len()).filter(|at| whole[*at..].starts_with(from)).collect();
    assert_eq!(places.len(), 1, "{}", from.escape_ascii());
    let mut bytes = whole[..places[0]].to_vec();
    bytes.extend(to);
    bytes.extend(&whole[places[0] + from.len()..]);
    Content::of_bytes(bytes)
}

#[test]
fn what_contradicts_itself_is_refused() {
    let (_, framed) = archive(Scheme::ZstdPerKernel, &[code(1, 70)]);
    let framed = bytes(&framed);
    let (_, plain) = archive(Scheme::None, &[code(1, 70), code(2, 40)]);
    let plain = bytes(&plain);
    let with_unknown_version = |behind: &[u8]| {
        let known = u8::try_from(VERSION).unwrap();
        patched(&framed, &[behind, &[known]].concat(), &[behind, &[0x7f]].concat())
    };
    let cases = [
        (patched(&framed, b"KPAK", b"KPAC"), Kind::Malformed),
        (with_unknown_version(b"KPAK"), Kind::Unsupported),
        (with_unknown_version(b"\xaeformat_version"), Kind::Unsupported),
        (patched(&framed, b"zstd-per-kernel", b"lz4-per-kernel!"), Kind::Unsupported),
        (patched(&framed, b"\xa7ordinal\x00", b"\xa7ordinal\x01"), Kind::Malformed),
        (patched(&framed, b"\xadoriginal_size\x46", b"\xadoriginal_size\x45"), Kind::Malformed),
        (patched(&framed, b"zstd_offset\x40", b"zstd_offset\x3f"), Kind::Malformed),
        (patched(&framed, b"gfx_arches\x91", b"gfx_archez\x91"), Kind::Malformed),
        (
            patched(&plain, b"\xa6offset\x40\xa4size\x46", b"\xa6offset\x0f\xa4size\x46"),
            Kind::Malformed,
        ),
        (
            patched(&plain, b"\xa6offset\x40\xa4size\x46", b"\xa6offset\x7f\xa4size\x46"),
            Kind::Malformed,
        ),
        (
            patched(&plain, b"\xa6offset\x40\xa4size\x46", b"\xa6offset\x40\xa4size\x7f"),
            Kind::Malformed,
        ),
        // A key twice: loaders disagree on which one counts.
        (patched(&plain, b"\xaalib/x.so#1", b"\xaalib/x.so#0"), Kind::Malformed),
    ];
    for (number, (content, kind)) in cases.into_iter().enumerate() {
        let error = refusal(content);
        assert_eq!(error.kind(), kind, "case {number}: {error}");
    }
    let mut padded = framed.clone();
    padded[17] = 1;
    let error = refusal(Content::of_bytes(padded));
    assert!(error.to_string().contains("padding"), "{error}");
    let mut far = framed.clone();
    far[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_eq!(refusal(Content::of_bytes(far)).kind(), Kind::Malformed);
    // Zeros before the TOC, which a sparse file has for nothing, are not read to their end.
    let (front, table) = framed.split_at(toc_offset(&framed));
    let mut front = front.to_vec();
    let toc = front.len() as u64 + BLOB_LIMIT;
    front[8..16].copy_from_slice(&toc.to_le_bytes());
    let parts = [Content::of_bytes(front), Content::zeros(BLOB_LIMIT), Content::of_bytes(table)];
    assert_eq!(refusal(Content::concat(&parts)).kind(), Kind::Limit);
}

fn toc_offset(whole: &[u8]) -> usize {
    usize::try_from(u64::from_le_bytes(whole[8..16].try_into().unwrap())).unwrap()
}

fn refusal(content: Content) -> rockpack_core::error::Error {
    KpackReader::open(content).unwrap_err()
}

#[test]
fn frames_must_announce_their_size() {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    std::io::Write::write_all(&mut encoder, b"content").unwrap();
    let frame = Content::of_bytes(encoder.finish().unwrap());
    let toc = toc(Scheme::ZstdPerKernel, &[("lib/x.so", 0, 0, 7)]);
    let error = KpackReader::open(write(&toc, &[frame]).unwrap()).unwrap_err();
    assert!(error.to_string().contains("announce"), "{error}");
}

#[test]
fn the_ceilings_of_loaders_are_ours_and_name_the_component() {
    let whole_blob = BLOB_LIMIT - 8;
    for (len, fits) in [(whole_blob, true), (whole_blob + 1, false), (u64::MAX - 9, false)] {
        let toc = toc(Scheme::ZstdPerKernel, &[("lib/x.so", 0, 0, 1)]);
        let written = write(&toc, &[Content::zeros(len)]);
        assert_eq!(written.is_ok(), fits, "{len}");
        if let Err(error) = written {
            assert_eq!(error.kind(), Kind::Limit);
            assert!(error.to_string().contains("blas_lib for gfx1100"), "{error}");
        }
    }
    let toc_of = |size| toc(Scheme::ZstdPerKernel, &[("lib/x.so", 0, 0, size)]);
    assert!(write(&toc_of(BLOB_LIMIT), &[Content::zeros(9)]).is_ok());
    let error = write(&toc_of(BLOB_LIMIT + 1), &[Content::zeros(9)]).unwrap_err();
    assert_eq!(error.kind(), Kind::Limit, "{error}");
    for (count, kind) in [(FRAME_LIMIT, Kind::Bug), (FRAME_LIMIT + 1, Kind::Limit)] {
        let toc = toc(Scheme::None, &[("lib/x.so", 0, 0, 1)]);
        let frames = vec![Content::of_bytes(*b"x"); usize::try_from(count).unwrap()];
        // The allowed number of frames passes this check and fails the next one: they have no rows.
        let error = write(&toc, &frames).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
}

/// Writes an archive in which `hole` is all zeros, as a sparse file.
fn sparse(path: &Path, archive: &Content, hole: Range<u64>) {
    let file = File::create(path).unwrap();
    file.set_len(archive.len()).unwrap();
    for part in [0..hole.start, hole.end..archive.len()] {
        let mut bytes = vec![0; usize::try_from(part.end - part.start).unwrap()];
        archive.read_at(part.start, &mut bytes).unwrap();
        file.write_all_at(&bytes, part.start).unwrap();
    }
}

/// The test with Python's reader, for code behind 2 GiB, runs only in `.ci/nightly`.
/// [`frames_behind_2_gib_are_read`] tests our reader in every run, without such a long file.
#[test]
#[ignore = "reads 2 GiB: .ci/nightly"]
fn code_behind_2_gib_is_found_by_both_readers() {
    need_python();
    let (zeros, last) = ((2_u64 << 30) + 1, code(7, 5000));
    let rows = [("lib/x.so", 0, 0, zeros), ("lib/x.so", 1, 1, last.len() as u64)];
    let toc = toc(Scheme::None, &rows);
    let archive = write(&toc, &[Content::zeros(zeros), Content::of_bytes(last.clone())]).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    sparse(file.path(), &archive, 64..64 + zeros);
    let json = python("kpack_reader.py", &[file.path().to_str().unwrap()]).unwrap();
    assert_eq!(json["rows"]["lib/x.so#0"]["gfx1100"]["size"], zeros);
    assert_eq!(json["rows"]["lib/x.so#1"]["gfx1100"]["sha256"], sha256(&last));
    let reader = KpackReader::open(support::fixtures::content(file.path())).unwrap();
    assert_eq!(bytes(&reader.code_object(1).unwrap()), last);
}

#[test]
fn frames_behind_2_gib_are_read() {
    const PART: usize = 4 << 20;
    let repeated = Content::of_bytes(zstd::bulk::compress(&code(1, PART), 1).unwrap());
    let count = u32::try_from((2_u64 << 30) / repeated.len()).unwrap() + 1;
    let last = code(7, 5000);
    let sizes = (0..=count).map(|n| if n == count { 5000 } else { PART as u64 });
    let rows: Vec<_> = (0_u32..).zip(sizes).map(|(n, size)| ("lib/x.so", n, n, size)).collect();
    let mut frames = vec![repeated; count as usize];
    frames.push(Content::of_bytes(zstd::bulk::compress(&last, 1).unwrap()));
    let archive = write(&toc(Scheme::ZstdPerKernel, &rows), &frames).unwrap();
    assert!(archive.len() > 2 << 30);
    let reader = KpackReader::open(archive).unwrap();
    assert_eq!(bytes(&reader.code_object(count).unwrap()), last);
}

#[test]
fn rows_and_frames_must_belong_together() {
    let rows = toc(Scheme::None, &[("lib/x.so", 0, 1, 1)]);
    for count in [1, 2] {
        let frames = vec![Content::of_bytes(*b"x"); count];
        assert_eq!(write(&rows, &frames).unwrap_err().kind(), Kind::Bug, "{count}");
    }
}

/// Rewritten as metadata, they would become binary data.
#[test]
fn strings_that_are_not_utf_8_are_refused() {
    let mut toc = toc(Scheme::None, &[("lib/x.so", 0, 0, 1)]);
    let row = toc.rows.values_mut().next().unwrap().get_mut("gfx1100").unwrap();
    row.metadata = Some(rmpv::Value::from("odd text"));
    let mut archive = bytes(&write(&toc, &[Content::of_bytes(*b"x")]).unwrap());
    assert_eq!(KpackReader::open(Content::of_bytes(archive.clone())).unwrap().toc(), &toc);
    let at = archive.windows(8).position(|window| window == b"odd text").unwrap();
    archive[at] = 0xf4;
    let error = KpackReader::open(Content::of_bytes(archive)).unwrap_err();
    assert_eq!(error.kind(), Kind::Malformed);
    assert!(error.to_string().contains("not UTF-8"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(
        sizes in proptest::collection::vec(1_usize..5000, 0..9),
        framed in any::<bool>(),
    ) {
        let scheme = if framed { Scheme::ZstdPerKernel } else { Scheme::None };
        let objects: Vec<_> = (0..).zip(sizes).map(|(n, size)| code(n, size)).collect();
        let (toc, content) = archive(scheme, &objects);
        let reader = KpackReader::open(content).unwrap();
        prop_assert_eq!(reader.toc(), &toc);
        for (ordinal, object) in (0_u32..).zip(&objects) {
            prop_assert_eq!(&bytes(&reader.code_object(ordinal).unwrap()), object);
        }
    }
}
