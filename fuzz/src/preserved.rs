//! What the transform of a host binary must leave as it was: every loaded byte at its address, and
//! every byte of sections that are not loaded, outside of what it is there to edit.

use std::ops::Range;

use object::elf;
use rockpack::content::Content;
use rockpack::formats::elf::{
    Dynamic, ElfFile, FILE_HEADER_SIZE, PROGRAM_HEADER_SIZE, SECTION_HEADER_SIZE, SectionHeader,
};
use rockpack::host_binary::{FATBIN_SECTION, WRAPPER_SECTION};

/// Panics where a byte of `before` that is none of the transform's is another in `after`.
pub fn check(before: &Content, after: &Content) {
    let read = |content| ElfFile::read(content, elf::EM_X86_64).unwrap().unwrap();
    let (before, after) = (read(before), read(after));
    loaded(&before, &after);
    assert_eq!(before.sections.len(), after.sections.len());
    for (old, new) in before.sections.iter().zip(&after.sections) {
        let symbols = [elf::SHT_SYMTAB, elf::SHT_DYNSYM].contains(&old.sh_type);
        let names = old.sh_offset == before.sections[before.names_index()].sh_offset;
        if !old.is_allocated() && old.is_in_file() && !symbols && !names {
            let name = before.name(old);
            same(&before, old.sh_offset..old.file_end(), &after, new.sh_offset, &name);
        }
    }
}

/// The bytes of all load segments, but for the edited ones, are loaded to the same addresses.
fn loaded(before: &ElfFile, after: &ElfFile) {
    let mut edited = edited(before);
    edited.sort_by_key(|range| range.start);
    for (_, load) in before.loads() {
        let end = load.p_offset + load.p_filesz;
        let mut at = load.p_offset;
        for range in edited.iter().chain([&(end..end)]) {
            let kept = at..range.start.min(end);
            if kept.start < kept.end {
                let address = load.p_vaddr + (kept.start - load.p_offset);
                let there = after.offset_of(address, kept.end - kept.start);
                let there = there.unwrap_or_else(|| panic!("{address:#x} is not loaded"));
                same(before, kept, after, there, "load segment");
            }
            at = at.max(range.end);
        }
    }
}

/// Ranges of the file that the transform may write to.
fn edited(file: &ElfFile) -> Vec<Range<u64>> {
    let place = |section: &SectionHeader| section.sh_offset..section.file_end();
    let names = &file.sections[file.names_index()];
    let count = file.sections.len() as u64;
    let table = file.header.e_shoff();
    let mut edited = vec![0..front(file), place(names), table..table + count * SECTION_HEADER_SIZE];
    for name in [FATBIN_SECTION, WRAPPER_SECTION] {
        edited.extend(file.sections_named(name).iter().map(|(_, section)| place(section)));
    }
    // Addresses of what moves, and of the device code.
    let symbols = [elf::SHT_SYMTAB, elf::SHT_DYNSYM];
    edited.extend(file.sections.iter().filter(|s| symbols.contains(&s.sh_type)).map(place));
    let segment = file.segment(elf::PT_DYNAMIC).unwrap();
    edited.push(segment.p_offset..segment.file_end());
    let dynamic = Dynamic::read(file).unwrap().unwrap();
    for (start, size) in [(elf::DT_RELA, elf::DT_RELASZ), (elf::DT_JMPREL, elf::DT_PLTRELSZ)] {
        let (start, size) = (dynamic.value(start), dynamic.value(size).unwrap_or_default());
        let offset = start.and_then(|start| file.offset_of(start, size));
        edited.extend(offset.map(|offset| offset..offset + size));
    }
    edited
}

/// Where what the linker put behind the program headers ends that may move to make room for more.
fn front(file: &ElfFile) -> u64 {
    let movable = [
        elf::SHT_NOTE,
        elf::SHT_HASH,
        elf::SHT_GNU_HASH,
        elf::SHT_STRTAB,
        elf::SHT_DYNSYM,
        elf::SHT_GNU_VERSYM,
        elf::SHT_GNU_VERNEED,
        elf::SHT_GNU_VERDEF,
    ];
    let fixed = file.sections.iter().filter(|section| {
        let moves = movable.contains(&section.sh_type) || file.name(section) == ".interp";
        section.is_in_file() && !moves
    });
    let table = FILE_HEADER_SIZE + file.program_headers.len() as u64 * PROGRAM_HEADER_SIZE;
    let first = fixed.map(|section| section.sh_offset).filter(|offset| *offset >= table);
    first.min().unwrap_or(table)
}

/// The bytes of `range` in `before` are those at `offset` in `after`.
fn same(before: &ElfFile, range: Range<u64>, after: &ElfFile, offset: u64, what: &str) {
    let end = offset + (range.end - range.start);
    let old = before.content().slice(range.clone()).unwrap();
    let new = after.content().slice(offset..end).unwrap();
    assert!(old.same_bytes(&new).unwrap(), "{what}: {range:#x?} is not what it was");
}
