//! The section table of an ELF64 little-endian file, as far as names and places go.
//!
//! ```text
//! header 64 bytes: e_ident 16 | e_type u16 | e_machine u16 | … | e_shoff u64 at 40 | e_flags u32
//!                  at 48 | … | e_shentsize u16 at 58 | e_shnum u16 at 60 | e_shstrndx u16 at 62
//! section 64 bytes: sh_name u32 | sh_type u32 | sh_flags u64 | sh_addr u64 | sh_offset u64
//!                   | sh_size u64 | sh_link u32 | sh_info u32 | sh_addralign u64 | sh_entsize u64
//! ```
//!
//! Source: the ELF specification (gABI), with its rule that counts of 0xff00 and more stand in
//! section 0. Everything that a host binary needs beyond this is not here.

//!
//! Refused: a table or names that reach beyond the file, and tables above the limits here.

use crate::content::Content;
use crate::error::{Error, Result};

/// Longest section table that is read: a million sections, many times the largest known objects
/// (built with a section per function).
pub const TABLE_LIMIT: u64 = 64 << 20;

/// Longest table of names that is read. Kernel names are its largest use, 30 MB in the largest
/// known code object.
pub const NAMES_LIMIT: u64 = 512 << 20;

/// Length of a section header.
const SECTION_LEN: usize = 64;

/// What is read of the file header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileHeader {
    /// EI_OSABI.
    pub os_abi: u8,
    /// EI_ABIVERSION.
    pub abi_version: u8,
    /// e_type.
    pub file_type: u16,
    /// e_machine.
    pub machine: u16,
    /// e_flags.
    pub flags: u32,
    section_table: u64,
    section_count: u16,
    names_index: u16,
}

/// What is read of a section header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// sh_name: offset in the table of names.
    pub name: u32,
    /// sh_type.
    pub section_type: u32,
    /// sh_offset.
    pub offset: u64,
    /// sh_size.
    pub size: u64,
    /// sh_link.
    pub link: u32,
}

/// Reads the file header; `None` if `content` is no ELF64 little-endian file.
pub fn file_header(content: &Content) -> Result<Option<FileHeader>> {
    if content.len() < 64 {
        return Ok(None);
    }
    let bytes: [u8; 64] = content.read_array(0)?;
    if bytes[..6] != *b"\x7fELF\x02\x01" {
        return Ok(None);
    }
    Ok(Some(FileHeader {
        os_abi: bytes[7],
        abi_version: bytes[8],
        file_type: u16::from_le_bytes(field(&bytes, 16)),
        machine: u16::from_le_bytes(field(&bytes, 18)),
        flags: u32::from_le_bytes(field(&bytes, 48)),
        section_table: u64::from_le_bytes(field(&bytes, 40)),
        section_count: u16::from_le_bytes(field(&bytes, 60)),
        names_index: u16::from_le_bytes(field(&bytes, 62)),
    }))
}

/// Reads the section table; empty if there is none.
pub fn sections(content: &Content, header: &FileHeader) -> Result<Vec<Section>> {
    read_sections(content, header)
        .map_err(|e| e.structure("ELF section table").at(&content.place(0)))
}

fn read_sections(content: &Content, header: &FileHeader) -> Result<Vec<Section>> {
    if header.section_table == 0 {
        return Ok(Vec::new());
    }
    let first = section_of(&content.read_array::<SECTION_LEN>(header.section_table)?);
    let count = match header.section_count {
        0 => first.size,
        count => count.into(),
    };
    let end = count
        .checked_mul(SECTION_LEN as u64)
        .and_then(|len| header.section_table.checked_add(len))
        .ok_or_else(|| Error::malformed(format!("{count} sections")))?;
    let table = content.read_vec(header.section_table..end, TABLE_LIMIT, "the section table")?;
    Ok(table.as_chunks().0.iter().map(section_of).collect())
}

fn section_of(bytes: &[u8; SECTION_LEN]) -> Section {
    Section {
        name: u32::from_le_bytes(field(bytes, 0)),
        section_type: u32::from_le_bytes(field(bytes, 4)),
        offset: u64::from_le_bytes(field(bytes, 24)),
        size: u64::from_le_bytes(field(bytes, 32)),
        link: u32::from_le_bytes(field(bytes, 40)),
    }
}

/// `N` bytes of a fixed-length structure from `at` on, where the format has a field.
pub(super) fn field<const N: usize, const LEN: usize>(header: &[u8; LEN], at: usize) -> [u8; N] {
    std::array::from_fn(|index| header[at + index])
}

/// The bytes of a table of names.
pub fn names(content: &Content, section: &Section) -> Result<Vec<u8>> {
    let end = section.offset.saturating_add(section.size);
    content
        .read_vec(section.offset..end, NAMES_LIMIT, "a table of names")
        .map_err(|error| error.structure("ELF string table"))
}

/// The name at `offset` of a table of names, without its closing zero.
pub fn name_at(names: &[u8], offset: u32) -> Option<&[u8]> {
    let rest = names.get(usize::try_from(offset).ok()?..)?;
    rest.split(|byte| *byte == 0).next()
}

/// Whether the name of a section starts with one of `wanted`; an ELF file without a section table has none.
pub fn has_section(content: &Content, header: &FileHeader, wanted: &[&[u8]]) -> Result<bool> {
    let sections = sections(content, header)?;
    // With an index of 0xffff (SHN_XINDEX) the real one stands in section 0.
    let index = match (header.names_index, sections.first()) {
        (0xffff, Some(first)) => usize::try_from(first.link).unwrap_or(usize::MAX),
        (index, _) => index.into(),
    };
    let Some(table) = sections.get(index) else {
        return Ok(false);
    };
    let names = names(content, table)?;
    let is_wanted = |section: &Section| {
        let name = name_at(&names, section.name);
        name.is_some_and(|name| wanted.iter().any(|wanted| name.starts_with(wanted)))
    };
    Ok(sections.iter().any(is_wanted))
}
