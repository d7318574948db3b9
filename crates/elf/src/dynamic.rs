//! The dynamic section, found through `PT_DYNAMIC` as by the loader.

use object::elf;

use super::file::ElfFile;
use super::record::Dyn;
use super::table::RecordTable;
use rockpack_core::error::{Kind, Result};

/// Most bytes of all names of one tag: enough for thousands of libraries.
const MAX_NAMES: u64 = 256 << 10;

/// Bytes that are searched together for the end of a string.
const WINDOW: u64 = 4096;

/// Largest string table, in bytes. It holds the names of exported symbols; the largest known ones have 30 MB.
const MAX_STRINGS: u64 = 512 << 20;

/// The entries of the dynamic section up to `DT_NULL`.
#[derive(Debug, Clone)]
pub struct Dynamic {
    /// The entries, in table order.
    pub entries: Vec<DynamicEntry>,
}

/// One entry and its offset in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DynamicEntry {
    /// Offset in the file.
    pub offset: u64,
    /// Tag and value.
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

    /// Reads the loader's string table.
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
