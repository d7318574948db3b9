//! The transform of host binaries, on the committed fixtures with any marker.

use std::ops::Range;

use object::elf;
use proptest::prelude::*;
use rockpack_core::content::Content;
use rockpack_elf::ElfFile;
use rockpack_split::host_binary::{Analysis, Examined, MARKER_SECTION, Transformed, examine};
use support::sweep::or_all;

use super::file;
use crate::targets::preserved;

const FIXTURES: [&str; 6] = ["bfd_pie", "bfd_shared", "lld_nopie", "lld_relr", "rdc", "sub_page"];

fn fat(content: &Content) -> Box<Analysis> {
    match examine(content).unwrap() {
        Examined::Fat(analysis) => analysis,
        other => panic!("{other:?}"),
    }
}

fn transformed(content: &Content) -> Transformed {
    match examine(content).unwrap() {
        Examined::Transformed(transformed) => transformed,
        other => panic!("{other:?}"),
    }
}

/// Markers of any bytes except a final zero, which would be the same as none.
fn marker() -> impl Strategy<Value = Vec<u8>> {
    (prop::collection::vec(any::<u8>(), 0..256), 1_u8..)
        .prop_map(|(bytes, last)| [bytes, vec![last]].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every byte outside of the edited parts keeps its offset. Replacing the marker in the result gives the
    /// same as the transform with the other marker; the same marker changes nothing.
    #[test]
    fn everything_else_stays_and_references_can_be_exchanged(
        name in prop::sample::select(FIXTURES.to_vec()),
        first in marker(),
        second in marker(),
    ) {
        let original = Content::of_bytes(file(&format!("tests/fixtures/binaries/{name}")));
        let analysis = fat(&original);
        let written = analysis.apply(&first).unwrap();
        preserved::check(&original, &written);
        let again = transformed(&written);
        prop_assert_eq!(again.marker(), &first);
        prop_assert!(again.rewrite(&first).unwrap().same_bytes(&written).unwrap());
        let exchanged = again.rewrite(&second).unwrap();
        prop_assert!(exchanged.same_bytes(&analysis.apply(&second).unwrap()).unwrap());
    }
}

/// `eu-strip` puts section names and headers after the last section, where a segment may continue.
#[test]
fn section_names_and_headers_that_are_loaded_stay() {
    let shared = file("tests/fixtures/binaries/bfd_shared");
    // The data segment ends within the names, then within the headers.
    let longer = [0x400, 0x500].map(|size| with_number(0x108, size, shared.clone()));
    // The names come after the text, on a page that is loaded as a whole.
    let mut moved = shared;
    moved.copy_within(0xd0df..0xd1f2, 0x1700);
    let moved = [(0x98, 0x1000), (0xa0, 0x1000), (0xd938 + 24, 0x1700)]
        .into_iter()
        .fold(moved, |file, (at, value)| with_number(at, value, file));
    for file in longer.into_iter().chain([moved]) {
        let original = Content::of_bytes(file);
        preserved::check(&original, &fat(&original).apply(b"x").unwrap());
    }
}

fn with_number(at: usize, value: u64, mut file: Vec<u8>) -> Vec<u8> {
    file[at..at + 8].copy_from_slice(&value.to_le_bytes());
    file
}

/// Tells whether the check above fails for `written` with one bit of the byte at `at` changed.
fn is_noticed(original: &ElfFile, written: &Content, at: u64) -> bool {
    let byte = written.read_array::<1>(at).unwrap()[0];
    let damaged = written.patched(at, vec![byte ^ 4]).unwrap();
    let check = || preserved::check_file(original, &damaged);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).is_err()
}

/// The ranges of the sections with these names in `file`.
fn places(file: &Content, names: &[&str]) -> Vec<Range<u64>> {
    let file = ElfFile::read(file, elf::EM_X86_64).unwrap().unwrap();
    let sections = names.iter().flat_map(|name| file.sections_named(name));
    sections.map(|(_, section)| section.sh_offset..section.file_end()).collect()
}

/// The check above can fail: one bit of code, of data, or of an unloaded part is enough.
#[test]
fn a_byte_that_is_not_preserved_is_noticed() {
    let original = Content::of_bytes(file("tests/fixtures/binaries/bfd_shared"));
    let written = fat(&original).apply(b"x").unwrap();
    let original = preserved::read(&original);
    let places = places(&written, &[".text", ".data", ".comment"]);
    assert_eq!(places.len(), 3);
    for place in places {
        assert!(is_noticed(&original, &written, place.start), "{place:#x?}");
    }
}

/// The check fails for one bit of any symbol, dynamic tag, relocation, wrapper, section header or name,
/// although the transform writes to all of these. A sample takes every fifth word of each table, whose
/// entries have one to three words, so that it reaches each field, and every word of the wrappers.
#[test]
fn an_entry_of_a_table_that_is_not_preserved_is_noticed() {
    const TABLES: [&str; 10] = [
        ".symtab",
        ".dynsym",
        ".dynamic",
        ".rela.dyn",
        ".rela.plt",
        ".hipFatBinSegment",
        ".shstrtab",
        ".strtab",
        ".dynstr",
        ".gnu.version",
    ];
    for name in FIXTURES {
        let original = Content::of_bytes(file(&format!("tests/fixtures/binaries/{name}")));
        let written = fat(&original).apply(b"x").unwrap();
        let original = preserved::read(&original);
        assert!(places(&written, &TABLES).len() > 5, "{name}");
        let mut turns = 0..;
        for table in TABLES {
            let step = if table == ".hipFatBinSegment" { 1 } else { or_all(5, 1) };
            for place in places(&written, &[table]) {
                // One byte of each word, a different one each time.
                let words = place.clone().step_by(8).zip(&mut turns);
                for (word, turn) in words.step_by(step) {
                    let at = (word + turn / 3 % 8).min(place.end - 1);
                    assert!(is_noticed(&original, &written, at), "{name}, {table}: {at:#x}");
                }
            }
        }
        section_headers_are_noticed(name, &original, &written);
    }
}

/// Compares all fields except the offsets of sections without bytes and the marker's length.
fn section_headers_are_noticed(name: &str, original: &ElfFile, written: &Content) {
    let file = ElfFile::read(written, elf::EM_X86_64).unwrap().unwrap();
    for (section, at) in file.sections.iter().zip((file.header.e_shoff..).step_by(64)) {
        let free = match () {
            () if !section.is_in_file() => 24..32,
            () if file.name(section) == MARKER_SECTION => 32..40,
            () => 0..0,
        };
        for field in (0..64).step_by(4).filter(|field| !free.contains(field)) {
            assert!(is_noticed(original, written, at + field), "{name}: {at:#x} + {field}");
        }
    }
}
