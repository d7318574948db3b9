//! The dynamic section, found as the loader finds it: by `PT_DYNAMIC`.

use object::elf;

use super::file::ElfFile;
use super::record::Dyn;
use super::table::Table;
use crate::error::{Kind, Result};

/// Names and search paths above this are refused; the loader's own limit is `PATH_MAX`.
pub(super) const MAX_STRING: u64 = 4096;

/// Names of one tag above this are refused, in bytes of all: thousands of libraries.
const MAX_NAMES: usize = 256 << 10;

/// String tables above this are refused. They hold the names of exported symbols; the largest
/// known ones have 30 MB.
const MAX_STRINGS: u64 = 512 << 20;

/// The entries of the dynamic section up to `DT_NULL`.
#[derive(Debug, Clone)]
pub struct Dynamic {
    /// In table order.
    pub entries: Vec<DynamicEntry>,
}

/// One entry and its offset in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DynamicEntry {
    /// Where it stands.
    pub offset: u64,
    /// Tag and value.
    pub entry: Dyn,
}

impl Dynamic {
    /// Reads the dynamic section of `file`, if it has one.
    pub fn read(file: &ElfFile) -> Result<Option<Self>> {
        let Some(segment) = file.segment(elf::PT_DYNAMIC) else {
            return Ok(None);
        };
        let table = Table::<Dyn>::new(file.content(), segment.p_offset, segment.p_filesz)?;
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

    /// The value of the last entry with `tag`, which is the one that the loader keeps.
    pub fn value(&self, tag: elf::DynamicTag) -> Option<u64> {
        let entry = self.entries.iter().rfind(|item| item.entry.d_tag == tag)?;
        Some(entry.entry.d_val)
    }

    /// The strings that entries with `tag` (`DT_NEEDED`, `DT_SONAME`, `DT_RUNPATH`) name.
    pub fn strings(&self, file: &ElfFile, tag: elf::DynamicTag) -> Result<Vec<String>> {
        let table = self.value(elf::DT_STRTAB).unwrap_or_default();
        let size = self.value(elf::DT_STRSZ).unwrap_or_default();
        let start = file.offset_of(table, size);
        let (mut found, mut sum) = (Vec::new(), 0);
        for item in self.entries.iter().filter(|item| item.entry.d_tag == tag) {
            let text = string(file, item, start.map(|start| (start, size)))?;
            sum += text.len();
            if sum > MAX_NAMES {
                let message = format!("the names of tag {:#x} exceed {MAX_NAMES} bytes", tag.0);
                let error = file.refuse(Kind::Limit, "dynamic section", item.offset, message);
                return Err(error.hint("the file is damaged: build it or copy it again"));
            }
            found.push(text);
        }
        Ok(found)
    }

    /// The string table of the loader.
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

/// The string that an entry names, in the table of which `strings` are start and size in the file.
fn string(file: &ElfFile, item: &DynamicEntry, strings: Option<(u64, u64)>) -> Result<String> {
    let refuse =
        |message: String| file.refuse(Kind::Malformed, "dynamic section", item.offset, message);
    let skip = item.entry.d_val;
    let Some((start, size)) = strings.filter(|(_, size)| skip < *size) else {
        return Err(refuse(format!("string {skip:#x} lies outside of DT_STRTAB")));
    };
    let len = (size - skip).min(MAX_STRING);
    let start = start.saturating_add(skip);
    let bytes = file.content().read_vec(start..start.saturating_add(len), MAX_STRING, "string")?;
    match bytes.iter().position(|byte| *byte == 0) {
        Some(end) => Ok(String::from_utf8_lossy(&bytes[..end]).into_owned()),
        None => Err(refuse(format!("string {skip:#x} does not end within {len} bytes"))),
    }
}
