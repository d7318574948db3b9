//! No input makes a decoder panic, read outside its input, or find something that was not asked for.

use crate::support::{
    FRAMED_SIZE, Value, archive, framed_fields, framed_of, map, plain_fields, plain_of, text, texts,
};
use proptest::collection::vec;
use proptest::prelude::*;
use rockpack_kpack::archive::{Archive, Span};
use rockpack_kpack::{ReadAt, marker, target};

/// A buffer that fails the test on a read behind its end.
struct Guarded<'a>(&'a [u8]);

impl ReadAt for Guarded<'_> {
    type Error = std::convert::Infallible;

    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Self::Error> {
        self.0.read_at(offset, buffer).expect("a range outside of the file");
        Ok(())
    }
}

/// Opens `bytes` and looks up everything that the archive lists.
fn look(bytes: &[u8]) -> Option<()> {
    let archive = Archive::open(&Guarded(bytes)).ok()?;
    for key in archive.keys().iter() {
        assert!(archive.keys().iter().filter(|other| *other == key).count() == 1);
        for target in archive.arches().iter() {
            let Some(row) = archive.row(key, target) else { continue };
            if let Ok(Span { offset, size }) = archive.stored(row.ordinal) {
                assert!(offset + size <= bytes.len() as u64);
            }
        }
    }
    Some(())
}

fn samples() -> [Vec<u8>; 2] {
    [plain_of(plain_fields()), framed_of(framed_fields(FRAMED_SIZE))]
}

fn sample_marker() -> Vec<u8> {
    map([("kernel_name", text("lib/x.so")), ("kpack_search_paths", texts(&["a", "b"]))]).bytes()
}

#[test]
fn every_cut_and_every_changed_bit() {
    for bytes in samples() {
        assert!(look(&bytes).is_some());
        for len in 0..bytes.len() {
            look(&bytes[..len]);
        }
        let mut changed = bytes.clone();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                changed[at] ^= 1 << bit;
                look(&changed);
                changed[at] ^= 1 << bit;
            }
            for byte in [0x00, 0x7f, 0x80, 0xc1, 0xcf, 0xdb, 0xdd, 0xdf, 0xff] {
                changed[at] = byte;
                look(&changed);
            }
            changed[at] = bytes[at];
        }
    }
    let bytes = sample_marker();
    for at in 0..bytes.len() {
        for byte in 0..=255 {
            let mut changed = bytes.clone();
            changed[at] = byte;
            let loaded = marker::load(&changed[..]);
            // A loader accepts each marker that a tool accepts, with the same fields.
            if let Ok(marker::AnyMarker::Map(strict)) = marker::parse(&changed) {
                match loaded {
                    Ok(loaded) => {
                        assert_eq!(strict.kernel_name.as_bytes(), loaded.kernel_name);
                        let paths = strict.kpack_search_paths.iter().map(String::as_bytes);
                        assert!(paths.eq(loaded.search_paths.iter()));
                    }
                    Err(fault) => assert!(strict.kpack_search_paths.is_empty(), "{fault:?}"),
                }
            }
        }
    }
}

fn value() -> impl Strategy<Value = Value> {
    let known = prop_oneof![
        Just("toc"),
        Just("blobs"),
        Just("ordinal"),
        Just("size"),
        Just("offset"),
        Just("gfx_arches"),
        Just("compression_scheme"),
        Just("zstd-per-kernel"),
        Just("zstd_size"),
        Just("zstd_offset"),
        Just("kernel_name"),
        Just("kpack_search_paths"),
    ];
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<i8>().prop_map(Value::Minus),
        any::<f64>().prop_map(Value::Float),
        any::<u64>().prop_map(Value::Number),
        (0..200_u64).prop_map(Value::Number),
        known.prop_map(text),
        vec(any::<u8>(), 0..40).prop_map(Value::Text),
        vec(any::<u8>(), 0..4).prop_map(Value::Binary),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::Array),
            vec((inner.clone(), inner), 0..6).prop_map(Value::Map),
        ]
    })
}

proptest! {
    #[test]
    fn tables_of_any_shape(fields in vec((value(), value()), 0..8), blob in vec(any::<u8>(), 0..40)) {
        let bytes = archive(&blob, &Value::Map(fields.clone()).bytes());
        // Any map is a table; only its numbers and frames can be wrong.
        look(&bytes);
        let _ = marker::load(&Value::Map(fields).bytes()[..]);
    }

    #[test]
    fn any_bytes(bytes in vec(any::<u8>(), 0..200)) {
        look(&bytes);
        look(&archive(b"", &bytes));
        let _ = marker::load(&bytes[..]);
        let _ = marker::parse(&bytes);
        for target in target::compatible(&bytes).take(20) {
            let mut text = Vec::new();
            target.append_to(&mut text).unwrap();
            prop_assert!(target.is(&text));
        }
    }

    #[test]
    fn markers_are_read_as_they_are_written(
        kernel_name in "\\PC{0,300}", kpack_search_paths in vec("\\PC{0,50}", 0..40),
    ) {
        let marker = marker::Marker { kernel_name, kpack_search_paths };
        let paths = marker.kpack_search_paths.iter().map(|path| text(path)).collect();
        let fields = [
            ("kernel_name", text(&marker.kernel_name)),
            ("kpack_search_paths", Value::Array(paths)),
        ];
        let bytes = map(fields).bytes();
        prop_assert_eq!(marker::parse(&bytes), Ok(marker::AnyMarker::Map(marker.clone())));
        if let Ok(loaded) = marker::load(&bytes[..]) {
            prop_assert_eq!(loaded.kernel_name, marker.kernel_name.as_bytes());
            prop_assert_eq!(loaded.search_paths.len(), marker.kpack_search_paths.len());
        }
    }

    #[test]
    fn targets_are_written_as_they_are_read(features in vec(("[a-z]{1,8}", any::<bool>()), 0..4)) {
        let base = "gfx90a".parse::<target::BaseArch>().unwrap();
        let mut features = features;
        features.sort();
        features.dedup_by(|a, b| a.0 == b.0);
        let written = target::Target::new(base, features);
        let text = written.to_string();
        prop_assert_eq!(text.parse::<target::Target>(), Ok(written.clone()));
        // Code for each compatible target runs on the device.
        for target in target::compatible(text.as_bytes()) {
            prop_assert!(target.to_string().parse::<target::Target>().unwrap().runs_on(&written));
        }
    }
}
