//! The file header, program headers, section headers and section names: fields about things that neither move
//! nor are the device code stay.

use object::elf;
use rockpack_elf::{ElfFile, FileHeader, ProgramHeader, Record, SectionHeader};
use rockpack_split::host_binary::{FATBIN_SECTION, MARKER_SECTION};

pub fn check(before: &ElfFile, after: &ElfFile) {
    let (old, new) = (&before.header, &after.header);
    let expected = FileHeader { e_phnum: new.e_phnum, e_shoff: new.e_shoff, ..*old }.to_bytes();
    assert_eq!(new.to_bytes(), expected, "ELF header");
    names(before, after);
    section_headers(before, after);
    segments(before, after);
    alignment(before, after);
}

/// Checks the alignment: the loader aligns a file to the largest alignment of its load segments, and sections
/// keep the alignment that they asked for and had.
fn alignment(before: &ElfFile, after: &ElfFile) {
    let marker = before.sections_named(FATBIN_SECTION)[0].0;
    let sections = before.sections.iter().enumerate();
    let others = sections.filter(|(index, section)| *index != marker && section.takes_addresses());
    let asked = others.map(|(_, section)| section.sh_addralign).max().unwrap_or_default();
    let got = |file: &ElfFile| file.loads().map(|(_, load)| load.p_align).max().unwrap_or_default();
    assert!(got(after) >= asked.min(got(before)), "alignment of {asked:#x}");
}

/// Checks that every old name keeps its place, and the marker's follows.
fn names(before: &ElfFile, after: &ElfFile) {
    let expected = [&before.names[..], MARKER_SECTION.as_bytes(), &[0]].concat();
    assert!(after.names == expected, "section names");
}

/// Checks the section headers. The address of a moved section may change; its bytes are looked up there.
fn section_headers(before: &ElfFile, after: &ElfFile) {
    assert_eq!(before.sections.len(), after.sections.len());
    let front = super::front(before);
    let marker = before.sections_named(FATBIN_SECTION)[0].0;
    for (index, (old, new)) in before.sections.iter().zip(&after.sections).enumerate() {
        let mut expected = SectionHeader { sh_offset: new.sh_offset, ..*old };
        if index == marker {
            expected.sh_name = u32::try_from(before.names.len()).unwrap();
            expected.sh_flags = elf::SHF_ALLOC;
            expected.sh_addralign = 1;
            expected.sh_size = new.sh_size;
            assert!((1..=old.sh_size).contains(&new.sh_size), "size of the marker");
        }
        if index == before.names_index {
            expected.sh_size = after.names.len() as u64;
        } else if old.is_allocated() && old.is_in_file() && old.sh_offset < front {
            expected.sh_addr = new.sh_addr;
        }
        assert_eq!(*new, expected, "header of section {index}");
        if new.is_allocated() && new.is_in_file() {
            let there = after.offset_of(new.sh_addr, new.sh_size);
            let was = before.offset_of(old.sh_addr, old.sh_size);
            assert!(there == Some(new.sh_offset) || was != Some(old.sh_offset), "section {index}");
        }
    }
}

/// Checks all segments except load segments and the program header table, which may be dropped.
fn segments(before: &ElfFile, after: &ElfFile) {
    let others = |file: &ElfFile| {
        let all = file.program_headers.iter().copied();
        let others = all.filter(|header| !header.is_load() && header.p_type != elf::PT_PHDR);
        others.collect::<Vec<ProgramHeader>>()
    };
    let (old, new) = (others(before), others(after));
    assert_eq!(old.len(), new.len());
    let front = super::front(before);
    for (old, new) in old.iter().zip(&new) {
        let mut expected = ProgramHeader { p_offset: new.p_offset, ..*old };
        if old.p_filesz > 0 && old.p_offset < front {
            let shift = new.p_vaddr.wrapping_sub(old.p_vaddr);
            expected.p_vaddr = new.p_vaddr;
            expected.p_paddr = old.p_paddr.wrapping_add(shift);
        }
        assert_eq!(*new, expected, "segment");
    }
}
