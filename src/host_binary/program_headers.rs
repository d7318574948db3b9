//! The program headers of the transformed file.

use object::elf;

use super::PAGE;
use super::layout::{Behind, Layout, Split};
use crate::error::{Kind, Result};
use crate::formats::elf::{ElfFile, PROGRAM_HEADER_SIZE, ProgramHeader, SectionHeader};

/// The new table. Load segments stay in the order of their addresses.
pub fn rebuild(file: &ElfFile, layout: &Layout) -> Result<Vec<ProgramHeader>> {
    let mut table = Vec::with_capacity(file.program_headers.len() + 2);
    for (index, header) in file.program_headers.iter().enumerate() {
        let dropped = layout.room.drop_program_headers_entry && header.p_type == elf::PT_PHDR;
        match &layout.split {
            _ if dropped => {}
            Some(split) if index == layout.segment => {
                table.extend(divide(file, header, split));
            }
            _ => table.push(relocate(file, index, header, layout)?),
        }
    }
    let size = table.len() as u64 * PROGRAM_HEADER_SIZE;
    for header in &mut table {
        if header.p_type == elf::PT_PHDR {
            (header.p_filesz, header.p_memsz) = (size, size);
        }
        keep_congruent(header);
    }
    Ok(table)
}

/// Where a segment is no longer congruent modulo its large page size, the machine's page size is
/// what the loader needs; padding the file to 2 MiB would give back what the cut gained.
fn keep_congruent(header: &mut ProgramHeader) {
    let align = header.p_align.max(1);
    if header.is_load() && header.p_vaddr % align != header.p_offset % align {
        header.p_align = PAGE;
    }
}

/// The segment that held the device code: what is before the cut, and what is behind.
fn divide(file: &ElfFile, segment: &ProgramHeader, split: &Split) -> Vec<ProgramHeader> {
    let first_size = split.head_end - segment.p_vaddr;
    let memory = match split.behind {
        Behind::Zeroed => segment.p_memsz,
        Behind::Nothing | Behind::Content(_) => first_size,
    };
    let mut parts = vec![ProgramHeader { p_filesz: first_size, p_memsz: memory, ..*segment }];
    if let Behind::Content(start) = split.behind {
        let end = segment.p_vaddr.saturating_add(segment.p_filesz);
        let before = first_content(file, start, end) - start;
        let skip = start + before - segment.p_vaddr;
        parts.push(ProgramHeader {
            p_offset: split.cut.start + before,
            p_vaddr: start + before,
            p_paddr: segment.p_paddr.wrapping_add(skip),
            p_filesz: segment.p_filesz - skip,
            p_memsz: segment.p_memsz - skip,
            ..*segment
        });
    }
    for part in &mut parts {
        drop_needless_execution(file, part);
    }
    parts
}

/// Address of the first section with bytes in the page at `start` and before `end`, where those of the
/// segment end, or `start`. What is behind the cut begins
/// there, in the middle of a page, as linkers have it: of a segment that begins before its first
/// section `objcopy --only-keep-debug` says that notes in it cannot be allocated. Loaded are whole
/// pages all the same.
fn first_content(file: &ElfFile, start: u64, end: u64) -> u64 {
    let in_file = |section: &&SectionHeader| section.takes_addresses() && section.is_in_file();
    let sections = file.sections.iter().filter(in_file);
    let addresses = sections.map(|section| section.sh_addr);
    let page = start..end.min(start.saturating_add(PAGE));
    addresses.filter(|address| page.contains(address)).min().unwrap_or(start)
}

/// A part without code need not be executable, whatever the whole was.
fn drop_needless_execution(file: &ElfFile, part: &mut ProgramHeader) {
    let code = file.sections.iter().any(|section| {
        section.sh_flags.0 & elf::SHF_EXECINSTR.0 != 0
            && section.takes_addresses()
            && (part.p_vaddr..part.memory_end()).contains(&section.sh_addr)
    });
    if !code {
        part.p_flags = elf::ProgramFlags(part.p_flags.0 & !elf::PF_X.0);
    }
}

/// Any other header: follows the cut, and the sections that made room.
fn relocate(
    file: &ElfFile,
    index: usize,
    header: &ProgramHeader,
    layout: &Layout,
) -> Result<ProgramHeader> {
    let mut moved = *header;
    moved.p_offset = layout.new_offset(header.p_offset);
    if header.is_load() || header.p_filesz == 0 || header.p_type == elf::PT_PHDR {
        return Ok(moved);
    }
    let memory = header.p_vaddr..header.p_vaddr + header.p_filesz;
    let room = &layout.room;
    for section in room.shifted.iter().chain(&room.displaced) {
        let section_header = &file.sections[*section];
        let end = section_header.memory_end();
        if section_header.sh_addr >= memory.end || end <= memory.start {
            continue;
        }
        let inside = memory.start <= section_header.sh_addr && end <= memory.end;
        if !inside || room.displaced == Some(*section) {
            let message = "covers a section that has to make room for program headers";
            return Err(file.refuse_segment(Kind::Unsupported, index, message));
        }
        moved.p_offset = header.p_offset + room.shift;
        moved.p_vaddr = header.p_vaddr + room.shift;
        moved.p_paddr = header.p_paddr.wrapping_add(room.shift);
    }
    Ok(moved)
}
