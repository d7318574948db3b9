//! The search paths of a file and their positions, for overwriting.
//!
//! A search path is a string of `DT_STRTAB`, whose bytes other entries may share: linkers let a string be the
//! end of another. Overwriting a shared string would rename a library or a symbol.

use std::ops::Range;

use object::elf;

use super::dynamic::{Dynamic, DynamicEntry};
use super::file::{ElfFile, FILE_HEADER_SIZE};
use super::linking::{dynamic_symbols, symbol_count};
use super::record::{Dyn, PROGRAM_HEADER_SIZE, Record};
use super::versions::Versions;
use rockpack_core::error::{Kind, Result};

/// The tags whose value is a string, except those of search paths.
const STRINGS: [elf::DynamicTag; 6] = [
    elf::DT_NEEDED,
    elf::DT_SONAME,
    elf::DT_AUXILIARY,
    elf::DT_FILTER,
    elf::DT_CONFIG,
    elf::DT_DEPAUDIT,
];

/// Most search paths that are read; linkers write at most one of each tag.
const MAX_PATHS: usize = 16;

/// Number of times that search paths may take the bytes of the string table: both tags may name one string.
const SHARED: usize = 2;

/// A search path and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPath {
    /// `DT_RPATH` or `DT_RUNPATH`.
    pub tag: elf::DynamicTag,
    /// Offset of the string in the file.
    pub offset: u64,
    /// The string.
    pub text: String,
    /// Whether another name shares bytes of the string.
    pub is_shared: bool,
}

impl SearchPath {
    /// Reads the search paths of `file`, in table order.
    pub fn read(file: &ElfFile) -> Result<Vec<Self>> {
        let Some(dynamic) = Dynamic::read(file)? else {
            return Ok(Vec::new());
        };
        let paths: Vec<_> = dynamic
            .entries
            .iter()
            .filter(|item| matches!(item.entry.d_tag, elf::DT_RPATH | elf::DT_RUNPATH))
            .collect();
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(beyond) = paths.get(MAX_PATHS) {
            let message = format!("there are more than {MAX_PATHS} search paths");
            let error = file.refuse(Kind::Limit, "dynamic section", beyond.offset, message);
            return Err(error.hint("the file is damaged: build it or copy it again"));
        }
        let strings = dynamic.string_table(file)?;
        let table = dynamic.value(elf::DT_STRTAB).unwrap_or_default();
        let start = file.offset_of(table, strings.len() as u64).unwrap_or_default();
        let texts = texts(file, &strings, &paths)?;
        let names = names(file, &dynamic)?;
        let is_shared = |at: u64, text: &[u8]| {
            let end = at.saturating_add(text.len() as u64);
            let (offset, behind) = (start.saturating_add(at), start.saturating_add(end));
            // Unless the byte before is zero, the path is the end of a longer string.
            let before = usize::try_from(at).ok().and_then(|at| strings.get(at.checked_sub(1)?));
            before.is_some_and(|byte| *byte != 0)
                || names.iter().any(|name| (at..end).contains(name))
                || std::str::from_utf8(text).is_err()
                || is_in_table(file, &dynamic, offset..behind)
                // Both tags may name the same string, but a path that begins inside another one shares bytes.
                || texts.iter().any(|(other, _)| *other != at && (at..end).contains(other))
        };
        let found = paths.iter().zip(&texts).map(|(item, (at, text))| Self {
            tag: item.entry.d_tag,
            offset: start.saturating_add(*at),
            text: String::from_utf8_lossy(text).into_owned(),
            is_shared: is_shared(*at, text),
        });
        Ok(found.collect())
    }
}

/// The search paths of `paths` with their offsets in the table. Refused: paths that together have more bytes
/// than [`SHARED`] times the table.
fn texts<'t>(
    file: &ElfFile,
    strings: &'t [u8],
    paths: &[&DynamicEntry],
) -> Result<Vec<(u64, &'t [u8])>> {
    let mut left = strings.len().saturating_mul(SHARED);
    let mut texts = Vec::new();
    for item in paths {
        let at = item.entry.d_val;
        let rest = usize::try_from(at).ok().and_then(|at| strings.get(at..)).unwrap_or_default();
        let Some(len) = rest.iter().position(|byte| *byte == 0) else {
            let message = format!("the search path at {at:#x} does not end within DT_STRTAB");
            return Err(file.refuse(Kind::Malformed, "dynamic section", item.offset, message));
        };
        let Some(remaining) = left.checked_sub(len) else {
            let size = strings.len();
            let message = format!("search paths are far longer than DT_STRTAB with {size} bytes");
            let error = file.refuse(Kind::Limit, "dynamic section", item.offset, message);
            return Err(error.hint("the file is damaged: build it or copy it again"));
        };
        left = remaining;
        texts.push((at, rest.get(..len).unwrap_or_default()));
    }
    Ok(texts)
}

/// Whether bytes of the file belong to its header tables, as they may in a damaged file.
fn is_in_table(file: &ElfFile, dynamic: &Dynamic, bytes: Range<u64>) -> bool {
    let count = u64::from(file.header.e_phnum());
    overlaps(&bytes, 0, FILE_HEADER_SIZE)
        || overlaps(&bytes, file.header.e_phoff().min(u64::MAX >> 1), count * PROGRAM_HEADER_SIZE)
        || dynamic.entries.iter().any(|item| overlaps(&bytes, item.offset, Dyn::SIZE))
}

fn overlaps(bytes: &Range<u64>, start: u64, size: u64) -> bool {
    start < bytes.end && bytes.start < start + size
}

/// The offsets of all names in the string table, except search paths.
fn names(file: &ElfFile, dynamic: &Dynamic) -> Result<Vec<u64>> {
    let entries = dynamic.entries.iter().filter(|item| STRINGS.contains(&item.entry.d_tag));
    let mut names: Vec<u64> = entries.map(|item| item.entry.d_val).collect();
    if let Some(symbols) = dynamic_symbols(file, dynamic, symbol_count(file, dynamic)?)? {
        for item in symbols.iter() {
            names.push(u64::from(item?.1.st_name));
        }
    }
    names.extend(Versions::name_offsets(file, dynamic)?.into_iter().map(u64::from));
    Ok(names)
}
