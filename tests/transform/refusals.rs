//! Files that the transform refuses; and no damage makes it panic, or write a wrong file.

use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use object::LittleEndian as LE;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};
use proptest::prelude::*;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind};
use rockpack_split::host_binary::{Examined, examine};
use support::sweep::or_all;
use support::{fixtures, tools};

fn refusal(path: &Path) -> Error {
    match examine(&support::fixtures::content(path)) {
        Err(error) => error,
        Ok(other) => panic!("{}: {other:?}", path.display()),
    }
}

/// Fails unless the error names the file, a structure and an offset, and contains `text`.
fn assert_refused(path: &Path, kind: Kind, text: &str) {
    let error = refusal(path);
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(text), "{error}");
    assert_eq!(error.place().file.as_deref(), Some(path));
    assert!(error.place().structure.is_some() && error.place().offset.is_some(), "{error}");
}

#[test]
fn shapes_that_cannot_be_transformed_are_refused() {
    let shapes: [(&str, &[&str], Kind, &str); 3] = [
        ("outside", &["-DOUTSIDE"], Kind::Malformed, "points to"),
        ("stray", &["-DSTRAY"], Kind::Unsupported, "belongs to no wrapper"),
        ("unwrapped", &["-DUNWRAPPED"], Kind::Unsupported, "no section .hipFatBinSegment"),
    ];
    for (name, flags, kind, text) in shapes {
        let path = fixtures::assembled(name, flags);
        assert_refused(&path, kind, text);
    }
}

#[test]
fn static_executables_are_refused_only_with_device_code() {
    tools::need(&["gcc"]);
    let folder = fixtures::scratch("static");
    let source = folder.join("main.c");
    let text = "void __hipRegisterFatBinary(void *w) {}\nint main(void) { return 0; }\n";
    std::fs::write(&source, text).unwrap();
    for flag in ["-static", "-static-pie"] {
        let (plain, fat) = (folder.join("plain"), folder.join("fat"));
        tools::succeed(Command::new("gcc").arg(flag).arg("-o").arg(&plain).arg(&source));
        let examined = examine(&support::fixtures::content(&plain)).unwrap();
        assert!(matches!(examined, Examined::NoDeviceCode), "{flag}");
        let mut gcc = Command::new("gcc");
        gcc.arg(flag).arg("-o").arg(&fat).arg(&source).arg(fixtures::folder().join("src/cases.S"));
        tools::succeed(&mut gcc);
        assert_refused(&fat, Kind::Unsupported, "static executable");
    }
}

#[test]
fn device_code_without_section_headers_is_refused() {
    for path in fixtures::committed() {
        let mut bytes = std::fs::read(&path).unwrap();
        // e_shoff, then e_shnum and e_shstrndx.
        bytes[40..48].fill(0);
        bytes[60..64].fill(0);
        let bare = fixtures::scratch("bare").join("library.so");
        std::fs::write(&bare, &bytes).unwrap();
        assert_refused(&bare, Kind::Unsupported, "no section headers");
    }
}

/// Tools drop sections that are not loaded, and with them the bytes to be edited there.
#[test]
fn sections_of_device_code_that_are_not_loaded_are_refused() {
    for path in fixtures::committed() {
        let texts = ["not loaded content", "not loaded content", "its flags or its type say"];
        let names = [".hip_fatbin", ".hipFatBinSegment", ".dynamic"];
        for (name, text) in names.into_iter().zip(texts) {
            let mut bytes = std::fs::read(&path).unwrap();
            let file = ElfFile64::<LE>::parse(&*bytes).unwrap();
            let table = usize::try_from(file.elf_header().e_shoff.get(LE)).unwrap();
            let index = file.section_by_name(name).unwrap().index().0;
            // sh_flags
            bytes[table + index * 64 + 8..][..8].fill(0);
            let unloaded = fixtures::scratch("unloaded").join("library.so");
            std::fs::write(&unloaded, &bytes).unwrap();
            assert_refused(&unloaded, Kind::Unsupported, text);
        }
    }
}

#[test]
fn other_files_hold_no_device_code() {
    let script =
        Content::of_bytes(*b"#!/bin/sh\nexit 0\n# longer than an ELF header, to be sure of it\n");
    assert!(matches!(examine(&script), Ok(Examined::NoDeviceCode)));
    let path = fixtures::folder().join("binaries/sub_page");
    // Another class, another byte order, another machine, and a relocatable object.
    for (offset, value) in [(4, 1), (5, 2), (18, 183), (16, 1)] {
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[offset] = value;
        let examined = examine(&Content::of_bytes(bytes));
        assert!(matches!(examined, Ok(Examined::NoDeviceCode)), "{offset}");
    }
}

/// A file too short to be recognised is passed on. The rest is refused, since the section table is at the end
/// of the file.
#[test]
fn truncation_at_every_byte_is_refused() {
    let bytes = std::fs::read(fixtures::folder().join("binaries/sub_page")).unwrap();
    let whole = Content::of_bytes(&*bytes);
    for len in 0..bytes.len() as u64 {
        let examined = examine(&whole.slice(0..len).unwrap());
        match examined {
            Ok(Examined::NoDeviceCode) => assert!(len < 20, "{len}"),
            Ok(other) => panic!("{len}: {other:?}"),
            Err(error) => assert_eq!(error.kind(), Kind::Truncated, "{len}: {error}"),
        }
    }
}

/// The offsets of all bytes in tables that steer the transform.
fn steering(bytes: &[u8]) -> Vec<usize> {
    let file = ElfFile64::<LE>::parse(bytes).unwrap();
    let header = file.elf_header();
    let mut offsets: Vec<usize> = (0..64).collect();
    offsets.extend(table_range(header.e_phoff.get(LE), header.e_phnum.get(LE), 56));
    offsets.extend(table_range(header.e_shoff.get(LE), header.e_shnum.get(LE), 64));
    for name in [".dynamic", ".rela.dyn", ".relr.dyn", ".dynsym", ".hipFatBinSegment"] {
        let range = file.section_by_name(name).and_then(|section| section.file_range());
        let (start, size) = range.unwrap_or_default();
        offsets.extend(table_range(start, u16::try_from(size).unwrap(), 1));
    }
    offsets
}

fn table_range(start: u64, count: u16, size: usize) -> Range<usize> {
    let start = usize::try_from(start).unwrap();
    start..start + usize::from(count) * size
}

/// A binary: its name, its bytes, and the offsets of its [`steering`] bytes.
type Steered = (&'static str, Vec<u8>, Vec<usize>);

/// Binaries of every layout.
static STEERED: LazyLock<[Steered; 4]> = LazyLock::new(|| {
    ["sub_page", "rdc", "lld_relr", "bfd_shared"].map(|name| {
        let bytes = std::fs::read(fixtures::folder().join("binaries").join(name)).unwrap();
        let offsets = steering(&bytes);
        (name, bytes, offsets)
    })
});

/// Damages one byte of the tables at a time (in a sample, every third), with one value for each. Either the
/// file is refused, or the written file passes its checks; a failing check would be an error of kind `Bug`.
#[test]
fn damage_to_any_table_is_refused_or_harmless() {
    for (name, bytes, offsets) in &*STEERED {
        let values = [0x00, 0x01, 0x7f, 0x80, 0xff];
        for offset in offsets.iter().copied().step_by(or_all(3, 1)) {
            for value in or_all(&values[offset % 5..][..1], &values[..]).iter().copied() {
                let mut damaged = bytes.clone();
                damaged[offset] = value;
                let Ok(Examined::Fat(analysis)) = examine(&Content::of_bytes(damaged)) else {
                    continue;
                };
                if let Err(error) = analysis.apply(b"\x80") {
                    panic!("{name}: {offset:#x} = {value:#x}: {:?}: {error}", error.kind());
                }
            }
        }
    }
}

/// Values that are special to some field.
fn telling_value() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(0xfff),
        Just(0x1000),
        Just(u64::MAX),
        Just(1 << 47),
        0u64..0x2_0000,
        any::<u64>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    /// Damages several words at a time: a file that passes the examination can be written.
    #[test]
    fn damaged_words_are_refused_or_harmless(
        edits in prop::collection::vec((any::<prop::sample::Index>(), telling_value()), 1..5),
        name in prop::sample::select(vec!["sub_page", "rdc", "lld_relr", "bfd_shared"]),
    ) {
        let (_, bytes, offsets) = STEERED.iter().find(|(other, ..)| *other == name).unwrap();
        let mut bytes = bytes.clone();
        for (index, value) in edits {
            let at = index.get(offsets) & !7;
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        if let Ok(Examined::Fat(analysis)) = examine(&Content::of_bytes(bytes)) {
            let capacity = usize::try_from(analysis.marker_capacity()).unwrap();
            let result = analysis.apply(&vec![0x81; capacity]);
            prop_assert!(result.is_ok(), "{:?}", result.err());
        }
    }
}
