//! A linked host ELF file by its section headers.
//!
//! Refused: two sections of a name that is looked up, sections of one kind whose total size exceeds the file, and
//! numbers of headers that do not fit into the ELF header.

use std::ops::Range;

use object::LittleEndian as LE;
use object::elf::{self, FileHeader64, ProgramHeader64, SectionHeader64};
use object::pod::{self, Pod};
use object::read::elf::{FileHeader as _, SectionHeader as _};
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};

const NAMES_LIMIT: u64 = 256 << 20;

/// Bytes of a section name that are read.
const LONGEST_NAME: usize = 256;

const HEADER_LEN: u64 = 64;

/// Records that are read at once.
const AT_ONCE: usize = 4096;

pub(crate) type Segment = ProgramHeader64<LE>;

pub(crate) type SectionRow = SectionHeader64<LE>;

pub(super) struct HostElfFile<'a> {
    pub(super) content: &'a Content,
    pub(super) header: FileHeader64<LE>,
    pub(super) segments: Vec<Segment>,
    pub(super) sections: Vec<SectionRow>,
    pub(super) names: Vec<u8>,
}

/// Reads the headers of the linked host ELF `content`; `None` for other machines than x86-64, and for object
/// files.
pub(super) fn open(content: &Content) -> Result<Option<HostElfFile<'_>>> {
    if content.len() < HEADER_LEN {
        return Ok(None);
    }
    let headers: Vec<FileHeader64<LE>> = table(content, 0, 1)?;
    let Some(header) = headers.first().copied() else { return Ok(None) };
    let is_elf64 = pod::bytes_of(&header).starts_with(b"\x7fELF\x02\x01");
    let is_linked = [elf::ET_EXEC, elf::ET_DYN].contains(&header.e_type(LE));
    if !is_elf64 || !is_linked || header.e_machine(LE) != elf::EM_X86_64 {
        return Ok(None);
    }
    let (at, rows_at) = (header.e_phoff(LE), header.e_shoff(LE));
    let segments = if at == 0 { 0 } else { header.e_phnum(LE) };
    let sections = if rows_at == 0 { 0 } else { header.e_shnum(LE) };
    let is_known = header.is_supported()
        && segments != elf::PN_XNUM
        && (sections > 0 || rows_at == 0)
        && (segments == 0 || usize::from(header.e_phentsize(LE)) == size_of::<Segment>())
        && (sections == 0 || usize::from(header.e_shentsize(LE)) == size_of::<SectionRow>());
    if !is_known {
        let error = Error::malformed("cannot be read as an ELF file: its header is not supported");
        return Err(error.at(&content.place(0)));
    }
    let mut file = HostElfFile {
        content,
        header,
        segments: table(content, at, segments)?,
        sections: table(content, rows_at, sections)?,
        names: Vec::new(),
    };
    if let Some(names) = file.sections.get(file.names_index()) {
        file.names = content.read_vec(bytes_of(names), NAMES_LIMIT, "section name table")?;
    }
    Ok(Some(file))
}

fn table<T: Pod>(content: &Content, offset: u64, count: u16) -> Result<Vec<T>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let size = u64::from(count).saturating_mul(size_of::<T>() as u64);
    let bytes = content.read_vec(offset..offset.saturating_add(size), size, "table of headers")?;
    let rows = pod::slice_from_all_bytes(&bytes).map(<[T]>::to_vec);
    rows.map_err(|()| Error::bug("odd table of headers"))
}

/// The little-endian number at `at`, which must be inside of `bytes`.
pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    let (words, _) = bytes[at..].as_chunks::<8>();
    u64::from_le_bytes(words[0])
}

pub(super) fn has(section: &SectionRow, flag: elf::SectionFlags) -> bool {
    section.sh_flags(LE).0 & flag.0 != 0
}

pub(crate) fn addresses_of(section: &SectionRow) -> Range<u64> {
    let start = section.sh_addr(LE);
    start..start.saturating_add(section.sh_size(LE))
}

pub(super) fn bytes_of(section: &SectionRow) -> Range<u64> {
    let range = section.file_range(LE).filter(|(_, size)| *size > 0);
    let range = range.filter(|_| section.sh_type(LE) != elf::SHT_NULL);
    let (start, size) = range.unwrap_or_default();
    start..start.saturating_add(size)
}

impl HostElfFile<'_> {
    /// Fails if there are two sections of that name.
    pub(super) fn section(&self, name: &str) -> Result<Option<SectionRow>> {
        let mut found = self.sections.iter().filter(|it| self.name(it) == name.as_bytes());
        let first = found.next();
        if found.next().is_some() {
            let message = format!("there is more than one section {name}");
            return Err(Error::unsupported(message).at(&self.content.place(0)));
        }
        Ok(first.copied())
    }

    /// The name of a section, truncated to [`LONGEST_NAME`]: many sections may share suffixes of one long name.
    pub(super) fn name(&self, section: &SectionRow) -> &[u8] {
        let at = usize::try_from(section.sh_name(LE)).unwrap_or(usize::MAX);
        let rest = self.names.get(at..).unwrap_or_default();
        let rest = rest.get(..LONGEST_NAME).unwrap_or(rest);
        rest.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    pub(super) fn names_index(&self) -> usize {
        usize::from(self.header.e_shstrndx(LE).0)
    }

    pub(super) fn of_type(&self, kind: elf::SectionType) -> impl Iterator<Item = &SectionRow> {
        self.sections.iter().filter(move |section| section.sh_type(LE) == kind)
    }

    /// Subtracts `size` from `left`, the remaining bytes of the file. Sections of one kind do not overlap, so their
    /// total size cannot exceed that of the file.
    pub(super) fn take(&self, left: &mut u64, size: u64, what: &str) -> Result<()> {
        *left = left.checked_sub(size).ok_or_else(|| {
            let message = format!("{what} have more bytes together than the file");
            let hint = "no linker writes such sections: build the file or copy it again";
            Error::malformed(message).at(&self.content.place(0)).hint(hint)
        })?;
        Ok(())
    }

    /// Reads a section of `N`-byte records: calls `each` with the number and bytes of every record, which it may
    /// change, and then `read` with the changed bytes.
    pub(super) fn each_record<const N: usize>(
        &self,
        section: &SectionRow,
        each: &mut dyn FnMut(usize, &mut [u8; N]),
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<()> {
        let mut reader = self.content.slice(bytes_of(section))?.reader();
        let mut window = vec![0; N * AT_ONCE];
        let mut number = 0;
        loop {
            let len = reader.read_window(&mut window)?;
            let (records, _) = window[..len].as_chunks_mut::<N>();
            for record in records {
                each(number, record);
                number += 1;
            }
            read(&window[..len]);
            if len < window.len() {
                return Ok(());
            }
        }
    }
}
