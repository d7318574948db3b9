//! The section headers of the transformed file, and where they and their names go.

use std::ops::Range;

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::{Kind, Result};
use rockpack_elf::{ElfFile, Record, SECTION_HEADER_SIZE, SectionHeader};

use super::bytes::{align_up, is_zero};
use super::fixed::MARKER_SECTION;
use super::layout::Layout;

/// The end of the file: kept bytes of the original, then the section names, then the table.
#[derive(Debug, Clone)]
pub struct Tail {
    /// End of the bytes that are kept of the original.
    pub keep_end: u64,
    /// Old tables within the kept bytes, to be cleared. Loaded tables stay: `eu-strip` puts tables behind the
    /// last section, where a segment may go on.
    pub stale: Vec<Range<u64>>,
    /// Offset of the names in the new file.
    pub names_offset: u64,
    /// Offset of the table in the new file.
    pub table_offset: u64,
    /// Length of the new file.
    pub file_end: u64,
}

impl Tail {
    /// Plans the end of the transformed file.
    pub fn plan(file: &ElfFile, layout: &Layout) -> Result<Self> {
        let names = &file.sections[file.names_index()];
        let table_start = file.header.e_shoff();
        let table_size = file.sections.len() as u64 * SECTION_HEADER_SIZE;
        let old = [names.sh_offset..names.file_end(), table_start..table_start + table_size];
        let content_end = content_end(file);
        let keep_end = if nothing_else_behind(file, content_end, &old)? {
            content_end
        } else {
            file.content().len()
        };
        let stale =
            old.into_iter().filter(|range| range.start < keep_end && !is_loaded(file, range));
        let names_offset = layout.new_offset(keep_end);
        let names_size = file.names().len() as u64 + MARKER_SECTION.len() as u64 + 1;
        let table_offset = align_up(names_offset + names_size, 8);
        Ok(Self {
            keep_end,
            stale: stale.collect(),
            names_offset,
            table_offset,
            file_end: table_offset + table_size,
        })
    }

    /// The names and the table as the last bytes of the file.
    pub fn content(&self, file: &ElfFile, headers: &[SectionHeader]) -> Content {
        let mut bytes = file.names().to_vec();
        bytes.extend_from_slice(MARKER_SECTION.as_bytes());
        let names_end = self.names_offset + bytes.len() as u64 + 1;
        let padding = 1 + self.table_offset - names_end;
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
    let names = file.names_index();
    let sections = file.sections.iter().enumerate();
    let section_ends = sections
        .filter(|(index, section)| *index != names && section.is_in_file())
        .map(|(_, section)| section.file_end());
    let segments = file.program_headers.iter().filter(|header| header.p_filesz > 0);
    section_ends.chain(segments.map(|header| header.file_end())).max().unwrap_or_default()
}

/// Whether nothing but zeros and the two old tables follows `start`. Other bytes, such as an
/// archive appended to a program, are kept where they are.
fn nothing_else_behind(file: &ElfFile, start: u64, old: &[Range<u64>; 2]) -> Result<bool> {
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

/// The new headers. The marker replaces `.hip_fatbin`: no section is added or removed, so no index changes.
/// `strip` renumbers sections without updating `.dynsym`, whose symbols of device code would name a wrong
/// section if the marker's header were at the end.
pub fn rebuild(
    file: &ElfFile,
    layout: &Layout,
    tail: &Tail,
    marker: u64,
) -> Result<Vec<SectionHeader>> {
    let mut headers: Vec<SectionHeader> = Vec::with_capacity(file.sections.len());
    for (index, section) in file.sections.iter().enumerate() {
        let mut header = *section;
        header.sh_offset = layout.new_offset(section.sh_offset);
        if let Some(address) = layout.moved_to(file, index) {
            header.sh_addr = address;
            header.sh_offset = match layout.displaced {
                Some((displaced, _)) if displaced == index => layout.head_offset(address),
                _ => section.sh_offset + layout.room.shift,
            };
        }
        headers.push(header);
    }
    headers[layout.fatbin] = SectionHeader {
        sh_name: u32::try_from(file.names().len()).map_err(|_| {
            let message = "the section names do not fit into 4 GiB";
            file.refuse_section(Kind::Limit, file.names_index(), message)
        })?,
        sh_flags: elf::SHF_ALLOC,
        sh_size: marker,
        sh_addralign: 1,
        ..file.sections[layout.fatbin]
    };
    let names = &mut headers[file.names_index()];
    names.sh_offset = tail.names_offset;
    names.sh_size += MARKER_SECTION.len() as u64 + 1;
    Ok(headers)
}
