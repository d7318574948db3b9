//! Symbols, dynamic tags, relocations and wrappers, entry by entry: each is unchanged, or changed as the
//! removed device code or a moved section requires.

use std::ops::Range;

use object::elf;
use rockpack_elf::hip_wrapper::{self, Magic, Wrapper};
use rockpack_elf::{Dyn, ElfFile, Record, RecordTable, Rela, SectionHeader, Symbol};
use rockpack_split::host_binary::{FATBIN_SECTION, WRAPPER_SECTION};

pub fn check(before: &ElfFile, after: &ElfFile) {
    // Tables of damaged files may overlap; nothing shows for which of them an edit was.
    let all = places(before);
    let alone = |place: &Range<u64>| all.iter().filter(|other| overlap(place, other)).count() == 1;
    let files = Files { before, after, fatbin: before.sections_named(FATBIN_SECTION)[0] };
    for (index, old) in before.sections.iter().enumerate() {
        if super::is_symbols(old) && alone(&place(old)) {
            files.symbols(index);
        }
    }
    let dynamic = before.segment(elf::PT_DYNAMIC).unwrap();
    if alone(&(dynamic.p_offset..dynamic.file_end())) {
        files.tags();
    }
    let wrappers = before.sections_named(WRAPPER_SECTION)[0].1;
    if alone(&place(&wrappers)) {
        files.wrappers(&wrappers);
        for (old, new) in super::relocations(before).iter().zip(super::relocations(after)) {
            if alone(old) {
                files.relocations(old, &new, &wrappers);
            }
        }
    }
}

fn place(section: &SectionHeader) -> Range<u64> {
    section.sh_offset..section.file_end()
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

/// The places of all edited ranges.
fn places(file: &ElfFile) -> Vec<Range<u64>> {
    let dynamic = file.segment(elf::PT_DYNAMIC).unwrap();
    let mut places = super::relocations(file);
    places.push(dynamic.p_offset..dynamic.file_end());
    places.extend(file.sections.iter().filter(|s| super::is_symbols(s)).map(place));
    for name in [FATBIN_SECTION, WRAPPER_SECTION] {
        places.extend(file.sections_named(name).iter().map(|(_, section)| place(section)));
    }
    places.retain(|place| place.start < place.end);
    places
}

struct Files<'a> {
    before: &'a ElfFile,
    after: &'a ElfFile,
    /// The original section of the device code.
    fatbin: (usize, SectionHeader),
}

impl Files<'_> {
    /// The address of the marker, which replaces the device code.
    fn marker(&self) -> u64 {
        self.fatbin.1.sh_addr
    }

    fn symbols(&self, index: usize) {
        let read = |file: &ElfFile| {
            let table = file.symbols(index, &file.sections[index]).unwrap();
            table.to_vec().unwrap()
        };
        let (old, new) = (read(self.before), read(self.after));
        assert_eq!(old.len(), new.len());
        for (at, (old, new)) in old.iter().zip(new).enumerate() {
            let expected = self.symbol(*old);
            assert_eq!(new.to_bytes(), expected.to_bytes(), "symbol {at} of section {index}");
        }
    }

    fn symbol(&self, old: Symbol) -> Symbol {
        let Some(section) = old.section().filter(|index| *index < self.before.sections.len())
        else {
            return old;
        };
        if section == self.fatbin.0 {
            let size = self.after.sections[section].sh_size;
            let st_size = if old.is_section() { old.st_size } else { size };
            return Symbol { st_value: self.marker(), st_size, ..old };
        }
        let (from, to) = (&self.before.sections[section], &self.after.sections[section]);
        let inside = (from.sh_addr..=from.memory_end()).contains(&old.st_value);
        let moved = if inside { to.sh_addr.wrapping_sub(from.sh_addr) } else { 0 };
        Symbol { st_value: old.st_value.wrapping_add(moved), ..old }
    }

    /// Compares the whole segment, even behind its end mark.
    fn tags(&self) {
        let read = |file: &ElfFile| {
            let segment = file.segment(elf::PT_DYNAMIC).unwrap();
            let (start, size) = (segment.p_offset, segment.p_filesz);
            RecordTable::<Dyn>::new(file.content(), start, size).unwrap().to_vec().unwrap()
        };
        let (old, new) = (read(self.before), read(self.after));
        assert_eq!(old.len(), new.len());
        let end = old.iter().position(|entry| entry.d_tag == elf::DT_NULL).unwrap_or(old.len());
        for (at, (old, new)) in old.iter().zip(new).enumerate() {
            let expected = if at < end { self.tag(*old) } else { *old };
            assert_eq!(new, expected, "dynamic tag {at}");
        }
    }

    fn tag(&self, old: Dyn) -> Dyn {
        let addresses = [
            elf::DT_HASH,
            elf::DT_GNU_HASH,
            elf::DT_STRTAB,
            elf::DT_SYMTAB,
            elf::DT_VERSYM,
            elf::DT_VERNEED,
            elf::DT_VERDEF,
        ];
        let sections = self.before.sections.iter().zip(&self.after.sections);
        let mut moved =
            sections.filter(|(from, to)| from.sh_addr != to.sh_addr && from.sh_addr == old.d_val);
        match moved.next() {
            Some((_, to)) if addresses.contains(&old.d_tag) => Dyn { d_val: to.sh_addr, ..old },
            _ => old,
        }
    }

    /// Compares the whole section: numbered wrappers, and the bytes between them.
    fn wrappers(&self, section: &SectionHeader) {
        let old = self.before.content().slice(place(section)).unwrap();
        let there = self.after.offset_of(section.sh_addr, section.sh_size).unwrap();
        let new = self.after.content().slice(there..there + section.sh_size).unwrap();
        let read = |bytes: &_| hip_wrapper::parse(bytes).unwrap();
        let expected = (0..).zip(read(&old)).map(|(index, old): (u64, _)| Wrapper {
            magic: Magic::Kpack,
            pointer: if old.pointer == 0 { 0 } else { self.marker() },
            reserved: old.reserved >> 32 << 32 | index,
            ..old
        });
        assert_eq!(read(&new), expected.collect::<Vec<_>>());
    }

    fn relocations(&self, old: &Range<u64>, new: &Range<u64>, section: &SectionHeader) {
        let read = |file: &ElfFile, place: &Range<u64>| {
            let table =
                RecordTable::<Rela>::new(file.content(), place.start, place.end - place.start);
            table.unwrap().to_vec().unwrap()
        };
        let (old, new) = (read(self.before, old), read(self.after, new));
        assert_eq!(old.len(), new.len());
        let wrappers = self.before.content().slice(place(section)).unwrap();
        let wrappers = hip_wrapper::parse(&wrappers).unwrap();
        let pointers: std::collections::BTreeSet<u64> = wrappers
            .iter()
            .map(|wrapper| section.sh_addr + wrapper.offset + hip_wrapper::POINTER)
            .collect();
        for (at, (old, new)) in old.iter().zip(new).enumerate() {
            let marker = Rela {
                r_info: u64::from(elf::R_X86_64_RELATIVE.0),
                r_addend: self.marker().cast_signed(),
                ..*old
            };
            let expected = if pointers.contains(&old.r_offset) { marker } else { *old };
            assert_eq!(new, expected, "relocation {at}");
        }
    }
}
