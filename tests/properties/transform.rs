//! The transform of host binaries, over the committed fixtures and any reference.

use proptest::prelude::*;
use rockpack::content::Content;
use rockpack::host_binary::{Analysis, Examined, Transformed, examine};

use super::targets::preserved;
use super::{bytes, file};

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

/// References of any bytes but one: a zero at the end is the same as none.
fn marker() -> impl Strategy<Value = Vec<u8>> {
    (prop::collection::vec(any::<u8>(), 0..256), 1_u8..)
        .prop_map(|(bytes, last)| [bytes, vec![last]].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every byte outside of what is edited stays at its place; another reference in the result is
    /// the result with the other reference, and the same one changes nothing.
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

/// The check above can fail: one bit of code, of data or of what is not loaded is enough.
#[test]
fn a_byte_that_is_not_preserved_is_noticed() {
    let original = Content::of_bytes(file("tests/fixtures/binaries/bfd_shared"));
    let written = fat(&original).apply(b"x").unwrap();
    let elf = object::read::elf::ElfFile64::<object::LittleEndian>::parse(&*bytes(&written)).map(
        |file| {
            use object::{Object, ObjectSection};
            [".text", ".data", ".comment"].map(|name| {
                let section = file.section_by_name(name).unwrap();
                section.file_range().unwrap().0
            })
        },
    );
    for at in elf.unwrap() {
        let byte = written.read_array::<1>(at).unwrap()[0];
        let damaged = written.patched(at, vec![byte ^ 4]).unwrap();
        let check = || preserved::check(&original, &damaged);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).is_err(), "{at:#x}");
    }
}
