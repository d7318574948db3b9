//! The dynamic section, found through `PT_DYNAMIC` as by the loader, and the dynamic symbols.
//!
//! The dynamic linker uses neither the section nor the number of symbols: it follows tags, hash tables and
//! relocations. Code that reads or edits symbols by the section must see the same ones.
//!
//! Refused: a second section of dynamic symbols; a section of symbols or names at another address than the
//! tags; a section that ends before the last symbol that the dynamic linker uses.

use object::elf;
use rockpack_core::error::{Error, Kind, Result};

use super::file::ElfFile;
use super::hash_tables::{self, HashTable};
use super::record::{Dyn, Record, SectionHeader, Symbol};
use super::relocation::for_each_relocation;
use super::table::RecordTable;
use super::versions::Versions;

/// Maximum size in bytes of all names of one tag: enough for thousands of libraries.
const MAX_NAMES: u64 = 256 << 10;

/// Bytes that are read at once in the search for the end of a string.
const WINDOW: u64 = 4096;

/// Largest string table, in bytes. It holds the names of exported symbols; the largest known ones have 30 MB.
const MAX_STRINGS: u64 = 512 << 20;

/// The entries of the dynamic section up to `DT_NULL`.
#[derive(Debug, Clone)]
pub struct Dynamic {
    pub entries: Vec<DynamicEntry>,
}

/// One entry and its offset in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DynamicEntry {
    pub offset: u64,
    pub entry: Dyn,
}

impl Dynamic {
    /// Reads the dynamic section of `file`; `None` without `PT_DYNAMIC`.
    pub fn read(file: &ElfFile) -> Result<Option<Self>> {
        let Some(segment) = file.segment(elf::PT_DYNAMIC) else {
            return Ok(None);
        };
        let table = RecordTable::<Dyn>::new(file.content(), segment.p_offset, segment.p_filesz)?;
        let mut entries = Vec::new();
        for item in table.iter() {
            let (offset, entry) = item?;
            if entry.d_tag == elf::DT_NULL {
                break;
            }
            entries.push(DynamicEntry { offset, entry });
        }
        Ok(Some(Self { entries }))
    }

    /// The value of the last entry with `tag`, which the loader uses; `None` without such an entry.
    pub fn value(&self, tag: elf::DynamicTag) -> Option<u64> {
        let entry = self.entries.iter().rfind(|item| item.entry.d_tag == tag)?;
        Some(entry.entry.d_val)
    }

    /// The names in entries with `tag` (`DT_NEEDED`, `DT_SONAME`).
    pub fn names(&self, file: &ElfFile, tag: elf::DynamicTag) -> Result<Vec<String>> {
        let (mut found, mut sum) = (Vec::new(), 0);
        for item in self.entries.iter().filter(|item| item.entry.d_tag == tag) {
            let text = self.string(file, item, MAX_NAMES)?;
            sum += text.len() as u64;
            if sum > MAX_NAMES {
                let message = format!("the names of tag {:#x} exceed {MAX_NAMES} bytes", tag.0);
                let error = file.refuse(Kind::Limit, "dynamic section", item.offset, message);
                return Err(error.hint("the file is damaged: build it or copy it again"));
            }
            found.push(text);
        }
        Ok(found)
    }

    /// The string of the last entry with `tag` (`DT_RUNPATH`), which the loader uses. It may be as long as
    /// the string table: Bazel writes search paths of many kilobytes. Earlier entries are not read, because
    /// many may name one long string.
    pub fn last_string(&self, file: &ElfFile, tag: elf::DynamicTag) -> Result<Option<String>> {
        let last = self.entries.iter().rfind(|item| item.entry.d_tag == tag);
        last.map(|item| self.string(file, item, u64::MAX)).transpose()
    }

    /// Reads the string of an entry, of at most `limit` bytes.
    fn string(&self, file: &ElfFile, item: &DynamicEntry, limit: u64) -> Result<String> {
        let table = self.value(elf::DT_STRTAB).unwrap_or_default();
        let size = self.value(elf::DT_STRSZ).unwrap_or_default();
        let skip = item.entry.d_val;
        let Some(table) = file.offset_of(table, size).filter(|_| skip < size) else {
            let message = format!("string {skip:#x} lies outside of DT_STRTAB");
            return Err(file.refuse(Kind::Malformed, "dynamic section", item.offset, message));
        };
        let (start, most) = (table.saturating_add(skip), (size - skip).min(limit));
        let Some(len) = string_len(file, start, most)? else {
            let message = format!("string {skip:#x} does not end within {most} bytes");
            return Err(file.refuse(Kind::Malformed, "dynamic section", item.offset, message));
        };
        let bytes =
            file.content().read_vec(start..start.saturating_add(len), MAX_STRINGS, "string")?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub fn string_table(&self, file: &ElfFile) -> Result<Vec<u8>> {
        let table = self.value(elf::DT_STRTAB).unwrap_or_default();
        let size = self.value(elf::DT_STRSZ).unwrap_or_default();
        let Some(start) = file.offset_of(table, size) else {
            let message = format!("DT_STRTAB, {size:#x} bytes at {table:#x}, is not loaded");
            let offset = self.entries.first().map_or(0, |item| item.offset);
            return Err(file.refuse(Kind::Malformed, "dynamic section", offset, message));
        };
        let range = start..start.saturating_add(size);
        file.content().read_vec(range, MAX_STRINGS, "dynamic string table")
    }
}

/// The number of bytes from `start` to the next zero; `None` if it is not one of the next `most` bytes.
fn string_len(file: &ElfFile, start: u64, most: u64) -> Result<Option<u64>> {
    let mut len = 0;
    while len < most {
        let at = start.saturating_add(len);
        let end = at.saturating_add(WINDOW.min(most - len));
        let window = file.content().read_vec(at..end, WINDOW, "string")?;
        if let Some(zero) = window.iter().position(|byte| *byte == 0) {
            return Ok(Some(len + zero as u64));
        }
        len += window.len() as u64;
    }
    Ok(None)
}

/// The dynamic symbols of a file: the section that lists all that the dynamic linker uses.
#[derive(Debug)]
pub struct DynamicSymbols<'a> {
    /// The section with its index; `None` if the file has no dynamic symbols.
    pub section: Option<(usize, &'a SectionHeader)>,
    hash_tables: Vec<HashTable>,
}

impl<'a> DynamicSymbols<'a> {
    /// Finds the section with all symbols that the dynamic linker uses. Fails if it uses some beyond the end of that
    /// section, or any without a section.
    pub fn read(file: &'a ElfFile, dynamic: &Dynamic) -> Result<Self> {
        let section = section(file, dynamic)?;
        let count = count(section);
        let hash_tables = hash_tables::read(file, dynamic, count)?;
        let by_hashes = hash_tables.iter().any(|table| table.exceeds_symbols);
        let mut last = 0;
        if !by_hashes {
            for_each_relocation(file, dynamic, &mut |relocation| {
                last = last.max(relocation.symbol);
                Ok(())
            })?;
        }
        if !by_hashes && (last == 0 || u64::from(last) < count) {
            return Ok(Self { section, hash_tables });
        }
        let message = format!(
            "hash tables or relocations refer to dynamic symbols beyond the {count} that the sections list"
        );
        let (kind, start) = (Kind::Unsupported, file.header.e_shoff);
        Err(with_linker_hint(match section {
            Some((index, _)) => file.refuse_section(kind, index, message),
            None => file.refuse(kind, "section headers", start, message),
        }))
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
        let message = format!("DT_SYMTAB is {address:#x}, but no section has dynamic symbols");
        let place = file.header.e_shoff;
        return Err(with_linker_hint(file.refuse(
            Kind::Unsupported,
            "section headers",
            place,
            message,
        )));
    }
    for (position, (index, section)) in tables.iter().enumerate() {
        let link = usize::try_from(section.sh_link).ok();
        let strings = link.and_then(|index| file.sections.get(index));
        let message = if !is_loaded_at(dynamic, elf::DT_SYMTAB, section) {
            let address = section.sh_addr;
            format!("has dynamic symbols for {address:#x} that are not loaded at DT_SYMTAB")
        } else if !strings.is_some_and(|strings| is_loaded_at(dynamic, elf::DT_STRTAB, strings)) {
            "has names in a section that is not loaded at DT_STRTAB".to_owned()
        } else if position > 0 {
            "is a second section of the same dynamic symbols".to_owned()
        } else {
            continue;
        };
        return Err(with_linker_hint(file.refuse_section(Kind::Unsupported, *index, message)));
    }
    Ok(tables.first().copied())
}

fn is_loaded_at(dynamic: &Dynamic, tag: elf::DynamicTag, section: &SectionHeader) -> bool {
    section.is_allocated() && dynamic.value(tag) == Some(section.sh_addr)
}

fn count(section: Option<(usize, &SectionHeader)>) -> u64 {
    section.map_or(0, |(_, section)| section.sh_size / Symbol::SIZE)
}

fn with_linker_hint(error: Error) -> Error {
    error.hint("no linker writes such a file: build it or copy it again")
}
