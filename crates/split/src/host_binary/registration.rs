//! The registration of wrappers in a binary for every HIP runtime.
//!
//! A binary imports `__hipRegisterFatBinary` and `__hipUnregisterFatBinary` from the HIP runtime. This module redirects
//! these imports to [`SHIM`](super::SHIM), under other names and without the runtime's symbol version, and adds that
//! library to the needed ones. The new names are appended to the string table, which therefore moves into the space of
//! the device code, with room for any name of the library. The new entry of the dynamic section overwrites the first
//! spare one, which GNU ld writes, or `DT_RELACOUNT`, which lld writes: it only lets the dynamic linker count
//! relocations in advance.

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_elf::{Dyn, Dynamic, DynamicEntry, DynamicSymbols, ElfFile, Record, Symbol};

/// The functions of HIP runtimes, and their replacements.
const FUNCTIONS: [(&str, &str); 2] = [
    ("__hipRegisterFatBinary", "rocm_kpack_register_fat_binary"),
    ("__hipUnregisterFatBinary", "rocm_kpack_unregister_fat_binary"),
];

/// Bytes set aside for the name of the library with its NUL, so that the name changes no layout.
const NAME_AREA: u64 = 512;

/// The alternative for binaries that cannot be made for every HIP runtime.
pub const KEEP_FAT_HINT: &str =
    "keep its device code in it, which every HIP runtime loads: untransformable = \"keep-fat\"";

const VERSION_NONE: u16 = 1;

/// The changes to a binary that registers with the shim.
#[derive(Debug, Clone)]
pub struct Registration {
    /// Index of the section with the names of dynamic symbols.
    pub strings: usize,
    /// Symbols with their new names, by offset.
    symbols: Vec<(u64, Symbol)>,
    /// Offsets of their version indexes.
    versions: Vec<u64>,
    /// The entry of the dynamic section for the library, in place of a spare one.
    pub needed: DynamicEntry,
}

impl Registration {
    /// Plans the changes. Refuses binaries that register their wrappers in another way.
    pub fn plan(file: &ElfFile, dynamic: &Dynamic, symbols: &DynamicSymbols<'_>) -> Result<Self> {
        if file.header.e_type == elf::ET_EXEC {
            let message = "is a program for a fixed address; patchelf and strip damage such programs once \
                           the names of their dynamic symbols were moved";
            let error = file.refuse(Kind::Unsupported, "ELF header", 0, message);
            return Err(error.hint(format!(
                "link it as a position-independent program (-pie), or {KEEP_FAT_HINT}"
            )));
        }
        let Some((table, section)) = symbols.section else { return Err(missing_import(file)) };
        let strings = usize::try_from(section.sh_link).unwrap_or(usize::MAX);
        let names = dynamic.string_table(file)?;
        let size = file.sections.get(strings).map(|strings| strings.sh_size);
        if names.last() != Some(&0) || size != Some(names.len() as u64) {
            let message = "DT_STRSZ is not the size of its section, or the last name does not end with a zero";
            return Err(file.refuse_section(Kind::Unsupported, strings, message));
        }
        let offset = spare_entry(file, dynamic)?;
        let (mut renamed, mut versions) = (Vec::new(), Vec::new());
        let mut registers = false;
        let mut new_name = names.len() as u64;
        for (name, replacement) in FUNCTIONS {
            for (index, item) in (0u64..).zip(file.symbols(table, section)?.iter()) {
                let (offset, symbol) = item?;
                if symbol.section().is_none() && is_named(&names, symbol.st_name, name) {
                    registers |= name == FUNCTIONS[0].0;
                    let st_name = u32::try_from(new_name)
                        .map_err(|_| file.refuse_section(Kind::Limit, strings, "exceeds 4 GiB"))?;
                    renamed.push((offset, Symbol { st_name, ..symbol }));
                    if let Some(table) = dynamic.value(elf::DT_VERSYM) {
                        let size = size_of::<u16>() as u64;
                        let at = file.offset_of(table.saturating_add(index * size), size);
                        versions.push(at.ok_or_else(|| {
                            let message = format!("the version of symbol {index} is not loaded");
                            file.refuse(Kind::Malformed, "dynamic symbols", 0, message)
                        })?);
                    }
                }
            }
            new_name += replacement.len() as u64 + 1;
        }
        if !registers {
            return Err(missing_import(file));
        }
        let entry = Dyn { d_tag: elf::DT_NEEDED, d_val: new_name };
        Ok(Self { strings, symbols: renamed, versions, needed: DynamicEntry { offset, entry } })
    }

    /// The size of the new table of names in bytes.
    pub fn strings_size(&self) -> u64 {
        self.needed.entry.d_val + NAME_AREA
    }

    /// The new table of names, which begins with the old one.
    pub fn strings(&self, file: &ElfFile, library: &str) -> Result<Content> {
        let mut added = Vec::new();
        for name in FUNCTIONS.map(|(_, name)| name).into_iter().chain([library]) {
            added.extend_from_slice(name.as_bytes());
            added.push(0);
        }
        let section = &file.sections[self.strings];
        let room = self.strings_size() - section.sh_size;
        let Some(padding) = room.checked_sub(added.len() as u64) else {
            let message = format!("{library} does not fit into {NAME_AREA} bytes");
            let error = file.refuse_section(Kind::Limit, self.strings, message);
            return Err(error.hint("shorten the paths in the wheel"));
        };
        let before = file.content().slice(section.sh_offset..section.file_end())?;
        Ok(Content::concat(&[before, Content::of_bytes(added), Content::zeros(padding)]))
    }

    /// The bytes that change in their place, by offset.
    pub fn patches(&self) -> impl Iterator<Item = (u64, Vec<u8>)> {
        let symbols = self.symbols.iter().map(|(offset, symbol)| (*offset, symbol.to_bytes()));
        let versions = self.versions.iter().map(|at| (*at, VERSION_NONE.to_le_bytes().to_vec()));
        symbols.chain(versions)
    }
}

fn missing_import(file: &ElfFile) -> Error {
    let message = format!("has wrappers, but does not import {}", FUNCTIONS[0].0);
    let error = file.refuse(Kind::Unsupported, "dynamic symbols", 0, message);
    error.hint(
        "it registers its device code in another way, so it cannot be made for every HIP runtime",
    )
}

fn is_named(names: &[u8], start: u32, name: &str) -> bool {
    let rest = usize::try_from(start).ok().and_then(|start| names.get(start..));
    let rest = rest.and_then(|rest| rest.strip_prefix(name.as_bytes()));
    rest.is_some_and(|rest| rest.first() == Some(&0))
}

/// The offset of a dynamic entry that may be overwritten: the first `DT_NULL`, if another follows it, or
/// `DT_RELACOUNT`.
fn spare_entry(file: &ElfFile, dynamic: &Dynamic) -> Result<u64> {
    let segment = file.segment(elf::PT_DYNAMIC).map_or(0..0, |it| it.p_offset..it.file_end());
    let end = segment.start + dynamic.entries.len() as u64 * Dyn::SIZE;
    let spare = end..end + 2 * Dyn::SIZE;
    if spare.end <= segment.end && super::is_zero(file, spare)? {
        return Ok(end);
    }
    let mut entries = dynamic.entries.iter();
    let count = entries.find(|item| item.entry.d_tag == elf::DT_RELACOUNT);
    count.map(|item| item.offset).ok_or_else(|| {
        let message = "has no spare entry for the library that registers wrappers";
        let error = file.refuse(Kind::Unsupported, "dynamic section", segment.start, message);
        error.hint(format!("link it without packed relative relocations, or {KEEP_FAT_HINT}"))
    })
}
