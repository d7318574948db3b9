//! The dynamic symbols: the section that lists all symbols the dynamic linker finds.
//!
//! The dynamic linker knows neither the section nor the number of symbols: it follows tags, hash tables and
//! relocations. Code that reads or edits symbols by the section must see the same ones.
//!
//! Refused: a second section of dynamic symbols; a section of symbols or names at another address than the
//! tags; a section that ends before the last symbol that the dynamic linker finds.

use object::elf;

use super::dynamic::Dynamic;
use super::file::ElfFile;
use super::hash_tables::{self, HashTable};
use super::record::{Record, SectionHeader, Symbol};
use super::relocation::for_each_relocation;
use super::versions::Versions;
use rockpack_core::error::{Error, Kind, Result};

/// The dynamic symbols of a file.
#[derive(Debug)]
pub struct DynamicSymbols<'a> {
    /// The section with its index; `None` if the file has no dynamic symbols.
    pub section: Option<(usize, &'a SectionHeader)>,
    hash_tables: Vec<HashTable>,
}

impl<'a> DynamicSymbols<'a> {
    /// Finds the section with all symbols that the dynamic linker finds.
    pub fn read(file: &'a ElfFile, dynamic: &Dynamic) -> Result<Self> {
        let section = section(file, dynamic)?;
        let hash_tables = hash_tables::read(file, dynamic, count(section))?;
        refuse_hidden(file, dynamic, section, &hash_tables)?;
        Ok(Self { section, hash_tables })
    }

    /// Reads all symbols, in the order of their indexes.
    pub fn to_vec(&self, file: &ElfFile) -> Result<Vec<Symbol>> {
        self.section
            .map_or(Ok(Vec::new()), |(index, section)| file.symbols(index, section)?.to_vec())
    }

    /// Sizes in bytes of the tables whose size no dynamic tag states, by the tag that leads there.
    pub fn table_sizes(
        &self,
        file: &ElfFile,
        dynamic: &Dynamic,
    ) -> Result<Vec<(elf::DynamicTag, u64)>> {
        let count = count(self.section);
        let mut sizes: Vec<_> =
            self.hash_tables.iter().map(|table| (table.tag, table.size)).collect();
        sizes.push((elf::DT_SYMTAB, count * Symbol::SIZE));
        sizes.push((elf::DT_VERSYM, count * size_of::<u16>() as u64));
        sizes.extend(Versions::sizes(file, dynamic)?);
        Ok(sizes)
    }
}

/// The section of dynamic symbols that the dynamic linker reads, with its index.
fn section<'a>(file: &'a ElfFile, dynamic: &Dynamic) -> Result<Option<(usize, &'a SectionHeader)>> {
    let address = dynamic.value(elf::DT_SYMTAB);
    let sections = file.sections.iter().enumerate();
    let tables: Vec<_> =
        sections.filter(|(_, section)| section.sh_type == elf::SHT_DYNSYM).collect();
    if let (Some(address), []) = (address, tables.as_slice()) {
        let message =
            format!("DT_SYMTAB leads to {address:#x}, and no section has dynamic symbols");
        let place = file.header.e_shoff();
        return Err(odd(file.refuse(Kind::Unsupported, "section headers", place, message)));
    }
    for (position, (index, section)) in tables.iter().enumerate() {
        if let Some(message) = fault(file, dynamic, section, position) {
            return Err(odd(file.refuse_section(Kind::Unsupported, *index, message)));
        }
    }
    Ok(tables.first().copied())
}

/// The reason why a section is not the one that the dynamic linker reads; `None` if it is.
fn fault(
    file: &ElfFile,
    dynamic: &Dynamic,
    section: &SectionHeader,
    position: usize,
) -> Option<String> {
    let strings = usize::try_from(section.sh_link).ok().and_then(|index| file.sections.get(index));
    if !leads_to(dynamic, elf::DT_SYMTAB, section) {
        Some(format!(
            "has dynamic symbols for {:#x} that are not loaded where DT_SYMTAB leads",
            section.sh_addr
        ))
    } else if !strings.is_some_and(|strings| leads_to(dynamic, elf::DT_STRTAB, strings)) {
        Some("has names in a section that is not loaded where DT_STRTAB leads".to_owned())
    } else {
        (position > 0).then(|| "is a second section of the same dynamic symbols".to_owned())
    }
}

fn leads_to(dynamic: &Dynamic, tag: elf::DynamicTag, section: &SectionHeader) -> bool {
    section.is_allocated() && dynamic.value(tag) == Some(section.sh_addr)
}

/// Number of symbols in a section.
fn count(section: Option<(usize, &SectionHeader)>) -> u64 {
    section.map_or(0, |(_, section)| section.sh_size / Symbol::SIZE)
}

/// Fails if the dynamic linker finds symbols behind the end of `section`, or any without a section.
fn refuse_hidden(
    file: &ElfFile,
    dynamic: &Dynamic,
    section: Option<(usize, &SectionHeader)>,
    hash_tables: &[HashTable],
) -> Result<()> {
    let count = count(section);
    let by_hashes = hash_tables.iter().any(|table| table.leads_behind);
    if !by_hashes && !relocations_lead_behind(file, dynamic, count)? {
        return Ok(());
    }
    let message = format!(
        "hash tables or relocations lead to other dynamic symbols than the {count} that sections show"
    );
    Err(odd(match section {
        Some((index, _)) => file.refuse_section(Kind::Unsupported, index, message),
        None => file.refuse(Kind::Unsupported, "section headers", file.header.e_shoff(), message),
    }))
}

fn relocations_lead_behind(file: &ElfFile, dynamic: &Dynamic, count: u64) -> Result<bool> {
    let mut last = 0;
    for_each_relocation(file, dynamic, &mut |relocation| {
        last = last.max(relocation.symbol);
        Ok(())
    })?;
    Ok(last > 0 && u64::from(last) >= count)
}

fn odd(error: Error) -> Error {
    error.hint("no linker writes such a file: build it or copy it again")
}
