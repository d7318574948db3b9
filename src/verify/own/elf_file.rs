//! A host ELF while it is read through the `object` crate: its sections by their headers.
//!
//! `object` keeps what it read, each range and each name that it was asked for, until the file is done:
//! it must not be asked for what many headers or entries say of their own.
//!
//! It refuses two sections with the same sought name, and sections of one kind that have
//! more bytes together than the file.

use std::cell::Cell;
use std::io::{self, Read, Seek, SeekFrom};
use std::rc::Rc;

use object::elf::{self, FileHeader64, SectionHeader64};
use object::read::elf::{FileHeader, SectionHeader, SectionTable};
use object::{LittleEndian, ReadCache};
use rockpack_base::content::Content;
use rockpack_base::error::{Error, Result};

/// Longest table of the names of sections.
const NAMES_LIMIT: u64 = 256 << 20;

/// A section's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verify) struct Section {
    pub(in crate::verify) address: u64,
    pub(in crate::verify) size: u64,
    /// File offset, or `None` for a section without file content.
    pub(in crate::verify) offset: Option<u64>,
}

pub(in crate::verify) type ElfCache = ReadCache<ContentCursor>;
type ElfHeader = FileHeader64<LittleEndian>;
type Sections<'a> = SectionTable<'a, ElfHeader, &'a ElfCache>;

/// The file while it is read.
pub(in crate::verify) struct HostElfFile<'a> {
    pub(in crate::verify) content: &'a Content,
    pub(in crate::verify) cache: &'a ElfCache,
    pub(in crate::verify) header: &'a ElfHeader,
    pub(in crate::verify) sections: Sections<'a>,
    /// The table of the names of sections.
    pub(in crate::verify) names: Vec<u8>,
}

/// Calls `read` with the linked host ELF `content`; `None` for other machines than x86-64, and for object files.
pub(super) fn with_file<T>(
    content: &Content,
    read: impl FnOnce(&HostElfFile<'_>) -> Result<T>,
) -> Result<Option<T>> {
    if content.len() < 64 {
        return Ok(None);
    }
    let ident: [u8; 20] = content.read_array(0)?;
    let (kind, machine) = (u16_at(&ident, 16), u16_at(&ident, 18));
    let linked = [elf::ET_EXEC.0, elf::ET_DYN.0].contains(&kind);
    if !ident.starts_with(b"\x7fELF\x02\x01") || machine != elf::EM_X86_64.0 || !linked {
        return Ok(None);
    }
    let cursor = ContentCursor { content: content.clone(), position: 0, failed: Failed::default() };
    let failed = Rc::clone(&cursor.failed);
    let found = parse(content, cursor, read);
    // `object` takes what cannot be read for what is not there: a fat binary for a plain one.
    failed.take().map_or(found.map(Some), Err)
}

fn parse<T>(
    content: &Content,
    cursor: ContentCursor,
    read: impl FnOnce(&HostElfFile<'_>) -> Result<T>,
) -> Result<T> {
    let cache = ReadCache::new(cursor);
    let header = ElfHeader::parse(&cache).map_err(|error| fault(content, error))?;
    let sections = header.sections(LittleEndian, &cache).map_err(|error| fault(content, error))?;
    let names = names(content, header, &sections, &cache)?;
    read(&HostElfFile { content, cache: &cache, header, sections, names })
}

/// The table of section names; empty without one.
fn names(
    content: &Content,
    header: &ElfHeader,
    sections: &Sections<'_>,
    cache: &ElfCache,
) -> Result<Vec<u8>> {
    if sections.is_empty() {
        return Ok(Vec::new());
    }
    let index =
        header.section_strings_index(LittleEndian, cache).map_err(|error| fault(content, error))?;
    let table = sections.section(index).ok().and_then(|table| table.file_range(LittleEndian));
    let (offset, size) = table.unwrap_or_default();
    content.read_vec(offset..offset.saturating_add(size), NAMES_LIMIT, "section name table")
}

pub(in crate::verify) fn fault(content: &Content, error: object::Error) -> Error {
    Error::malformed("cannot be read as an ELF file").cause(error).at(&content.place(0))
}

/// The little-endian number at `at`, which must be inside of `bytes`.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

impl<'a> HostElfFile<'a> {
    /// The one section of that name. Of two, nobody can tell which is meant.
    pub(in crate::verify) fn section(&self, name: &str) -> Result<Option<Section>> {
        let mut found = self.sections.iter().filter(|header| self.is_named(header, name));
        let Some(header) = found.next() else {
            return Ok(None);
        };
        if found.next().is_some() {
            let message = format!("there is more than one section {name}");
            return Err(Error::unsupported(message).at(&self.content.place(0)));
        }
        Ok(Some(Section {
            address: header.sh_addr(LittleEndian),
            size: header.sh_size(LittleEndian),
            offset: header.file_range(LittleEndian).map(|(offset, _)| offset),
        }))
    }

    /// Whether that is the name of the section; any other may be long, and those of many sections the
    /// ends of one, so that none is looked for.
    fn is_named(&self, header: &SectionHeader64<LittleEndian>, name: &str) -> bool {
        let at = usize::try_from(header.sh_name(LittleEndian)).ok();
        let rest = at.and_then(|at| self.names.get(at..)?.strip_prefix(name.as_bytes()));
        rest.is_some_and(|rest| rest.first() == Some(&0))
    }

    /// Takes `size` from the bytes that are `left` of the file. Sections of one kind are read whole and do
    /// not overlap, so that their sizes cannot exceed the file's.
    pub(in crate::verify) fn take(&self, left: &mut u64, size: u64, what: &str) -> Result<()> {
        *left = left.checked_sub(size).ok_or_else(|| {
            let message = format!("{what} have more bytes together than the file");
            let hint = "no linker writes such sections: build the file or copy it again";
            Error::malformed(message).at(&self.content.place(0)).hint(hint)
        })?;
        Ok(())
    }
}

/// `Read + Seek` over content, as the `object` crate's cache wants it.
pub(in crate::verify) struct ContentCursor {
    content: Content,
    position: u64,
    failed: Failed,
}

/// The first reading that failed.
type Failed = Rc<Cell<Option<Error>>>;

impl Read for ContentCursor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.content.len().saturating_sub(self.position);
        let len = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if let Err(error) = self.content.read_at(self.position, &mut buffer[..len]) {
            let first = self.failed.take().unwrap_or(error);
            self.failed.set(Some(first));
            return Err(io::ErrorKind::Other.into());
        }
        self.position += len as u64;
        Ok(len)
    }
}

impl Seek for ContentCursor {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(delta) => self.content.len().checked_add_signed(delta),
            SeekFrom::Current(delta) => self.position.checked_add_signed(delta),
        };
        self.position = position.ok_or_else(|| io::Error::other("seek before the start"))?;
        Ok(self.position)
    }
}
