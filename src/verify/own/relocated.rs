//! The values that the dynamic loader stores in the wrappers of a host binary, by its relocation sections.
//!
//! It refuses relocation sections that have more bytes together than the file.

use std::collections::BTreeMap;

use object::LittleEndian;
use object::elf::{self, Rela64, Sym64};
use object::read::elf::{SectionHeader, Sym};
use rockpack_base::error::Result;

use super::elf_file::{HostElfFile, Section};

/// The value that the dynamic loader stores in a word.
pub(in crate::verify) enum Relocated {
    /// This value.
    To(u64),
    /// The stored value plus the load address (RELR).
    InPlace,
}

impl<'a> HostElfFile<'a> {
    /// The relocated words of `within`, by address.
    pub(in crate::verify) fn relocated(&self, within: Section) -> Result<BTreeMap<u64, Relocated>> {
        let range = within.address..within.address.saturating_add(within.size);
        let mut values = BTreeMap::new();
        let mut symbols = None;
        let mut left = self.content.len();
        // What linkers keep beside them (`--emit-relocs`) is for linkers.
        let loaded = self
            .sections
            .iter()
            .filter(|section| section.sh_flags(LittleEndian).0 & elf::SHF_ALLOC.0 != 0);
        for section in loaded {
            if matches!(section.sh_type(LittleEndian), elf::SHT_RELR | elf::SHT_RELA) {
                self.take(&mut left, section.sh_size(LittleEndian), "sections of relocations")?;
            }
            if let Ok(Some(addresses)) = section.relr(LittleEndian, self.cache) {
                let own = addresses.filter(|address| range.contains(address));
                values.extend(own.map(|address| (address, Relocated::InPlace)));
            }
            if let Ok(Some((entries, _))) = section.rela(LittleEndian, self.cache) {
                let own = entries.iter().filter(|e| range.contains(&e.r_offset.get(LittleEndian)));
                for entry in own {
                    if let Some(value) = self.value(entry, &mut symbols) {
                        values.insert(entry.r_offset.get(LittleEndian), Relocated::To(value));
                    }
                }
            }
        }
        Ok(values)
    }

    /// The value that a relocation of a kind found in wrappers stores, by the dynamic symbols, which are read
    /// once.
    fn value(
        &self,
        entry: &Rela64<LittleEndian>,
        symbols: &mut Option<&'a [Sym64<LittleEndian>]>,
    ) -> Option<u64> {
        let addend = entry.r_addend.get(LittleEndian).cast_unsigned();
        match entry.r_type(LittleEndian, false) {
            elf::R_X86_64_RELATIVE => Some(addend),
            elf::R_X86_64_64 => {
                let all = symbols.get_or_insert_with(|| {
                    let table = self.sections.symbols(LittleEndian, self.cache, elf::SHT_DYNSYM);
                    table.map(|table| table.symbols()).unwrap_or_default()
                });
                let symbol = all.get(usize::try_from(entry.r_sym(LittleEndian, false)).ok()?)?;
                Some(symbol.st_value(LittleEndian).wrapping_add(addend))
            }
            _ => None,
        }
    }
}
