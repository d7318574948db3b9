//! The values that the dynamic loader stores in the wrappers of a host binary, by its relocation sections.
//!
//! It refuses relocation sections that have more bytes together than the file.

use std::collections::BTreeMap;

use object::elf::{self, Rela64};
use object::read::elf::SectionHeader;
use object::{LittleEndian, SectionIndex};
use rockpack_base::error::Result;

use super::elf_file::{HostElfFile, Section};

/// Bytes of a symbol.
const SYMBOL: u64 = 24;

/// The value that the dynamic loader stores in a word.
pub(in crate::verify) enum Relocated {
    /// This value.
    To(u64),
    /// The stored value plus the load address (RELR).
    InPlace,
}

impl HostElfFile<'_> {
    /// The relocated words of `within`, by address.
    pub(in crate::verify) fn relocated(&self, within: Section) -> Result<BTreeMap<u64, Relocated>> {
        let range = within.address..within.address.saturating_add(within.size);
        let mut values = BTreeMap::new();
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
            if let Ok(Some((entries, symbols))) = section.rela(LittleEndian, self.cache) {
                let own = entries.iter().filter(|e| range.contains(&e.r_offset.get(LittleEndian)));
                for entry in own {
                    if let Some(value) = self.value(entry, symbols)? {
                        values.insert(entry.r_offset.get(LittleEndian), Relocated::To(value));
                    }
                }
            }
        }
        Ok(values)
    }

    /// The value that a relocation of a kind found in wrappers stores, by the symbols of the section `table`.
    fn value(&self, entry: &Rela64<LittleEndian>, table: SectionIndex) -> Result<Option<u64>> {
        let addend = entry.r_addend.get(LittleEndian).cast_unsigned();
        Ok(match entry.r_type(LittleEndian, false) {
            elf::R_X86_64_RELATIVE => Some(addend),
            elf::R_X86_64_64 => {
                let value = self.symbol(table, entry.r_sym(LittleEndian, false).into())?;
                value.map(|value| value.wrapping_add(addend))
            }
            _ => None,
        })
    }

    /// The value of a symbol in the section `table`, read alone: every relocation may use another table.
    fn symbol(&self, table: SectionIndex, index: u64) -> Result<Option<u64>> {
        let table = self.sections.section(table).ok().filter(|section| {
            matches!(section.sh_type(LittleEndian), elf::SHT_DYNSYM | elf::SHT_SYMTAB)
        });
        let place = table.and_then(|table| table.file_range(LittleEndian));
        let at = index.saturating_mul(SYMBOL);
        match place.filter(|(_, size)| at.saturating_add(SYMBOL) <= *size) {
            // `st_value`.
            Some((start, _)) => {
                let value = self.content.read_array(start.saturating_add(at + 8))?;
                Ok(Some(u64::from_le_bytes(value)))
            }
            None => Ok(None),
        }
    }
}
