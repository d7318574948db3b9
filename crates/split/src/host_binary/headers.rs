//! The program headers and section headers of the transformed file, and where the latter and their names go.

use std::ops::Range;

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::{Kind, Result};
use rockpack_elf::{
    ElfFile, PROGRAM_HEADER_SIZE, ProgramHeader, Record, SECTION_HEADER_SIZE, SectionHeader,
};

use super::layout::{Layout, Replacement, SegmentCut, SegmentTail, is_named, largest_alignment};
use super::make_room::{FILLERS, table_end};
use super::{FATBIN_SECTION, MARKER_SECTION, PAGE, align_up, is_filled_with, is_zero};

/// The new program headers, with load segments in the order of their addresses.
pub fn segments(file: &ElfFile, layout: &Layout) -> Result<Vec<ProgramHeader>> {
    let mut table = Vec::with_capacity(file.program_headers.len() + 2);
    for (index, header) in file.program_headers.iter().enumerate() {
        let dropped = layout.room.drop_program_headers_entry && header.p_type == elf::PT_PHDR;
        match &layout.split {
            _ if dropped => {}
            Some(split) if index == layout.segment => {
                table.extend(divide(file, layout, split)?);
            }
            _ => table.push(relocate(file, index, header, layout)?),
        }
    }
    let size = table.len() as u64 * PROGRAM_HEADER_SIZE;
    let least = largest_alignment(file, layout.fatbin);
    for header in &mut table {
        if header.p_type == elf::PT_PHDR {
            (header.p_filesz, header.p_memsz) = (size, size);
        }
        // The offset may no longer be congruent to the address modulo the large page size. The loader needs only
        // the machine's page size, or `least` if a section has a larger alignment; padding the file to 2 MiB would
        // give back the bytes that the cut gained.
        let align = header.p_align.max(1);
        if header.is_load() && header.p_vaddr % align != header.p_offset % align {
            header.p_align = align.min(least);
        }
    }
    Ok(table)
}

/// The parts of the segment that held the device code: before and after the cut.
fn divide(file: &ElfFile, layout: &Layout, split: &SegmentCut) -> Result<Vec<ProgramHeader>> {
    let segment = &file.program_headers[layout.segment];
    let first_size = split.head_end - segment.p_vaddr;
    let memory = match split.segment_tail {
        SegmentTail::Zeroed => segment.p_memsz,
        SegmentTail::Nothing | SegmentTail::Content(_) => first_size,
    };
    let mut parts = vec![ProgramHeader { p_filesz: first_size, p_memsz: memory, ..*segment }];
    if let SegmentTail::Content(start) = split.segment_tail {
        let before = first_content(file, layout, start)? - start;
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
    drop_needless_execution(file, &mut parts)?;
    Ok(parts)
}

/// Address of the first section with bytes in the page at `start`, or `start`. The segment after the cut
/// begins there, in the middle of a page, as linkers do it: if a segment begins before its first section,
/// `objcopy --only-keep-debug` reports that notes in it cannot be allocated. The loader maps whole pages
/// anyway. Bytes between the device code and that section are content too, unless they are zeros that no
/// header covers.
fn first_content(file: &ElfFile, layout: &Layout, start: u64) -> Result<u64> {
    let segment = &file.program_headers[layout.segment];
    let end = segment.p_vaddr.saturating_add(segment.p_filesz);
    let sections =
        file.sections.iter().filter(|section| section.takes_addresses() && section.is_in_file());
    let addresses = sections.map(|section| section.sh_addr);
    let page = start..end.min(start.saturating_add(PAGE));
    let first = addresses.filter(|address| page.contains(address)).min().unwrap_or(start);
    let code_end = layout.fatbin_in_file().end;
    let between = code_end..code_end + first.saturating_sub(layout.end);
    let nothing = !is_named(file, &between) && is_zero(file, between)?;
    Ok(if nothing { first } else { layout.end })
}

/// Makes a part of known data not executable if the code is in the other part. The flags of sections are not
/// enough: bytes of any other section that is loaded with code can be executed.
fn drop_needless_execution(file: &ElfFile, parts: &mut [ProgramHeader]) -> Result<()> {
    let is_code = |section: &SectionHeader| section.sh_flags.0 & elf::SHF_EXECINSTR.0 != 0;
    if !parts.iter().any(|part| sections_of(file, part).iter().any(is_code)) {
        return Ok(());
    }
    for part in parts {
        if part.p_flags.0 & elf::PF_W.0 == 0 && is_data(file, part)? {
            part.p_flags = elf::ProgramFlags(part.p_flags.0 & !elf::PF_X.0);
        }
    }
    Ok(())
}

fn sections_of(file: &ElfFile, part: &ProgramHeader) -> Vec<SectionHeader> {
    let range = part.p_vaddr..part.memory_end();
    let all = file.sections.iter().filter(|section| section.takes_addresses());
    let mut found: Vec<_> =
        all.filter(|section| range.contains(&section.sh_addr)).copied().collect();
    found.sort_by_key(|section| section.sh_addr);
    found
}

/// Whether a part has only headers, sections of known data, and between them zeros or the bytes that tools
/// write over moved sections.
fn is_data(file: &ElfFile, part: &ProgramHeader) -> Result<bool> {
    let sections = sections_of(file, part);
    if !sections.iter().all(|section| is_known_data(file, section)) {
        return Ok(false);
    }
    let mut at = part.p_vaddr;
    if file.offset_of(at, 1) == Some(0) {
        at = at.saturating_add(table_end(file.program_headers.len()));
    }
    let end = part.p_vaddr.saturating_add(part.p_filesz);
    let ranges = sections.iter().map(|section| section.sh_addr..section.memory_end());
    for range in ranges.chain(std::iter::once(end..end)) {
        let gap = range.start.saturating_sub(at);
        let bytes = file.offset_of(at, gap).map(|offset| offset..offset + gap);
        if gap > 0 && !bytes.map_or(Ok(false), |bytes| is_filled_with(file, bytes, &FILLERS))? {
            return Ok(false);
        }
        at = at.max(range.end);
    }
    Ok(true)
}

/// Whether a section is a table that linkers and compilers make, or constants: `.rodata` by its name has
/// no code that anyone calls.
fn is_known_data(file: &ElfFile, section: &SectionHeader) -> bool {
    const KINDS: [elf::SectionType; 13] = [
        elf::SHT_NOTE,
        elf::SHT_DYNSYM,
        elf::SHT_STRTAB,
        elf::SHT_HASH,
        elf::SHT_GNU_HASH,
        elf::SHT_GNU_VERSYM,
        elf::SHT_GNU_VERNEED,
        elf::SHT_GNU_VERDEF,
        elf::SHT_RELA,
        elf::SHT_RELR,
        elf::SHT_DYNAMIC,
        elf::SHT_INIT_ARRAY,
        elf::SHT_FINI_ARRAY,
    ];
    const NAMES: [&[u8]; 6] = [
        b".interp",
        b".rodata",
        b".eh_frame",
        b".eh_frame_hdr",
        b".gcc_except_table",
        FATBIN_SECTION.as_bytes(),
    ];
    let is_code = section.sh_flags.0 & elf::SHF_EXECINSTR.0 != 0;
    !is_code && (KINDS.contains(&section.sh_type) || NAMES.contains(&file.name_bytes(section)))
}

/// Segment types whose content may move to make room, because only headers point to it.
const MOVABLE: [elf::ProgramType; 3] = [elf::PT_NOTE, elf::PT_INTERP, elf::PT_GNU_PROPERTY];

/// Relocates any other header: it follows the cut and the sections that made room. Refuses one that covers
/// more than those sections, or whose type is not known to be movable.
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
    let room = &layout.room;
    if room.extra == 0 || header.p_offset >= room.front(file).end {
        return Ok(moved);
    }
    let movable = MOVABLE.contains(&header.p_type);
    // `patchelf` leaves headers of notes that it moved, which now point to nothing.
    let covers = |section: &SectionHeader| {
        section.sh_offset < header.file_end() && header.p_offset < section.file_end()
    };
    if movable && !room.moving().any(|index| covers(&file.sections[index])) {
        return Ok(moved);
    }
    let shifted = room.shifted.first().zip(room.shifted.last());
    let inside = shifted.is_some_and(|(first, last)| {
        let end = file.sections[*last].file_end();
        file.sections[*first].sh_offset <= header.p_offset && header.file_end() <= end
    });
    if !inside || !movable {
        let message = "covers a section that must move to make room for program headers";
        return Err(file.refuse_segment(Kind::Unsupported, index, message));
    }
    moved.p_offset = header.p_offset + room.shift;
    moved.p_vaddr = header.p_vaddr + room.shift;
    moved.p_paddr = header.p_paddr.wrapping_add(room.shift);
    Ok(moved)
}

/// The end of the file: kept bytes of the original, then the section names, then the table.
#[derive(Debug, Clone)]
pub struct Tail {
    /// End of the bytes that are kept of the original.
    pub keep_end: u64,
    /// Old tables within the kept bytes, to be cleared. Loaded tables stay: `eu-strip` puts section names and headers
    /// after the last section, where a segment may continue.
    pub stale: Vec<Range<u64>>,
    pub names: Vec<u8>,
    /// Their offset in the new file.
    pub names_offset: u64,
    /// Offset of the table in the new file.
    pub table_offset: u64,
    pub file_end: u64,
}

impl Tail {
    pub fn plan(file: &ElfFile, layout: &Layout) -> Result<Self> {
        let names = &file.sections[file.names_index];
        let table_start = file.header.e_shoff;
        let table_size = file.sections.len() as u64 * SECTION_HEADER_SIZE;
        let old = [names.sh_offset..names.file_end(), table_start..table_start + table_size];
        let content_end = content_end(file);
        let keep_end = if ends_with_tables(file, content_end, &old)? {
            content_end
        } else {
            file.content().len()
        };
        let stale = old
            .into_iter()
            .filter(|range| range.start < keep_end && !is_loaded(file, range))
            .collect();
        let names_offset = layout.new_offset(keep_end);
        let mut names = file.names.to_vec();
        if let Replacement::Marker = layout.replacement {
            names.extend_from_slice(MARKER_SECTION.as_bytes());
            names.push(0);
        }
        let table_offset = align_up(names_offset + names.len() as u64, 8);
        let file_end = table_offset + table_size;
        Ok(Self { keep_end, stale, names, names_offset, table_offset, file_end })
    }

    /// The names and the table as the last bytes of the file.
    pub fn content(&self, headers: &[SectionHeader]) -> Content {
        let mut bytes = self.names.clone();
        let padding = self.table_offset - self.names_offset - bytes.len() as u64;
        bytes.extend((0..padding).map(|_| 0));
        bytes.extend(headers.iter().flat_map(|header| header.to_bytes()));
        Content::of_bytes(bytes)
    }
}

fn is_loaded(file: &ElfFile, range: &Range<u64>) -> bool {
    let mut loads = file.loads().filter(|(_, load)| load.p_filesz > 0);
    loads.any(|(_, load)| load.p_offset < range.end && range.start < load.file_end())
}

/// End of everything except the section names and the section table.
fn content_end(file: &ElfFile) -> u64 {
    let names = file.names_index;
    let sections = file.sections.iter().enumerate();
    let section_ends = sections
        .filter(|(index, section)| *index != names && section.is_in_file())
        .map(|(_, section)| section.file_end());
    let segments = file.program_headers.iter().filter(|header| header.p_filesz > 0);
    section_ends.chain(segments.map(|header| header.file_end())).max().unwrap_or_default()
}

/// Whether nothing but zeros and the two old tables follows `start`. Other bytes, such as an
/// archive appended to a program, are kept where they are.
fn ends_with_tables(file: &ElfFile, start: u64, old: &[Range<u64>; 2]) -> Result<bool> {
    let mut old = old.clone();
    old.sort_by_key(|range| range.start);
    let mut at = start;
    for range in old {
        if !is_zero(file, at..range.start)? {
            return Ok(false);
        }
        at = at.max(range.end);
    }
    is_zero(file, at..file.content().len())
}

/// The new section headers, with `left` bytes in place of the device code. The marker replaces `.hip_fatbin`: no
/// section is added or removed, so no index changes. If the marker's header were at the end, symbols of device code in
/// `.dynsym` would refer to a wrong section after `strip`, which renumbers sections without updating `.dynsym`.
pub fn sections(
    file: &ElfFile,
    layout: &Layout,
    tail: &Tail,
    left: u64,
) -> Result<Vec<SectionHeader>> {
    let mut headers: Vec<SectionHeader> = Vec::with_capacity(file.sections.len());
    for (index, section) in file.sections.iter().enumerate() {
        let mut header = *section;
        header.sh_offset = layout.new_offset(section.sh_offset);
        if let Some(address) = layout.moved_to(file, index) {
            header.sh_addr = address;
            header.sh_offset = section.sh_offset + layout.room.shift;
            if let Some(displaced) = layout.moved_into_head(index) {
                (header.sh_offset, header.sh_size) = (layout.head_offset(address), displaced.size);
            }
        }
        headers.push(header);
    }
    let code = &mut headers[layout.fatbin];
    code.sh_size = left;
    if let Replacement::Marker = layout.replacement {
        code.sh_name = u32::try_from(file.names.len()).map_err(|_| {
            let message = "the section names do not fit into 4 GiB";
            file.refuse_section(Kind::Limit, file.names_index, message)
        })?;
        (code.sh_flags, code.sh_addralign) = (elf::SHF_ALLOC, 1);
    }
    let names = &mut headers[file.names_index];
    (names.sh_offset, names.sh_size) = (tail.names_offset, tail.names.len() as u64);
    Ok(headers)
}
