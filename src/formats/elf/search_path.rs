//! Where the search paths of a file are written, to write others in their place.
//!
//! A search path is a string of `DT_STRTAB`, which other entries may share: linkers let a string be
//! the end of another. Overwriting a shared string would rename a library or a symbol.

use std::ops::Range;

use object::elf;

use super::dynamic::{Dynamic, MAX_STRING};
use super::file::{ElfFile, FILE_HEADER_SIZE};
use super::linking::{dynamic_symbols, symbol_count};
use super::record::{Dyn, PROGRAM_HEADER_SIZE, Record};
use super::versions::Versions;
use crate::error::{Kind, Result};

/// Tags whose value is a string, besides those of search paths.
const STRINGS: [elf::DynamicTag; 6] = [
    elf::DT_NEEDED,
    elf::DT_SONAME,
    elf::DT_AUXILIARY,
    elf::DT_FILTER,
    elf::DT_CONFIG,
    elf::DT_DEPAUDIT,
];

/// Longest search path, with its closing zero.
#[allow(clippy::cast_possible_truncation, reason = "4096")]
const LONGEST: usize = MAX_STRING as usize;

/// Most search paths that are read; linkers write one, or one of each tag.
const MAX_PATHS: usize = 16;

/// A search path and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPath {
    /// `DT_RPATH` or `DT_RUNPATH`.
    pub tag: elf::DynamicTag,
    /// Offset of its string in the file.
    pub offset: u64,
    /// The string.
    pub text: String,
    /// Whether the name of something else is in the same bytes.
    pub is_shared: bool,
}

impl SearchPath {
    /// The search paths of `file`, in table order.
    pub fn read(file: &ElfFile) -> Result<Vec<Self>> {
        let Some(dynamic) = Dynamic::read(file)? else {
            return Ok(Vec::new());
        };
        let of_path = |tag| matches!(tag, elf::DT_RPATH | elf::DT_RUNPATH);
        let paths: Vec<_> = dynamic.entries.iter().filter(|i| of_path(i.entry.d_tag)).collect();
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
        let names = names(file, &dynamic)?;
        let mut found: Vec<Self> = Vec::new();
        for item in paths {
            let at = item.entry.d_val;
            let string = usize::try_from(at).ok().and_then(|at| strings.get(at..));
            let string = string.map(|string| string.get(..LONGEST).unwrap_or(string));
            let Some(len) = string.and_then(|s| s.iter().position(|byte| *byte == 0)) else {
                let message =
                    format!("the search path at {at:#x} does not end within {LONGEST} bytes");
                return Err(file.refuse(Kind::Malformed, "dynamic section", item.offset, message));
            };
            let text = string.and_then(|string| string.get(..len)).unwrap_or_default();
            // The byte before is the end of another string, or there is none: else the path is the
            // end of a longer string.
            let before = usize::try_from(at).ok().and_then(|at| strings.get(at.checked_sub(1)?));
            let end = at.saturating_add(len as u64);
            let offset = start.saturating_add(at);
            let is_shared = before.is_some_and(|byte| *byte != 0)
                || names.iter().any(|name| (at..end).contains(name));
            found.push(Self {
                tag: item.entry.d_tag,
                offset,
                text: String::from_utf8_lossy(text).into_owned(),
                is_shared: is_shared
                    || std::str::from_utf8(text).is_err()
                    || is_in_table(file, &dynamic, offset..offset.saturating_add(len as u64)),
            });
        }
        // Both tags may name one string; parts of one another are no more than shared ones.
        let all = found.clone();
        for path in &mut found {
            let end = path.offset.saturating_add(path.text.len() as u64);
            let inside =
                |o: &Self| o.offset != path.offset && (path.offset..end).contains(&o.offset);
            path.is_shared |= all.iter().any(inside);
        }
        Ok(found)
    }
}

/// Whether bytes of the file are also those of its header tables: a damaged file may say so.
fn is_in_table(file: &ElfFile, dynamic: &Dynamic, bytes: Range<u64>) -> bool {
    let overlaps = |start: u64, size: u64| start < bytes.end && bytes.start < start + size;
    let count = u64::from(file.header.e_phnum());
    overlaps(0, FILE_HEADER_SIZE)
        || overlaps(file.header.e_phoff().min(u64::MAX >> 1), count * PROGRAM_HEADER_SIZE)
        || dynamic.entries.iter().any(|item| overlaps(item.offset, Dyn::SIZE))
}

/// The offsets in the string table of all names but search paths.
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
