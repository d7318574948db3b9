//! Dynamic symbols and relocations as the dynamic linker reads them: by tags, hash tables and indexes,
//! without sections.

use object::elf;
use rockpack_core::error::Kind;

use super::bfd_shared;
use super::file::{LINK, Patched, SIZE};

/// The offset of symbol 14 in `bfd_shared`.
const SYMBOL: usize = 0x2f8 + 14 * 24;

/// The offset of the first relocation with a symbol in `bfd_shared`.
const RELOCATION: usize = 0x858 + 9 * 24;

fn sub_page() -> Patched {
    Patched::new("sub_page")
}

/// The transform would not edit symbols behind a section's end.
#[test]
fn symbols_that_no_section_shows_are_refused() {
    let text = "refer to dynamic symbols beyond";
    // A hash table with one bucket, for symbols 13 to 17.
    assert!(showing(sub_page(), 18).examine().is_ok());
    for count in [17, 14, 13] {
        showing(sub_page(), count).refused(Kind::Unsupported, text);
    }
    // Only relocations, the last one for symbol 14.
    assert!(showing(sub_page().put(0x500, &[0; 4]), 15).examine().is_ok());
    showing(sub_page().put(0x500, &[0; 4]), 14).refused(Kind::Unsupported, text);
    // A bucket before the table's first symbol has its chain within the Bloom filter.
    let before = sub_page().put(0x4ec, &14_u32.to_le_bytes());
    before.refused(Kind::Unsupported, text);
    let outside = sub_page().tag(elf::DT_GNU_HASH, 0x00ff_ff00);
    outside.refused(Kind::Malformed, "of a hash table at 0xffff00");
}

/// The file with `count` symbols in the section that shows them.
fn showing(file: Patched, count: u64) -> Patched {
    file.section(".dynsym", &[(SIZE, 24 * count)])
}

/// The older table has the number of symbols, and words that lead to them; only the words count.
#[test]
fn symbols_that_an_older_hash_table_leads_to_are_refused() {
    assert!(with_older_table(18, 17).examine().is_ok());
    for (count, chain) in [(19, 0), (18, 18), (3, 18)] {
        with_older_table(count, chain)
            .refused(Kind::Unsupported, "refer to dynamic symbols beyond");
    }
}

fn with_older_table(count: u32, chain: u32) -> Patched {
    // An unwind table of this size is ignored.
    let table = 0x1510;
    let file = sub_page();
    let tag = file.tag_at(elf::DT_GNU_HASH);
    let file = file
        .word(tag, elf::DT_HASH.0.cast_unsigned())
        .tag(elf::DT_HASH, table as u64)
        .put(table, &[0; 4 * (2 + 1 + 18)])
        .put(table, &1_u32.to_le_bytes());
    file.put(table + 4, &count.to_le_bytes()).put(table + 12, &chain.to_le_bytes())
}

#[test]
fn names_that_the_dynamic_linker_does_not_read_are_refused() {
    let index = bfd_shared().index(".dynsym");
    let at = bfd_shared().field(index, LINK);
    bfd_shared()
        .put(at, &29_u32.to_le_bytes())
        .refused(Kind::Unsupported, "not loaded at DT_STRTAB");
}

/// Dynamic linkers differ in which tag they take.
#[test]
fn second_tags_are_refused() {
    let at = bfd_shared().tag_at(elf::DT_RELACOUNT);
    let file = bfd_shared().word(at, elf::DT_GNU_HASH.0.cast_unsigned()).word(at + 8, 0x298);
    file.refused(Kind::Unsupported, "occurs twice");
}

/// Symbols without a section, or with another section than the one around them.
#[test]
fn symbols_that_would_be_left_behind_are_refused() {
    let (tdata, comment) = (18_u16, 28_u16);
    let reserved = [elf::SHN_COMMON.0, elf::SHN_XINDEX.0, 0xff00];
    for section in reserved.into_iter().chain([tdata, comment]) {
        let file = with_symbol(section, 0x5100);
        file.refused(Kind::Unsupported, "the dynamic symbol's value 0x5100");
        assert!(with_symbol(section, 0xd000).examine().is_ok());
        // The pointer to a function becomes a pointer into the device code.
        let file = file.word(RELOCATION + 8, 14 << 32 | u64::from(elf::R_X86_64_64.0));
        file.refused(Kind::Unsupported, "belongs to no wrapper");
    }
    assert!(with_symbol(elf::SHN_ABS.0, 0x5100).examine().is_ok());
    // Into the build ID, which moves to make room for program headers.
    with_symbol(12, 0x280).refused(Kind::Unsupported, "the dynamic symbol's value 0x280");
}

fn with_symbol(section: u16, value: u64) -> Patched {
    bfd_shared().put(SYMBOL + 6, &section.to_le_bytes()).word(SYMBOL + 8, value)
}

/// Linkers leave such relocations in place of dropped ones.
#[test]
fn relocations_of_no_kind_are_passed_over() {
    let unused = 0x858 + 13 * 24;
    bfd_shared().put(unused, &[0; 24]).transformed();
}

/// An edited relocation may no longer be among those of functions.
#[test]
fn wrappers_that_are_bound_like_functions_are_refused() {
    let wrapper = 0x858 + 6 * 24;
    let info = 14 << 32 | u64::from(elf::R_X86_64_JUMP_SLOT.0);
    let file = bfd_shared().word(wrapper + 8, info).put(SYMBOL + 6, &15_u16.to_le_bytes());
    file.word(SYMBOL + 8, 0x3000)
        .refused(Kind::Unsupported, "which a wrapper's pointer cannot have");
}
