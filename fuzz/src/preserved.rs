//! The bytes that the transform of a host binary must preserve: every loaded byte at its address, and every
//! byte of sections that are not loaded, outside of the edited ranges; and in the edited tables, every entry
//! about things that neither move nor disappear.

mod headers;
mod tables;

use std::ops::Range;

use object::elf;
use rockpack_core::content::Content;
use rockpack_elf::{
    Dynamic, ElfFile, FILE_HEADER_SIZE, PROGRAM_HEADER_SIZE, ProgramHeader, SectionHeader,
};
use rockpack_split::host_binary::{FATBIN_SECTION, WRAPPER_SECTION};

/// The page size of mappings.
const PAGE: u64 = 0x1000;

/// Panics if a byte of `before` that the transform must not change differs in `after`.
pub fn check(before: &Content, after: &Content) {
    check_file(&read(before), after);
}

/// [`check`], for a file that is [`read`] once.
pub fn check_file(before: &ElfFile, after: &Content) {
    let after = &read(after);
    loaded(before, after);
    headers::check(before, after);
    sections(before, after);
    tables::check(before, after);
}

/// A file that [`check_file`] can compare with.
pub fn read(content: &Content) -> ElfFile {
    ElfFile::read(content, elf::EM_X86_64).unwrap().unwrap()
}

/// Checks that the content of movable and of unloaded sections is where their headers say.
fn sections(before: &ElfFile, after: &ElfFile) {
    let front = front(before);
    let names = before.names_index;
    let relocations = relocations(before);
    for (index, (old, new)) in before.sections.iter().zip(&after.sections).enumerate() {
        let kept = !old.is_allocated() || old.sh_offset < front;
        let edited = is_symbols(old) || index == names;
        if kept && old.is_in_file() && !edited {
            for part in without(old.sh_offset..old.file_end(), &relocations) {
                let there = new.sh_offset + (part.start - old.sh_offset);
                same(before, part, after, there, &before.name(old));
            }
        }
    }
}

fn is_symbols(section: &SectionHeader) -> bool {
    [elf::SHT_SYMTAB, elf::SHT_DYNSYM].contains(&section.sh_type)
}

/// The parts of `range` outside of the others.
fn without(range: Range<u64>, others: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut others = others.to_vec();
    others.sort_by_key(|other| other.start);
    let mut parts = Vec::new();
    let mut at = range.start;
    let end = range.end..range.end;
    for other in others.iter().chain([&end]) {
        let part = at..other.start.min(range.end);
        if part.start < part.end {
            parts.push(part);
        }
        at = at.max(other.end);
    }
    parts
}

/// Checks that the bytes of all load segments, except edited ones, and the memory behind them are loaded to
/// the same addresses.
fn loaded(before: &ElfFile, after: &ElfFile) {
    let edited = edited(before);
    for (_, load) in before.loads() {
        for kept in without(load.p_offset..load.p_offset + load.p_filesz, &edited) {
            let address = load.p_vaddr + (kept.start - load.p_offset);
            loaded_there(before, kept, after, address);
        }
    }
    let fatbin = before.sections_named(FATBIN_SECTION)[0].1;
    let device_code = fatbin.sh_addr..fatbin.memory_end();
    for (_, load) in before.loads() {
        for memory in without(load.p_vaddr..load.memory_end(), std::slice::from_ref(&device_code)) {
            mapped(&memory, load, after);
        }
    }
}

/// Checks that all pages of `memory` of a load segment exist, with the same permissions.
fn mapped(memory: &Range<u64>, load: &ProgramHeader, after: &ElfFile) {
    let rights = |load: &ProgramHeader| load.p_flags.0 & (elf::PF_R.0 | elf::PF_W.0);
    let mut at = memory.start;
    while at < memory.end {
        let mut loads = after.loads().filter(|(_, new)| rights(new) == rights(load));
        let found = loads.find(|(_, new)| pages(new).contains(&at));
        let Some((_, found)) = found else { panic!("{at:#x} is not mapped as before") };
        at = pages(found).end;
    }
}

/// The addresses of the pages that a load segment maps.
fn pages(load: &ProgramHeader) -> Range<u64> {
    load.p_vaddr / PAGE * PAGE..load.memory_end().next_multiple_of(PAGE)
}

/// Checks that the bytes of `kept` are at `address` in the file, or are zeros of an existing page.
fn loaded_there(before: &ElfFile, kept: Range<u64>, after: &ElfFile, address: u64) {
    let end = address + (kept.end - kept.start);
    let offset = |at: u64| kept.start + (at - address);
    let mut at = address;
    for (_, load) in after.loads() {
        let (from, to) = (load.p_vaddr.max(at), (load.p_vaddr + load.p_filesz).min(end));
        if from < to {
            zeros(before, offset(at)..offset(from), after, at);
            let there = load.p_offset + (from - load.p_vaddr);
            same(before, offset(from)..offset(to), after, there, "load segment");
            at = to;
        }
    }
    zeros(before, offset(at)..kept.end, after, at);
}

/// Checks that the bytes of `range` are zeros, and those at `address` are in mapped pages.
fn zeros(before: &ElfFile, range: Range<u64>, after: &ElfFile, address: u64) {
    let len = range.end - range.start;
    if len == 0 {
        return;
    }
    let bytes = before.content().read_vec(range, len, "zeros").unwrap();
    assert!(bytes.iter().all(|byte| *byte == 0), "{address:#x} is not loaded");
    let mut at = address;
    while at < address + len {
        let found = after.loads().find(|(_, load)| pages(load).contains(&at));
        let Some((_, load)) = found else { panic!("{at:#x} is not mapped") };
        let end = pages(load).end.min(address + len);
        // Whole pages come from the file, even beyond the segment's part of it. But if more memory follows,
        // the loader clears the bytes behind that part.
        let cleared = load.p_memsz > load.p_filesz;
        let from_file = if cleared { end.min(load.p_vaddr) } else { end };
        if at < from_file {
            let offset = (load.p_offset + at).wrapping_sub(load.p_vaddr);
            let count = (from_file - at).min(after.content().len().saturating_sub(offset));
            let there = after.content().slice(offset..offset + count).unwrap();
            let zeros = Content::zeros(count);
            assert!(there.same_bytes(&zeros).unwrap(), "{at:#x} is not zero any more");
        }
        at = end;
    }
}

/// The ranges of the file that the transform may write to. Tables among them are checked entry by entry
/// elsewhere.
fn edited(file: &ElfFile) -> Vec<Range<u64>> {
    let place = |section: &SectionHeader| section.sh_offset..section.file_end();
    let segment = file.segment(elf::PT_DYNAMIC).unwrap();
    let mut edited = vec![0..front(file), segment.p_offset..segment.file_end()];
    for name in [FATBIN_SECTION, WRAPPER_SECTION] {
        edited.extend(file.sections_named(name).iter().map(|(_, section)| place(section)));
    }
    // These have addresses of moved sections and of the device code.
    edited.extend(file.sections.iter().filter(|section| is_symbols(section)).map(place));
    edited.extend(relocations(file));
    edited
}

/// The tables of relocations with addends, as ranges of the file.
fn relocations(file: &ElfFile) -> Vec<Range<u64>> {
    let dynamic = Dynamic::read(file).unwrap().unwrap();
    let tables = [(elf::DT_RELA, elf::DT_RELASZ), (elf::DT_JMPREL, elf::DT_PLTRELSZ)];
    let tables = tables.into_iter().filter_map(|(start, size)| {
        let (start, size) = (dynamic.value(start)?, dynamic.value(size).unwrap_or_default());
        let offset = file.offset_of(start, size)?;
        Some(offset..offset + size)
    });
    tables.collect()
}

/// The end of the sections behind the program headers that may move to make room for more headers.
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

/// Checks that the bytes of `range` in `before` are at `offset` in `after`.
fn same(before: &ElfFile, range: Range<u64>, after: &ElfFile, offset: u64, what: &str) {
    let end = offset + (range.end - range.start);
    let old = before.content().slice(range.clone()).unwrap();
    let new = after.content().slice(offset..end).unwrap();
    assert!(old.same_bytes(&new).unwrap(), "{what}: {range:#x?} is not what it was");
}
