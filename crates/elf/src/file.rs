//! The headers of a file, their names, access to bytes through them, and their checks in a file that will be edited.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::ops::Range;

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};

use super::record::{FileHeader, ProgramHeader, Record, SectionHeader, Symbol};
use super::table::{RecordTable, string_at};

pub const FILE_HEADER_SIZE: u64 = FileHeader::SIZE;

/// Bytes up to and including `e_machine`, which identify a file.
const IDENTIFICATION: usize = 20;

/// Largest section table, in bytes: a million sections, many times the largest known objects (built with a
/// section per function).
const MAX_SECTION_TABLE: u64 = 64 << 20;

/// Largest section name table, in bytes. Real tables have a few hundred bytes. A table that also holds
/// the symbol names of a debug build stays far below this limit.
const MAX_SECTION_NAMES: u64 = 256 << 20;

/// Longest section name that is compared and shown, in bytes; the rest is cut off. Only objects with a
/// section per function have such long names, and rockpack looks for none of them.
const MAX_SECTION_NAME: usize = 4096;

/// Largest string table of symbols, in bytes. Kernel names need most: 30 MB in the largest known code object.
const MAX_STRINGS: u64 = 512 << 20;

/// An ELF64 little-endian file: its header tables, read completely.
#[derive(Debug, Clone)]
pub struct ElfFile {
    content: Content,
    pub header: FileHeader,
    pub program_headers: Vec<ProgramHeader>,
    /// The section headers; the first is the null section. Empty if the file has no section table.
    pub sections: Vec<SectionHeader>,
    /// Index of the section name table; zero without such a table.
    pub names_index: usize,
    pub names: Vec<u8>,
    /// Indexes of the load segments with bytes in the file, sorted by address.
    loads_by_address: Vec<usize>,
}

impl ElfFile {
    /// Reads the headers of `content`; `None` if it is not a little-endian ELF64 file for `machine`.
    pub fn read(content: &Content, machine: elf::Machine) -> Result<Option<Self>> {
        match FileHeader::read(content)?.filter(|header| header.e_machine == machine) {
            Some(header) => Self::with_header(content, header).map(Some),
            None => Ok(None),
        }
    }

    /// Reads the header tables and section names of `content`, whose file header is `header`.
    pub fn with_header(content: &Content, header: FileHeader) -> Result<Self> {
        let mut file = Self {
            content: content.clone(),
            header,
            program_headers: Vec::new(),
            sections: Vec::new(),
            names_index: 0,
            names: Vec::new(),
            loads_by_address: Vec::new(),
        };
        file.read_program_headers()?;
        file.read_sections()?;
        file.read_names()?;
        Ok(file)
    }

    fn read_program_headers(&mut self) -> Result<()> {
        let count = self.header.e_phnum;
        if count == 0 {
            return Ok(());
        }
        if count == elf::PN_XNUM {
            let message = "has 65535 or more program headers";
            return Err(self.refuse(Kind::Unsupported, "ELF header", 0, message));
        }
        self.check_entry_size("e_phentsize", self.header.e_phentsize, ProgramHeader::SIZE)?;
        let size = u64::from(count) * ProgramHeader::SIZE;
        self.program_headers =
            RecordTable::new(&self.content, self.header.e_phoff, size)?.to_vec()?;
        let in_file = self.loads().filter(|(_, load)| load.p_filesz > 0);
        let mut by_address: Vec<usize> = in_file.map(|(index, _)| index).collect();
        // If several segments begin at one address, the first in the table counts: it is sorted last,
        // where `offset_of` looks.
        by_address.sort_by_key(|index| (self.program_headers[*index].p_vaddr, Reverse(*index)));
        self.loads_by_address = by_address;
        Ok(())
    }

    fn read_sections(&mut self) -> Result<()> {
        let start = self.header.e_shoff;
        if start == 0 {
            return Ok(());
        }
        self.check_entry_size("e_shentsize", self.header.e_shentsize, SectionHeader::SIZE)?;
        let mut count = u64::from(self.header.e_shnum);
        if count == 0 {
            // A count that does not fit into `e_shnum` is in `sh_size` of the null section.
            let first =
                RecordTable::<SectionHeader>::new(&self.content, start, SectionHeader::SIZE)?;
            count = first.to_vec()?.first().map_or(0, |null| null.sh_size);
        }
        let size = count.saturating_mul(SectionHeader::SIZE);
        if size > MAX_SECTION_TABLE {
            let message = format!("{count} sections exceed the limit of a million");
            return Err(self.refuse(Kind::Limit, "ELF header", 0, message));
        }
        self.sections = RecordTable::new(&self.content, start, size)?.to_vec()?;
        Ok(())
    }

    fn read_names(&mut self) -> Result<()> {
        let Some(null) = self.sections.first() else {
            return Ok(());
        };
        let index = match self.header.e_shstrndx {
            elf::SHN_XINDEX => null.sh_link,
            index => u32::from(index.0),
        };
        if index == 0 {
            return Ok(());
        }
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let Some(section) = self.sections.get(index).copied() else {
            let message = format!("e_shstrndx names section {index}, which does not exist");
            return Err(self.refuse(Kind::Malformed, "ELF header", 0, message));
        };
        let range = self.file_range(index, &section)?;
        self.names = self.content.read_vec(range, MAX_SECTION_NAMES, "section name table")?;
        self.names_index = index;
        Ok(())
    }

    fn check_entry_size(&self, field: &str, found: u16, expected: u64) -> Result<()> {
        if u64::from(found) == expected {
            return Ok(());
        }
        let message = format!("{field} is {found}, not {expected}");
        Err(self.refuse(Kind::Malformed, "ELF header", 0, message))
    }

    pub fn content(&self) -> &Content {
        &self.content
    }

    /// Whether sections can be identified by name: there is a name table, and some section has a name.
    pub fn has_section_names(&self) -> bool {
        self.names_index != 0
            && self.sections.iter().any(|section| !self.name_bytes(section).is_empty())
    }

    /// The bytes of a section's name, at most 4 KiB; empty if it has no name.
    pub fn name_bytes(&self, section: &SectionHeader) -> &[u8] {
        string_at(&self.names, section.sh_name, MAX_SECTION_NAME).unwrap_or_else(|| {
            let tail = usize::try_from(section.sh_name).ok().and_then(|at| self.names.get(at..));
            tail.and_then(|tail| tail.get(..MAX_SECTION_NAME)).unwrap_or_default()
        })
    }

    /// A section's name, for messages.
    pub fn name(&self, section: &SectionHeader) -> Cow<'_, str> {
        String::from_utf8_lossy(self.name_bytes(section))
    }

    pub fn sections_named(&self, name: &str) -> Vec<(usize, SectionHeader)> {
        let all = self.sections.iter().copied().enumerate().skip(1);
        let named = all.filter(|(_, section)| {
            string_at(&self.names, section.sh_name, name.len()) == Some(name.as_bytes())
        });
        named.collect()
    }

    /// The load segments with their indexes among the program headers, in table order.
    pub fn loads(&self) -> impl Iterator<Item = (usize, &ProgramHeader)> {
        let all = self.program_headers.iter().enumerate();
        all.filter(|(_, header)| header.is_load())
    }

    /// The first program header of type `p_type`; `None` if the file has no such segment.
    pub fn segment(&self, p_type: elf::ProgramType) -> Option<&ProgramHeader> {
        self.program_headers.iter().find(|header| header.p_type == p_type)
    }

    /// Offset in the file of the `len` bytes at address `start`; `None` if they are not loaded from the file.
    /// Segments of valid files do not overlap, so the last one that begins at or before `start` decides.
    pub fn offset_of(&self, start: u64, len: u64) -> Option<u64> {
        let end = start.checked_add(len)?;
        let loads = &self.loads_by_address;
        let behind = loads.partition_point(|index| self.program_headers[*index].p_vaddr <= start);
        let load = &self.program_headers[*loads.get(behind.checked_sub(1)?)?];
        let loaded_end = load.p_vaddr.checked_add(load.p_filesz)?;
        let skip = start - load.p_vaddr;
        (end <= loaded_end).then(|| load.p_offset.checked_add(skip)).flatten()
    }

    /// The range of a section's bytes in the file. Fails if the section reaches beyond the end of the file.
    pub fn file_range(&self, index: usize, section: &SectionHeader) -> Result<Range<u64>> {
        let end = section.sh_offset.checked_add(section.sh_size);
        let Some(end) = end.filter(|end| *end <= self.content.len()) else {
            let message = format!(
                "section {index} of {:#x} bytes at {:#x} ends outside of the file of {:#x} bytes",
                section.sh_size,
                section.sh_offset,
                self.content.len()
            );
            return Err(self.refuse_section(Kind::Truncated, index, message));
        };
        Ok(section.sh_offset..end)
    }

    /// Reads the string table section that `section` links to.
    pub fn linked_strings(&self, section: &SectionHeader) -> Result<Vec<u8>> {
        let index = usize::try_from(section.sh_link).unwrap_or(usize::MAX);
        let Some(strings) = self.sections.get(index) else {
            let message =
                format!("a table names section {index} for its strings, which does not exist");
            let place = section.sh_offset;
            return Err(self.refuse(Kind::Malformed, "section headers", place, message));
        };
        let range = self.file_range(index, strings)?;
        self.content.read_vec(range, MAX_STRINGS, "string table")
    }

    pub fn symbols(&self, index: usize, section: &SectionHeader) -> Result<RecordTable<Symbol>> {
        let range = self.file_range(index, section)?;
        RecordTable::new(&self.content, range.start, range.end - range.start)
    }

    /// Makes an error about `structure` at `offset` of this file.
    pub fn refuse(
        &self,
        kind: Kind,
        structure: impl Into<String>,
        offset: u64,
        message: impl Into<String>,
    ) -> Error {
        let place = self.content.place(offset.min(self.content.len()));
        Error::new(kind, message).structure(structure).at(&place)
    }

    /// Makes an error about the header of section `index`.
    pub fn refuse_section(&self, kind: Kind, index: usize, message: impl Into<String>) -> Error {
        let header = self.sections.get(index);
        let name = header.map(|header| self.name(header)).filter(|name| !name.is_empty());
        let structure = name.map_or("section header".to_owned(), Cow::into_owned);
        let skip = (index as u64).saturating_mul(SectionHeader::SIZE);
        let offset = self.header.e_shoff.saturating_add(skip);
        self.refuse(kind, structure, offset, message)
    }

    pub fn refuse_segment(&self, kind: Kind, index: usize, message: impl Into<String>) -> Error {
        let skip = (index as u64).saturating_mul(ProgramHeader::SIZE);
        let offset = self.header.e_phoff.saturating_add(skip);
        self.refuse(kind, "program header", offset, message)
    }
}

impl FileHeader {
    /// Reads the header of `content`; `None` if it is not a little-endian ELF64 file. Fails if the file
    /// ends inside the header.
    pub fn read(content: &Content) -> Result<Option<Self>> {
        if content.len() < IDENTIFICATION as u64 {
            return Ok(None);
        }
        let start: [u8; IDENTIFICATION] = content.read_array(0)?;
        let mut bytes = [0; size_of::<<FileHeader as Record>::Raw>()];
        bytes[..IDENTIFICATION].copy_from_slice(&start);
        if !parse_header(&bytes)?.is_supported() {
            return Ok(None);
        }
        if content.len() < FILE_HEADER_SIZE {
            let message = format!("the file ends after {} bytes", content.len());
            let error = Error::truncated(message).structure("ELF header");
            return Err(error.at(&content.place(0)));
        }
        content.read_at(0, &mut bytes)?;
        parse_header(&bytes).map(Some)
    }
}

fn parse_header(bytes: &[u8]) -> Result<FileHeader> {
    let (raw, _) = object::pod::from_bytes(bytes).map_err(|()| Error::bug("header buffer"))?;
    Ok(FileHeader::from_raw(raw))
}

/// Maximum number of faults of headers that are reported: a damaged table may have one per entry.
const MAX_FAULTS: usize = 16;

/// End of the user half of the x86-64 address space; nothing above it can be loaded. The limit also keeps
/// sums of addresses and sizes far from overflow.
const ADDRESS_LIMIT: u64 = 1 << 47;

impl ElfFile {
    /// Checks that all ranges lie inside the file and the address space of x86-64, so that later
    /// arithmetic on them cannot overflow.
    pub fn validate(&self) -> Result<()> {
        let segments = self
            .program_headers
            .iter()
            .enumerate()
            .filter_map(|(index, header)| self.segment_fault(index, header));
        let faults = segments.chain(self.section_faults()).take(MAX_FAULTS).collect();
        Error::gather(faults).map_or(Ok(()), Err)
    }

    /// Checks the ranges of sections only: `eu-strip` truncates the zeros at the end of the last segment if no section
    /// covers them.
    pub fn validate_sections(&self) -> Result<()> {
        let faults = self.section_faults().take(MAX_FAULTS).collect();
        Error::gather(faults).map_or(Ok(()), Err)
    }

    fn section_faults(&self) -> impl Iterator<Item = Error> {
        let sections = self.sections.iter().enumerate().skip(1);
        let faults = sections.filter_map(|(index, section)| self.section_fault(index, section));
        self.null_fault().into_iter().chain(faults)
    }

    /// Checks that the first section is the null section. Its size, link and info may hold counts that do not
    /// fit into the file header.
    fn null_fault(&self) -> Option<Error> {
        let null = self.sections.first()?;
        let is_null = null.sh_type == elf::SHT_NULL && null.sh_flags.0 == 0;
        (!is_null).then(|| {
            let message = format!(
                "the first has type {:#x} and flags {:#x}, not those of the null section",
                null.sh_type.0, null.sh_flags.0
            );
            let error = self.refuse_section(Kind::Malformed, 0, message);
            error.hint("the file is damaged: build it or copy it again")
        })
    }

    fn segment_fault(&self, index: usize, header: &ProgramHeader) -> Option<Error> {
        let end = header.p_offset.checked_add(header.p_filesz);
        if header.p_filesz > 0 && end.is_none_or(|end| end > self.content.len()) {
            let message = format!(
                "{:#x} bytes at {:#x} end outside of the file of {:#x} bytes",
                header.p_filesz,
                header.p_offset,
                self.content.len()
            );
            return Some(self.refuse_segment(Kind::Truncated, index, message));
        }
        let memory_end = header.p_vaddr.checked_add(header.p_memsz);
        if memory_end.is_none_or(|end| end > ADDRESS_LIMIT) {
            let message = format!("ends above address {ADDRESS_LIMIT:#x}");
            return Some(self.refuse_segment(Kind::Malformed, index, message));
        }
        if header.p_align > ADDRESS_LIMIT || header.p_align & header.p_align.wrapping_sub(1) != 0 {
            let message = format!(
                "has the alignment {:#x}, which a load segment cannot have",
                header.p_align
            );
            return Some(self.refuse_segment(Kind::Malformed, index, message));
        }
        None
    }

    fn section_fault(&self, index: usize, section: &SectionHeader) -> Option<Error> {
        if section.is_in_file()
            && let Err(error) = self.file_range(index, section)
        {
            return Some(error);
        }
        let memory_end = section.sh_addr.checked_add(section.sh_size);
        if section.is_allocated() && memory_end.is_none_or(|end| end > ADDRESS_LIMIT) {
            let message = format!("ends above address {ADDRESS_LIMIT:#x}");
            return Some(self.refuse_section(Kind::Malformed, index, message));
        }
        if usize::try_from(section.sh_name).is_ok_and(|name| name >= self.names.len()) {
            let message =
                format!("has its name at {:#x}, outside the section name table", section.sh_name);
            return Some(self.refuse_section(Kind::Malformed, index, message));
        }
        let align = section.sh_addralign;
        if align > ADDRESS_LIMIT || align & align.wrapping_sub(1) != 0 {
            let message = format!("has the alignment {align:#x}");
            return Some(self.refuse_section(Kind::Malformed, index, message));
        }
        None
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
