//! Checks of the headers of a file that will be edited.

use object::elf;

use super::file::ElfFile;
use super::record::{ProgramHeader, SectionHeader};
use rockpack_core::error::{Error, Kind, Result};

/// Most faults of headers that are reported: a damaged table may have one per entry.
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

    /// Checks the ranges of sections only. `eu-strip` ends files before the end of the last segment, if no
    /// section covers the zeros there.
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
        if header.p_filesz > 0 && end.is_none_or(|end| end > self.content().len()) {
            let message = format!(
                "{:#x} bytes at {:#x} end outside of the file of {:#x} bytes",
                header.p_filesz,
                header.p_offset,
                self.content().len()
            );
            return Some(self.refuse_segment(Kind::Truncated, index, message));
        }
        let memory_end = header.p_vaddr.checked_add(header.p_memsz);
        if memory_end.is_none_or(|end| end > ADDRESS_LIMIT) {
            let message = format!("ends above address {ADDRESS_LIMIT:#x}");
            return Some(self.refuse_segment(Kind::Malformed, index, message));
        }
        if header.p_align > ADDRESS_LIMIT || header.p_align & header.p_align.wrapping_sub(1) != 0 {
            let message =
                format!("has the alignment {:#x}, which no load can have", header.p_align);
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
        if usize::try_from(section.sh_name).is_ok_and(|name| name >= self.names().len()) {
            let message = format!("has its name at {:#x}, outside of the names", section.sh_name);
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
