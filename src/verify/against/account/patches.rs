//! The changes inside of tables when device code is taken out: wrappers point to the marker, and references
//! to sections that moved follow them.

use std::collections::BTreeSet;

use object::elf::{self, Dyn64, Rela64, Sym64};
use object::pod;
use object::read::elf::SectionHeader as _;
use rockpack_base::content::Content;
use rockpack_base::error::Result;

use super::edits::Edits;
use super::removal::Removal;
use crate::verify::own::host_elf::{HIPF, HIPK, WRAPPER_LEN};
use crate::verify::own::tables::{
    LE, SectionRow, Tables, addresses_of, bytes_of, has, is_in_file, name_of, record,
};

/// Records that are read at once.
const AT_ONCE: usize = 4096;

/// Tags of the dynamic section that follow the section that they lead to.
const FOLLOWING: [elf::DynamicTag; 7] = [
    elf::DT_HASH,
    elf::DT_GNU_HASH,
    elf::DT_STRTAB,
    elf::DT_SYMTAB,
    elf::DT_VERSYM,
    elf::DT_VERNEED,
    elf::DT_VERDEF,
];

/// Calls `take` with the offset and bytes of each whole record of `N` bytes of a section.
pub(super) fn each_record<const N: usize>(
    content: &Content,
    section: &SectionRow,
    take: &mut dyn FnMut(u64, &[u8; N]) -> Result<()>,
) -> Result<()> {
    let range = bytes_of(section);
    let mut reader = content.slice(range.clone())?.reader();
    let (mut window, mut at) = (vec![0; N * AT_ONCE], range.start);
    loop {
        let len = reader.read_window(&mut window)?;
        let (records, _) = window.get(..len).unwrap_or_default().as_chunks::<N>();
        for record in records {
            take(at, record)?;
            at += N as u64;
        }
        if len < window.len() {
            return Ok(());
        }
    }
}

impl Removal<'_> {
    /// Adds the changes of tables; offsets are those of the binary before.
    pub(super) fn patch(
        &self,
        content: &Content,
        names: &[u8],
        marker: u64,
        edits: &mut Edits,
    ) -> Result<()> {
        let pointers = self.pointers(content, names)?;
        let relocated = self.patch_relocations(content, &pointers, edits)?;
        self.patch_wrappers(content, names, &relocated, edits)?;
        for section in self.before.sections.iter().filter(|section| is_in_file(section)) {
            match section.sh_type(LE) {
                elf::SHT_DYNAMIC => self.patch_dynamic(content, section, edits)?,
                elf::SHT_SYMTAB | elf::SHT_DYNSYM => {
                    self.patch_symbols(content, section, marker, edits)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn wrappers(&self, names: &[u8]) -> impl Iterator<Item = &SectionRow> {
        let wrappers = self.before.sections.iter().filter(move |section| {
            is_in_file(section) && name_of(section, names) == b".hipFatBinSegment"
        });
        wrappers.take(1)
    }

    /// Calls `take` with the index, offset, address and words of each wrapper.
    fn each_wrapper(
        &self,
        content: &Content,
        names: &[u8],
        take: &mut dyn FnMut(u64, u64, u64, [u64; 3]) -> Result<()>,
    ) -> Result<()> {
        for section in self.wrappers(names) {
            let (start, address) = (section.sh_offset(LE), section.sh_addr(LE));
            let (mut index, mut held) = (0, Vec::new());
            each_record::<8>(content, section, &mut |at, bytes| {
                held.push(u64::from_le_bytes(*bytes));
                // Sanitizers pad wrappers.
                if held.len() == 1 && u32::try_from(held[0] & 0xffff_ffff) != Ok(HIPF) {
                    held.clear();
                }
                if let [head, pointer, reserved] = held[..] {
                    let own = at + 8 - WRAPPER_LEN as u64;
                    take(index, own, address + (own - start), [head, pointer, reserved])?;
                    index += 1;
                    held.clear();
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The addresses of the pointers of all wrappers.
    fn pointers(&self, content: &Content, names: &[u8]) -> Result<BTreeSet<u64>> {
        let mut pointers = BTreeSet::new();
        self.each_wrapper(content, names, &mut |_, _, address, _| {
            pointers.insert(address.saturating_add(8));
            Ok(())
        })?;
        Ok(pointers)
    }

    /// The relocations of wrappers lead to the marker, by no symbol. Gives the pointers that have one.
    fn patch_relocations(
        &self,
        content: &Content,
        pointers: &BTreeSet<u64>,
        edits: &mut Edits,
    ) -> Result<BTreeSet<u64>> {
        let mut relocated = BTreeSet::new();
        let tables = self.before.sections.iter().filter(|section| {
            section.sh_type(LE) == elf::SHT_RELA
                && has(section, elf::SHF_ALLOC)
                && is_in_file(section)
        });
        for table in tables {
            each_record::<24>(content, table, &mut |at, bytes| {
                let mut entry: Rela64<LE> = record(bytes)?;
                if pointers.contains(&entry.r_offset.get(LE)) {
                    relocated.insert(entry.r_offset.get(LE));
                    entry.r_info.set(LE, u64::from(elf::R_X86_64_RELATIVE.0));
                    entry.r_addend.set(LE, self.code().sh_addr(LE).cast_signed());
                    edits.write(at, pod::bytes_of(&entry))?;
                }
                Ok(())
            })?;
        }
        Ok(relocated)
    }

    /// Each wrapper has the magic of one without device code, its own number, and the address of the
    /// marker where the address of device code stood.
    fn patch_wrappers(
        &self,
        content: &Content,
        names: &[u8],
        relocated: &BTreeSet<u64>,
        edits: &mut Edits,
    ) -> Result<()> {
        let target = self.code().sh_addr(LE);
        self.each_wrapper(content, names, &mut |index, at, address, [head, pointer, reserved]| {
            let stands_there = pointer != 0 || !relocated.contains(&address.saturating_add(8));
            let words = [
                head >> 32 << 32 | u64::from(HIPK),
                if stands_there { target } else { 0 },
                reserved >> 32 << 32 | index & 0xffff_ffff,
            ];
            edits.write(at, &words.map(u64::to_le_bytes).concat())
        })
    }

    fn patch_dynamic(
        &self,
        content: &Content,
        section: &SectionRow,
        edits: &mut Edits,
    ) -> Result<()> {
        let mut ended = false;
        each_record::<16>(content, section, &mut |at, bytes| {
            let mut entry: Dyn64<LE> = record(bytes)?;
            let (tag, value) = (entry.d_tag.get(LE), entry.d_val.get(LE));
            ended |= tag == elf::DT_NULL;
            let own = self.moved().find(|i| self.before.sections[*i].sh_addr(LE) == value);
            if let Some(index) = own
                && !ended
                && FOLLOWING.contains(&tag)
                && let Some(address) = self.moved_to(index)
            {
                entry.d_val.set(LE, address);
                edits.write(at, pod::bytes_of(&entry))?;
            }
            Ok(())
        })
    }

    /// Points symbols of device code to the marker, and moves those of sections that moved.
    fn patch_symbols(
        &self,
        content: &Content,
        section: &SectionRow,
        marker: u64,
        edits: &mut Edits,
    ) -> Result<()> {
        let code = self.code().sh_addr(LE);
        each_record::<24>(content, section, &mut |at, bytes| {
            let mut symbol: Sym64<LE> = record(bytes)?;
            let (index, value) = (symbol.st_shndx.get(LE).0, symbol.st_value.get(LE));
            let index = Some(usize::from(index)).filter(|_| index < elf::SHN_LORESERVE);
            let Some(index) = index else { return Ok(()) };
            if index == self.fatbin {
                symbol.st_value.set(LE, code);
                if symbol.st_info.st_type() != elf::STT_SECTION {
                    symbol.st_size.set(LE, marker);
                }
            } else if let Some(address) = self.moved_to(index) {
                let old = addresses_of(&self.before.sections[index]);
                if !(old.start..=old.end).contains(&value) {
                    return Ok(());
                }
                symbol.st_value.set(LE, address.saturating_add(value - old.start));
            } else {
                return Ok(());
            }
            edits.write(at, pod::bytes_of(&symbol))
        })
    }
}

/// Symbols of the whole marker, the section of this index and size, have its new size.
pub(super) fn resize_symbols(
    content: &Content,
    tables: &Tables,
    (marker, old): (usize, u64),
    len: u64,
    edits: &mut Edits,
) -> Result<()> {
    let all = tables.sections.iter().filter(|section| is_in_file(section));
    let tables = all.filter(|s| matches!(s.sh_type(LE), elf::SHT_SYMTAB | elf::SHT_DYNSYM));
    for table in tables {
        each_record::<24>(content, table, &mut |at, bytes| {
            let mut symbol: Sym64<LE> = record(bytes)?;
            let own = usize::from(symbol.st_shndx.get(LE).0) == marker;
            if own && symbol.st_size.get(LE) == old && old != len {
                symbol.st_size.set(LE, len);
                edits.write(at, pod::bytes_of(&symbol))?;
            }
            Ok(())
        })?;
    }
    Ok(())
}
