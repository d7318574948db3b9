//! The header tables of an ELF file, field by field, and digests of its parts: what an account of the
//! bytes of a binary goes by.
//!
//! Refused: more entries than the ELF header can count, and tables that lie outside of the file.

use std::ops::Range;

use object::elf::{self, FileHeader64, ProgramHeader64, SectionHeader64};
use object::pod::{self, Pod};
use object::read::elf::SectionHeader as _;
use rockpack_base::content::Content;
use rockpack_base::error::{Error, Result};
use rockpack_base::formats::marker;

use super::digest::Sha;
use super::elf_file::NAMES_LIMIT;

/// The byte order of x86-64.
pub(in crate::verify) use object::LittleEndian as LE;

pub(in crate::verify) type FileHeader = FileHeader64<LE>;
pub(in crate::verify) type Segment = ProgramHeader64<LE>;
pub(in crate::verify) type SectionRow = SectionHeader64<LE>;

/// Bytes of the ELF header.
pub(in crate::verify) const FILE_HEADER: u64 = 64;
/// Bytes of a program header.
pub(in crate::verify) const SEGMENT: u64 = 56;
/// Bytes of a section header.
pub(in crate::verify) const SECTION: u64 = 64;

/// The longest table of headers: as many entries as the ELF header can count.
const TABLE_LIMIT: u64 = 65536 * SECTION;

/// The longest name of a section that messages show, in bytes.
const SHOWN: usize = 64;

/// Most parts of a file that digests are kept of.
const MOST_PARTS: usize = 512;

/// The header tables of an ELF file.
#[derive(Debug, Clone)]
pub(in crate::verify) struct Tables {
    pub(in crate::verify) header: FileHeader,
    pub(in crate::verify) segments: Vec<Segment>,
    pub(in crate::verify) sections: Vec<SectionRow>,
}

/// A part of a file, as messages call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::verify) struct Part {
    pub(in crate::verify) name: String,
    pub(in crate::verify) range: Range<u64>,
    pub(in crate::verify) sha256: Sha,
}

/// The form of an installed binary whose device code was taken out: all that an account of its bytes
/// needs beside the digest of the whole.
#[derive(Debug, Clone)]
pub(in crate::verify) struct Shape {
    pub(in crate::verify) tables: Tables,
    /// The bytes of its reference to kernel archives.
    pub(in crate::verify) marker: Vec<u8>,
    /// The headers and sections of the file, as many as are told apart.
    pub(in crate::verify) parts: Vec<Part>,
}

impl Tables {
    pub(in crate::verify) fn read(content: &Content) -> Result<Self> {
        let header: FileHeader = record(&content.read_array::<64>(0)?)?;
        let segments = table(content, header.e_phoff.get(LE), header.e_phnum.get(LE), SEGMENT)?;
        let sections = table(content, header.e_shoff.get(LE), header.e_shnum.get(LE), SECTION)?;
        Ok(Self { header, segments, sections })
    }

    /// The index of the section with the names of the others.
    pub(in crate::verify) fn names_index(&self) -> usize {
        usize::from(self.header.e_shstrndx.get(LE).0)
    }

    /// The names of the sections, one zero behind the other.
    pub(in crate::verify) fn names(&self, content: &Content) -> Result<Vec<u8>> {
        let Some(section) = self.sections.get(self.names_index()) else { return Ok(Vec::new()) };
        content.read_vec(bytes_of(section), NAMES_LIMIT, "section name table")
    }

    /// The index of the one section called `name`.
    pub(in crate::verify) fn index_of(&self, name: &str, names: &[u8]) -> Option<usize> {
        self.sections.iter().position(|section| name_of(section, names) == name.as_bytes())
    }

    /// The bytes of the table of program headers.
    pub(in crate::verify) fn segments_in_file(&self) -> Range<u64> {
        let start = self.header.e_phoff.get(LE);
        start..start.saturating_add(self.segments.len() as u64 * SEGMENT)
    }

    /// The bytes of the table of section headers.
    pub(in crate::verify) fn sections_in_file(&self) -> Range<u64> {
        let start = self.header.e_shoff.get(LE);
        start..start.saturating_add(self.sections.len() as u64 * SECTION)
    }
}

impl Shape {
    /// The form of `content`, whose reference to kernel archives is said to lie in `marker`.
    pub(in crate::verify) fn read(content: &Content, marker: Range<u64>) -> Result<Self> {
        let tables = Tables::read(content)?;
        let marker = content.read_vec(marker, marker::LIMIT as u64, "marker")?;
        let parts = parts(content, &tables)?;
        Ok(Self { tables, marker, parts })
    }
}

/// The headers and sections of `content`, as far as they have no more bytes together than twice the file.
fn parts(content: &Content, tables: &Tables) -> Result<Vec<Part>> {
    let names = tables.names(content)?;
    let headers = [
        ("the ELF header".to_owned(), 0..FILE_HEADER),
        ("the program headers".to_owned(), tables.segments_in_file()),
        ("the section headers".to_owned(), tables.sections_in_file()),
    ];
    let sections = tables
        .sections
        .iter()
        .filter(|section| is_in_file(section))
        .map(|section| (shown(section, &names), bytes_of(section)));
    let mut left = content.len().saturating_mul(2);
    let mut parts = Vec::new();
    for (name, range) in headers.into_iter().chain(sections).take(MOST_PARTS) {
        let len = range.end.saturating_sub(range.start);
        let Some(rest) = left.checked_sub(len).filter(|_| range.end <= content.len()) else {
            continue;
        };
        left = rest;
        let sha256 = content.slice(range.clone())?.sha256()?;
        parts.push(Part { name, range, sha256 });
    }
    Ok(parts)
}

fn shown(section: &SectionRow, names: &[u8]) -> String {
    let name = name_of(section, names);
    String::from_utf8_lossy(name.get(..SHOWN).unwrap_or(name)).into_owned()
}

/// The name of a section, without the zero at its end.
pub(in crate::verify) fn name_of<'n>(section: &SectionRow, names: &'n [u8]) -> &'n [u8] {
    let at = usize::try_from(section.sh_name(LE)).unwrap_or(usize::MAX);
    let rest = names.get(at..).unwrap_or_default();
    rest.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Whether a section has bytes in the file.
pub(in crate::verify) fn is_in_file(section: &SectionRow) -> bool {
    let kind = section.sh_type(LE);
    kind != elf::SHT_NOBITS && kind != elf::SHT_NULL && section.sh_size(LE) > 0
}

/// Whether a section takes addresses of the process: a thread-local template without bytes does not.
pub(in crate::verify) fn takes_addresses(section: &SectionRow) -> bool {
    let template = section.sh_type(LE) == elf::SHT_NOBITS && has(section, elf::SHF_TLS);
    has(section, elf::SHF_ALLOC) && section.sh_size(LE) > 0 && !template
}

/// Whether a section has this flag.
pub(in crate::verify) fn has(section: &SectionRow, flag: elf::SectionFlags) -> bool {
    section.sh_flags(LE).0 & flag.0 != 0
}

/// The bytes of a section in the file.
pub(in crate::verify) fn bytes_of(section: &SectionRow) -> Range<u64> {
    let start = section.sh_offset(LE);
    start..start.saturating_add(section.sh_size(LE))
}

/// The addresses of a section.
pub(in crate::verify) fn addresses_of(section: &SectionRow) -> Range<u64> {
    let start = section.sh_addr(LE);
    start..start.saturating_add(section.sh_size(LE))
}

/// The record that `bytes` begin with.
pub(in crate::verify) fn record<T: Pod>(bytes: &[u8]) -> Result<T> {
    pod::from_bytes(bytes)
        .map(|(record, _)| *record)
        .map_err(|()| Error::truncated("a record of an ELF file is cut short"))
}

fn table<T: Pod>(content: &Content, start: u64, count: u16, size: u64) -> Result<Vec<T>> {
    let end = start.saturating_add(u64::from(count) * size);
    if count == 0 {
        return Ok(Vec::new());
    }
    let bytes = content.read_vec(start..end, TABLE_LIMIT, "table of headers")?;
    pod::slice_from_all_bytes(&bytes)
        .map(<[T]>::to_vec)
        .map_err(|()| Error::truncated("a table of headers is cut short"))
}
