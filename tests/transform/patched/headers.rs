//! Sections, segments and markers that contradict each other.

use object::LittleEndian as LE;
use object::elf;
use object::read::elf::{ElfFile64, ProgramHeader as _};
use rockpack_core::error::Kind;
use rockpack_split::host_binary::Examined;

use super::bfd_shared;
use super::file::{ADDRESS, ALIGN, FLAGS, LINK, OFFSET, Patched, SIZE};

/// The offsets of section index and value of `sub_page`'s symbol 13, which is in `.tdata`.
const SYMBOL: (usize, usize) = (0x1dee, 0x1df0);

/// A library with a large thread-local template has such offsets.
#[test]
fn symbols_whose_values_are_no_addresses_are_left_alone() {
    let offset = Patched::new("sub_page").word(SYMBOL.1, 0x1010);
    // A symbol of `.comment`, which is not loaded.
    let comment = Patched::new("sub_page").word(SYMBOL.1, 0x1010).put(SYMBOL.0, &[29, 0]);
    for file in [offset, comment] {
        let written = file.transformed();
        let symbol = &file.0[SYMBOL.0..SYMBOL.1 + 8];
        assert!(written.windows(symbol.len()).any(|window| window == symbol));
    }
    let text = Patched::new("sub_page").word(SYMBOL.1, 0x1010).put(SYMBOL.0, &[13, 0]);
    text.refused(Kind::Unsupported, "is inside the device code");
}

#[test]
fn first_sections_that_are_not_null_are_refused() {
    let note = [(FLAGS, 2), (ADDRESS, 0x270), (OFFSET, 0x270), (SIZE, 1), (ALIGN, u64::MAX)];
    let rdc = Patched::new("rdc");
    let (table, null) = (rdc.field(31, 0), rdc.field(0, 0));
    for file in [
        with_large_null("sub_page"),
        // The symbols' names are in that section.
        with_large_null("rdc").with(31, &[(LINK, 0)]),
        bfd_shared().with_type(0, elf::SHT_NOTE).with(0, &note),
        bfd_shared().with(0, &[(FLAGS, 2)]),
        rdc.copy(table, 64, null),
    ] {
        file.refused(Kind::Malformed, "the null section");
    }
}

fn with_large_null(name: &str) -> Patched {
    Patched::new(name).with_type(0, elf::SHT_PROGBITS).with(0, &[(OFFSET, u64::MAX), (SIZE, 1)])
}

/// The transform writes the names anew, and zeros over the old ones.
#[test]
fn section_names_that_are_not_a_string_table_of_their_own_are_refused() {
    let loaded =
        bfd_shared().with_segment(3, elf::PT_LOAD, [0xcd6c, 0xdd6c, 0x500, 0x4364, 0x1000]);
    for file in [
        // Within `.text`, and within `.comment`, extended to the end of the names.
        bfd_shared()
            .copy(0xd0df, 0x113, 0x10c0)
            .with_type(29, elf::SHT_NOBITS)
            .with(29, &[(OFFSET, 0x10c0)]),
        bfd_shared().with_type(29, elf::SHT_NOBITS).with(28, &[(SIZE, 0x162)]),
        bfd_shared().with_type(29, elf::SHT_NULL),
        bfd_shared().with_type(29, elf::SHT_PROGBITS),
        loaded.with(29, &[(FLAGS, 2), (ADDRESS, 0xe0df)]),
    ] {
        file.refused(Kind::Unsupported, "string table");
    }
    let inside = bfd_shared().copy(0xd0df, 0x113, 0x3100).with(29, &[(OFFSET, 0x3100)]);
    inside.refused(Kind::Unsupported, "shares bytes");
    inside.with_type(29, elf::SHT_NOBITS).refused(Kind::Unsupported, "string table");
}

/// The loader takes the last segment, other tools the first.
#[test]
fn second_segments_of_what_there_is_one_of_are_refused() {
    let dynamic = [0x10c0, 0x10c0, 0x1f0, 0x1f0, 8];
    let file = bfd_shared().copy(0xcdb0, 0x1f0, 0x10c0);
    assert_second(&file.with_segment(8, elf::PT_DYNAMIC, dynamic));
    // Two segments of program headers; and another interpreter, template and read-only segment.
    assert_second(&Patched::new("rdc").with_segment(9, elf::PT_PHDR, [64, 64, 0x268, 0x268, 8]));
    assert_second(&Patched::new("bfd_pie").with_segment(
        12,
        elf::PT_INTERP,
        [0x350, 0x350, 0x1c, 0x1c, 1],
    ));
    for p_type in [elf::PT_TLS, elf::PT_GNU_RELRO] {
        assert_second(&bfd_shared().with_segment(8, p_type, [0xcd6c, 0xdd6c, 4, 4, 4]));
    }
}

fn assert_second(file: &Patched) {
    file.refused(Kind::Unsupported, "is the second segment");
}

/// The loader continues to read after the segment.
#[test]
fn dynamic_sections_without_an_end_in_their_segment_are_refused() {
    for size in [0x160, 0x1a0, 0x1b0] {
        let file = Patched::new("bfd_shared").with_segment(
            4,
            elf::PT_DYNAMIC,
            [0xcdb0, 0xddb0, size, size, 8],
        );
        match size {
            0x1b0 => drop(file.transformed()),
            _ => file.refused(Kind::Unsupported, "without DT_NULL"),
        }
    }
}

/// Memory that starts as zeros still has a file offset.
#[test]
fn empty_load_segments_in_the_device_code_stay_congruent() {
    let file =
        Patched::new("rdc").with_segment(9, elf::PT_LOAD, [0x2234, 0x2_0234, 0, 0x100, 0x1000]);
    let written = file.transformed();
    let written = ElfFile64::<LE>::parse(&*written).unwrap();
    let mut headers = written.elf_program_headers().iter();
    let load = headers.find(|header| header.p_vaddr(LE) == 0x2_0234).unwrap();
    assert_eq!((load.p_offset(LE) % 0x1000, load.p_align(LE)), (0x234, 0x1000));
}

/// The transform writes a new marker where the old one's header says, and its size into its symbols.
#[test]
fn transformed_files_that_cannot_be_rewritten_in_place_are_refused() {
    for file in [
        Patched::new("transformed").with_type(10, elf::SHT_NOTE),
        with_marker(&[(FLAGS, 0)]),
        with_marker(&[(OFFSET, 0x1100)]),
        with_marker(&[(ADDRESS, 0x9000)]),
    ] {
        file.refused(Kind::Malformed, "but other bytes are loaded at");
    }
    let file = Patched::new("transformed");
    let (symbols, other) = (file.field(25, 8), file.field(24, 8));
    for file in [
        // In the text, in the marker's own header, and with a section that overlaps the marker.
        with_marker(&[(OFFSET, 0x27f0)]),
        with_marker(&[(OFFSET, 0x3b30)]),
        with_comment(0x1010, 0x200),
        with_comment(0xff0, 0x200),
        // Symbols that would be edited twice.
        file.copy(symbols, 56, other).with_type(24, elf::SHT_SYMTAB),
    ] {
        file.refused(Kind::Malformed, "shares bytes");
    }
    with_comment(0x3090, 0x10_0000).refused(Kind::Truncated, "outside of the file");
}

/// A transformed file with other fields in the header of the marker's section.
fn with_marker(fields: &[(usize, u64)]) -> Patched {
    Patched::new("transformed").with(10, fields)
}

/// A transformed file whose `.comment` lies elsewhere.
fn with_comment(offset: u64, size: u64) -> Patched {
    Patched::new("transformed").with(24, &[(OFFSET, offset), (SIZE, size)])
}

/// `eu-strip` drops zeros outside of sections at the end of the last segment, and loaders accept that.
#[test]
fn transformed_files_may_end_before_their_last_segment() {
    let file = Patched::new("transformed").with_segment(
        4,
        elf::PT_LOAD,
        [0x3008, 0xe008, 0x1000, 0x1000, 0x1000],
    );
    assert!(matches!(file.examine(), Ok(Examined::Transformed(_))));
}

/// Section headers begin with zeros.
#[test]
fn references_do_not_grow_into_section_headers() {
    let file = Patched::new("transformed").copy(0x38b0, 28 * 64, 0x1100).word(40, 0x1100);
    let Examined::Transformed(transformed) = file.examine().unwrap() else { panic!() };
    assert_eq!(transformed.marker_capacity(), 0x100);
    assert_eq!(transformed.rewrite(&[0x81; 0x100]).unwrap().len(), file.0.len() as u64);
}

/// Such a file, copied unchanged, would bring its device code into a host package.
#[test]
fn fat_files_are_not_taken_for_debug_files() {
    for section in [22, 27] {
        let file = Patched::new("lld_relr").with_type(section, elf::SHT_NOBITS);
        file.refused(Kind::Malformed, "no bytes in the file");
        // Now the device code also claims to have no bytes.
        let file = file.with_type(11, elf::SHT_NOBITS);
        file.refused(Kind::Unsupported, "holds an offload bundle");
        let size = file.number(file.field(11, SIZE));
        let start = file.number(file.field(11, OFFSET));
        let file = file.put(start, &vec![0; size]);
        assert!(matches!(file.examine(), Ok(Examined::SeparateDebug)));
    }
    let file =
        Patched::new("lld_relr").with(11, &[(SIZE, 0)]).section(".hipFatBinSegment", &[(SIZE, 0)]);
    file.refused(Kind::Unsupported, "holds an offload bundle");
}

/// Such a file, copied unchanged, would bring its device code into a host package.
#[test]
fn fat_files_without_names_of_sections_are_refused() {
    let file = Patched::new("lld_relr").with(30, &[(SIZE, 0)]);
    file.refused(Kind::Unsupported, "no section headers");
    let mut file = Patched::new("lld_relr");
    file.0[0xac50..0xac50 + 0x12f].fill(0);
    file.refused(Kind::Unsupported, "no section headers");
}

/// Other transform tools leave device code in place if it is smaller than a page.
#[test]
fn references_beside_device_code_are_refused() {
    let mut file = Patched::new("lld_relr");
    let (names, wrappers) = (file.field(30, 0), file.field(27, 0));
    let (start, size) = (file.number(names + OFFSET), file.number(names + SIZE));
    let moved = [&file.0[start..start + size], b".rocm_kpack_ref\0"].concat();
    let end = file.0.len() as u64;
    file.0.extend(&moved);
    for wrapper in 0..3 {
        let at = file.number(wrappers + OFFSET) + wrapper * 24;
        file = file.put(at, b"HIPK");
    }
    let file = file.with(30, &[(OFFSET, end), (SIZE, moved.len() as u64)]);
    // `.rodata` becomes the marker.
    let name = file.field(10, 0);
    let mut file = file.put(name, &u32::try_from(size).unwrap().to_le_bytes());
    file.refused(Kind::Unsupported, "has device code");
    file.0[0x1000..0x1000 + 0x8ff8].fill(0);
    assert!(matches!(file.examine(), Ok(Examined::Transformed(_))));
}

/// The size of a stack is not memory from the file.
#[test]
fn the_size_of_a_stack_covers_nothing() {
    let index = Patched::new("bfd_shared").segment(elf::PT_GNU_STACK);
    Patched::new("bfd_shared")
        .with_segment(index, elf::PT_GNU_STACK, [0, 0, 0, 0x10_0000, 0x10])
        .transformed();
}

/// The loader maps whole pages, later ones over earlier ones.
#[test]
fn segments_that_share_a_page_are_refused() {
    let index = Patched::new("bfd_shared").segment(elf::PT_GNU_STACK);
    let file = Patched::new("bfd_shared").with_segment(
        index,
        elf::PT_LOAD,
        [0xbff8, 0x12ff8, 0x10, 0x10, 0x1000],
    );
    file.refused(Kind::Unsupported, "begins in a page of another");
}
