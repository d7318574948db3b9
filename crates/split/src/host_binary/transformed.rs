//! Binaries whose device code is in kernel archives already.

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::{Kind, Result};
use rockpack_elf::hip_wrapper::{self, Magic};
use rockpack_elf::{ElfFile, FILE_HEADER_SIZE, Record, SECTION_HEADER_SIZE, SectionHeader, marker};

use super::apply::Splices;
use super::{MARKER_SECTION, WRAPPER_SECTION, check, symbols};

/// A transformed binary, made by rockpack or by another tool.
#[derive(Debug)]
pub struct Transformed {
    file: Box<ElfFile>,
    section: (usize, SectionHeader),
    marker: Vec<u8>,
    capacity: u64,
    co_indexes: Vec<u32>,
}

impl Transformed {
    pub fn content(&self) -> &Content {
        self.file.content()
    }

    /// The bytes of its reference to kernel archives; see [`marker::parse`].
    pub fn marker(&self) -> &[u8] {
        &self.marker
    }

    /// The index of each wrapper, in the order of their addresses.
    pub fn co_indexes(&self) -> &[u32] {
        &self.co_indexes
    }

    /// Whether the program headers are directly after the ELF header. Other tools move them to the end
    /// of the file, and `strip` breaks such files.
    pub fn program_headers_in_front(&self) -> bool {
        self.file.header.e_phoff == FILE_HEADER_SIZE
    }

    /// The most bytes that a reference can have without moving anything.
    pub fn marker_capacity(&self) -> u64 {
        self.capacity
    }

    /// The binary with another reference.
    pub fn rewrite(&self, marker: &[u8]) -> Result<Content> {
        let (index, section) = self.section;
        let len = marker.len() as u64;
        if len == 0 || len > self.capacity {
            let message =
                format!("a marker of {len} bytes does not fit into {} bytes", self.capacity);
            return Err(self.file.refuse_section(Kind::Limit, index, message));
        }
        let mut splices = Splices::default();
        let mut bytes = marker.to_vec();
        bytes.resize(bytes.len().max(self.marker.len()), 0);
        splices.overwrite(section.sh_offset, bytes)?;
        let header = SectionHeader { sh_size: len, ..section };
        let at = self.file.header.e_shoff + index as u64 * SECTION_HEADER_SIZE;
        splices.overwrite(at, header.to_bytes())?;
        for (table_index, table) in symbols::symbol_tables(&self.file) {
            for item in self.file.symbols(table_index, &table)?.iter() {
                let (offset, mut symbol) = item?;
                if symbol.section() == Some(index) && symbol.st_size == section.sh_size {
                    symbol.st_size = len;
                    splices.overwrite(offset, symbol.to_bytes())?;
                }
            }
        }
        splices.apply(self.file.content())
    }
}

/// Reads a file that has signs of being transformed. Refuses contradicting signs, and files that cannot be
/// rewritten without other changes: sections that share bytes with others or with headers, and a marker that
/// is not loaded from its place.
pub fn read(file: ElfFile) -> Result<Transformed> {
    file.validate_sections()?;
    check::disjoint(&file, Kind::Malformed)?;
    let co_indexes = co_indexes(&file)?;
    let Some((index, section)) = file.sections_named(MARKER_SECTION).first().copied() else {
        let message = format!(
            "has wrappers or an empty section of device code, but no section {MARKER_SECTION}"
        );
        return Err(file.refuse(Kind::Malformed, "section headers", 0, message));
    };
    refuse_misplaced(&file, index, &section)?;
    let range = file.file_range(index, &section)?;
    let limit = marker::LIMIT as u64;
    let marker = file.content().read_vec(range, limit, MARKER_SECTION)?;
    let capacity = section.sh_size + slack(&file, &section)?;
    let (file, section) = (Box::new(file), (index, section));
    Ok(Transformed { file, section, marker, capacity, co_indexes })
}

fn refuse_misplaced(file: &ElfFile, index: usize, section: &SectionHeader) -> Result<()> {
    let content = section.sh_type == elf::SHT_PROGBITS && section.is_allocated();
    let offset = file.offset_of(section.sh_addr, section.sh_size);
    if content && offset == Some(section.sh_offset) {
        return Ok(());
    }
    let message = format!(
        "has type {:#x}, flags {:#x} and {:#x} bytes at offset {:#x}, but other bytes are loaded at {:#x}",
        section.sh_type.0, section.sh_flags.0, section.sh_size, section.sh_offset, section.sh_addr
    );
    let error = file.refuse_section(Kind::Malformed, index, message);
    Err(error.hint("the file is damaged: build it again from the fat binary"))
}

fn co_indexes(file: &ElfFile) -> Result<Vec<u32>> {
    let Some((index, section)) = file.sections_named(WRAPPER_SECTION).first().copied() else {
        let message =
            format!("has a reference to kernel archives, but no section {WRAPPER_SECTION}");
        return Err(file.refuse(Kind::Malformed, "section headers", 0, message));
    };
    let range = file.file_range(index, &section)?;
    let wrappers = hip_wrapper::parse(&file.content().slice(range)?)?;
    if let Some(fat) = wrappers.iter().find(|wrapper| wrapper.magic == Magic::Fat) {
        let offset = section.sh_offset + fat.offset;
        let message = "points to device code, although the device code of the binary was removed";
        return Err(file.refuse(Kind::Malformed, WRAPPER_SECTION, offset, message));
    }
    Ok(wrappers.iter().map(|wrapper| wrapper.co_index()).collect())
}

/// Zero bytes after the marker that are loaded with it and belong to no section or header table.
fn slack(file: &ElfFile, section: &SectionHeader) -> Result<u64> {
    let end = section.file_end();
    let load =
        file.loads().find(|(_, load)| load.p_offset <= section.sh_offset && end <= load.file_end());
    let Some((_, load)) = load else {
        return Ok(0);
    };
    let sections = file.sections.iter().filter(|other| other.is_in_file());
    let starts =
        sections.map(|other| other.sh_offset).chain(check::tables(file).map(|table| table.start));
    let next = starts.filter(|start| *start >= end).min().unwrap_or(u64::MAX);
    let longest = end.saturating_add(marker::LIMIT as u64 - section.sh_size);
    let limit = next.min(load.file_end()).min(longest).min(file.content().len());
    let bytes = file.content().read_vec(end..limit.max(end), marker::LIMIT as u64, "slack")?;
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    Ok(zeros as u64)
}
