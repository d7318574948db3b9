//! Updates symbols of moved or removed content, and finds the names of bundles.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::sync::Arc;

use object::elf;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_elf::{ElfFile, SectionHeader, Symbol};

use super::MAX_FAULTS;
use super::layout::{Layout, Replacement};
use super::wrappers::{Binding, BoundWrapper};

const BUNDLE_PREFIX: &[u8] = b"__hip_fatbin_";

/// Longest name of a bundle's symbol that is read; the compiler's are 29 bytes.
const MAX_NAME: u64 = 256;

#[derive(Debug, Clone, Copy)]
pub struct SymbolEdit {
    /// Offset of the symbol in the original file.
    pub offset: u64,
    pub symbol: Symbol,
    /// Whether the symbol now names the marker and takes its size.
    pub is_marker: bool,
}

pub fn plan(file: &ElfFile, layout: &Layout) -> Result<Vec<SymbolEdit>> {
    let editor = Editor { file, layout, moved: layout.moved(file) };
    let mut edits = Vec::new();
    let mut faults = Vec::new();
    'tables: for (index, section) in symbol_tables(file) {
        let is_dynamic = section.sh_type == elf::SHT_DYNSYM;
        for item in file.symbols(index, &section)?.iter() {
            let (offset, symbol) = item?;
            let edit = editor.edit(offset, symbol).and_then(|edit| match edit {
                None if is_dynamic => editor.refuse_removed_content(offset, &symbol).map(|()| None),
                edit => Ok(edit),
            });
            match edit {
                Ok(edit) => edits.extend(edit),
                Err(error) => faults.push(error),
            }
            if faults.len() == MAX_FAULTS {
                break 'tables;
            }
        }
    }
    Error::gather(faults).map_or(Ok(edits), Err)
}

/// The symbol tables of a file, with their indexes. Files whose sections share bytes are refused
/// before: such tables would be read again and again.
pub fn symbol_tables(file: &ElfFile) -> impl Iterator<Item = (usize, SectionHeader)> {
    let all = file.sections.iter().copied().enumerate();
    all.filter(|(_, section)| matches!(section.sh_type, elf::SHT_SYMTAB | elf::SHT_DYNSYM))
}

struct Editor<'a> {
    file: &'a ElfFile,
    layout: &'a Layout,
    /// The addresses of the sections that move.
    moved: Vec<Range<u64>>,
}

impl Editor<'_> {
    fn edit(&self, offset: u64, mut symbol: Symbol) -> Result<Option<SymbolEdit>> {
        let Self { file, layout, .. } = *self;
        let Some(section) = symbol.section() else {
            return Ok(None);
        };
        let value = symbol.st_value;
        if section == layout.fatbin {
            return self.code_symbol(offset, symbol).map(Some);
        }
        if value > layout.start && value < layout.end && are_addresses(file, section) {
            let message = format!("the symbol's value {value:#x} is inside the device code");
            return Err(file.refuse(Kind::Unsupported, "symbol", offset, message));
        }
        let Some(address) = layout.moved_to(file, section) else { return Ok(None) };
        let header = &file.sections[section];
        // Symbols such as `__ehdr_start` name a section without lying in it.
        if !(header.sh_addr..=header.memory_end()).contains(&value) {
            return Ok(None);
        }
        if layout.moved_into_head(section).is_some() && !symbol.is_section() {
            let message = "the symbol is in a section that moves into the space of the device code";
            return Err(file.refuse(Kind::Unsupported, "symbol", offset, message));
        }
        symbol.st_value = address + (value - header.sh_addr);
        Ok(Some(SymbolEdit { offset, symbol, is_marker: false }))
    }

    /// Fails if the value of an unchanged dynamic symbol points to content that moves or is removed: the dynamic linker
    /// ignores the section of a symbol.
    fn refuse_removed_content(&self, offset: u64, symbol: &Symbol) -> Result<()> {
        let Some(value) = symbol.address() else { return Ok(()) };
        // A symbol that ends where the device code begins belongs to the content before it.
        let in_code = value > self.layout.start && value < self.layout.end;
        if !in_code && !self.moved.iter().any(|range| range.contains(&value)) {
            return Ok(());
        }
        let message = format!(
            "the dynamic symbol's value {value:#x} is in bytes that move or are removed, outside \
             its section"
        );
        Err(self.file.refuse(Kind::Unsupported, "symbol", offset, message))
    }

    /// A symbol of device code. The section keeps its index and address, so only value and size change.
    fn code_symbol(&self, offset: u64, mut symbol: Symbol) -> Result<SymbolEdit> {
        let Self { file, layout, .. } = *self;
        let value = symbol.st_value;
        if !(layout.start..=layout.end).contains(&value) {
            let message = format!("the symbol's value {value:#x} is outside its section");
            return Err(file.refuse(Kind::Malformed, "symbol", offset, message));
        }
        symbol.st_value = layout.code_address(value).ok_or_else(|| {
            let message = format!("the symbol's value {value:#x} is inside a bundle");
            file.refuse(Kind::Unsupported, "symbol", offset, message)
        })?;
        let is_marker = matches!(layout.replacement, Replacement::Marker) && !symbol.is_section();
        symbol.st_size = symbol.st_size.min(layout.start + layout.area - symbol.st_value);
        Ok(SymbolEdit { offset, symbol, is_marker })
    }
}

/// Whether the values of a section's symbols are addresses; true if no section has the index `section`, as for
/// absolute symbols. Values of thread-local symbols are offsets in the template, and those of sections that are not
/// loaded have no meaning.
pub fn are_addresses(file: &ElfFile, section: usize) -> bool {
    let section = file.sections.get(section);
    section.is_none_or(|section| section.is_allocated() && !section.is_thread_local())
}

/// The names of bundles, by symbol and by address.
#[derive(Debug, Default)]
pub struct BundleNames {
    /// Names by address; `None` if an address has several.
    by_address: BTreeMap<u64, Option<Arc<str>>>,
    by_dynamic_index: BTreeMap<u32, Arc<str>>,
}

impl BundleNames {
    /// The name of a wrapper's bundle: the symbol of its relocation, or the only symbol at its target.
    pub fn of(&self, wrapper: &BoundWrapper) -> Option<Arc<str>> {
        if let Binding::Rela { symbol, .. } = wrapper.binding
            && let Some(name) = self.by_dynamic_index.get(&symbol)
        {
            return Some(name.clone());
        }
        self.by_address.get(&wrapper.target)?.clone()
    }
}

/// Reads the names of all symbols of section `fatbin` that name bundles.
pub fn bundle_names(file: &ElfFile, fatbin: usize) -> Result<BundleNames> {
    let mut names = BundleNames::default();
    for (index, section) in symbol_tables(file) {
        let dynamic = section.sh_type == elf::SHT_DYNSYM;
        for (position, item) in (0..).zip(file.symbols(index, &section)?.iter()) {
            let (offset, symbol) = item?;
            if symbol.section() != Some(fatbin) {
                continue;
            }
            let strings = usize::try_from(section.sh_link).unwrap_or(usize::MAX);
            let strings = file.sections.get(strings).filter(|strings| strings.is_in_file());
            let Some(strings) = strings else {
                let message = "the symbol table has no string table";
                return Err(file.refuse(Kind::Malformed, "symbol", offset, message));
            };
            let start = strings.sh_offset + u64::from(symbol.st_name);
            if start >= strings.file_end() {
                let message =
                    format!("the name {:#x} lies outside of the string table", symbol.st_name);
                return Err(file.refuse(Kind::Malformed, "symbol", offset, message));
            }
            let end = strings.file_end().min(start + MAX_NAME);
            let bytes = file.content().read_vec(start..end, MAX_NAME, "symbol name")?;
            let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            if !name.starts_with(BUNDLE_PREFIX) {
                continue;
            }
            let name: Arc<str> = String::from_utf8_lossy(name).into();
            if dynamic {
                names.by_dynamic_index.insert(position, name.clone());
            }
            match names.by_address.entry(symbol.st_value) {
                Entry::Vacant(place) => drop(place.insert(Some(name))),
                Entry::Occupied(mut known) if *known.get() != Some(name) => {
                    drop(known.insert(None))
                }
                Entry::Occupied(_) => {}
            }
        }
    }
    Ok(names)
}
