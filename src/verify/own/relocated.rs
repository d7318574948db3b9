//! The values that the dynamic loader stores in the wrappers of a host binary, by its relocation sections.
//!
//! It refuses relocation sections that have more bytes together than the file, symbol tables that do,
//! and relocations of wrappers by the symbols of more than [`MOST_TABLES`] tables.

use std::collections::BTreeMap;

use object::elf::{self, Rela64, Sym64};
use object::read::elf::{SectionHeader, Sym};
use object::{LittleEndian, SectionIndex};
use rockpack_base::error::{Error, Kind, Result};

use super::elf_file::{HostElfFile, Section};

/// Most symbol tables that relocations of wrappers go by. Those of the dynamic loader go by the one
/// that it has.
const MOST_TABLES: usize = 16;

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
        let mut tables = Tables { file: self, read: BTreeMap::new(), left: self.content.len() };
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
                    if let Some(value) = value(entry, symbols, &mut tables)? {
                        values.insert(entry.r_offset.get(LittleEndian), Relocated::To(value));
                    }
                }
            }
        }
        Ok(values)
    }
}

/// The value that a relocation of a kind found in wrappers stores, by the symbols of the section `table`.
fn value(
    entry: &Rela64<LittleEndian>,
    table: SectionIndex,
    tables: &mut Tables<'_, '_>,
) -> Result<Option<u64>> {
    let addend = entry.r_addend.get(LittleEndian).cast_unsigned();
    Ok(match entry.r_type(LittleEndian, false) {
        elf::R_X86_64_RELATIVE => Some(addend),
        elf::R_X86_64_64 => {
            let index = usize::try_from(entry.r_sym(LittleEndian, false)).unwrap_or(usize::MAX);
            let symbol = tables.get(table)?.get(index);
            symbol.map(|symbol| symbol.st_value(LittleEndian).wrapping_add(addend))
        }
        _ => None,
    })
}

type Symbols<'a> = &'a [Sym64<LittleEndian>];

/// The symbol tables that relocations of wrappers go by: every section of relocations may name one of
/// its own, and all may name one.
struct Tables<'f, 'a> {
    file: &'f HostElfFile<'a>,
    /// The tables by the index of their section.
    read: BTreeMap<usize, Symbols<'a>>,
    /// Bytes of the file that no table has taken.
    left: u64,
}

impl<'a> Tables<'_, 'a> {
    /// The symbols of the section `index`; empty if it has none or does not exist.
    fn get(&mut self, index: SectionIndex) -> Result<Symbols<'a>> {
        if let Some(symbols) = self.read.get(&index.0) {
            return Ok(symbols);
        }
        let file = self.file;
        if self.read.len() == MOST_TABLES {
            let message =
                format!("relocations go by the symbols of more than {MOST_TABLES} tables");
            let hint = "no linker writes such sections: build the file or copy it again";
            return Err(Error::new(Kind::Limit, message).at(&file.content.place(0)).hint(hint));
        }
        let section = file.sections.section(index).ok();
        let table = section.filter(|section| {
            matches!(section.sh_type(LittleEndian), elf::SHT_DYNSYM | elf::SHT_SYMTAB)
        });
        let mut symbols = Symbols::default();
        if let Some(table) = table {
            file.take(&mut self.left, table.sh_size(LittleEndian), "symbol tables")?;
            symbols = table.data_as_array(LittleEndian, file.cache).unwrap_or_default();
        }
        self.read.insert(index.0, symbols);
        Ok(symbols)
    }
}
