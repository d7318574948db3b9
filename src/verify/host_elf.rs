//! What a host binary says about its device code, read through the `object` crate's section view.
//!
//! Verification must not trust the code that made the output, so nothing here is shared with the
//! transform: sections and relocations are looked up by their section headers, where the transform
//! goes by the dynamic table.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};

use object::elf::{self, FileHeader64, Sym64};
use object::read::elf::{ElfFile64, FileHeader, SectionHeader, Sym};
use object::{LittleEndian, Object, ObjectSection, ReadCache};

use crate::content::Content;
use crate::error::{Error, Result};

/// Wrapper magic of a fat binary: "HIPF".
pub(super) const HIPF: u32 = 0x4849_5046;
/// Wrapper magic of a transformed binary: "HIPK".
pub(super) const HIPK: u32 = 0x4B50_4948;
/// Bytes of one wrapper: magic, version, pointer, reserved.
const WRAPPER_LEN: u64 = 24;
/// Most wrappers a binary may have here; the largest ROCm library has a few thousand.
const WRAPPER_SECTION_LIMIT: u64 = 64 << 20;

/// One `__CudaFatBinaryWrapper`-shaped record of `.hipFatBinSegment`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrapper {
    pub(super) magic: u32,
    /// Address it points to after relocation.
    pub(super) pointer: u64,
    /// Low half of `reserved`: the co_index of a transformed wrapper.
    pub(super) co_index: u32,
}

/// A section's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) address: u64,
    pub(super) size: u64,
    /// File offset, or `None` for a section without file content.
    pub(super) offset: Option<u64>,
}

/// The device-code side of a host ELF.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct HostElf {
    pub(super) fatbin: Option<Section>,
    pub(super) marker: Option<Section>,
    pub(super) wrappers: Vec<Wrapper>,
}

type File<'a> = ElfFile64<'a, LittleEndian, &'a ReadCache<ContentCursor>>;

/// Reads the host ELF `content`; `None` if it is none for x86-64.
pub(super) fn read(content: &Content) -> Result<Option<HostElf>> {
    let mut ident = [0; 20];
    if content.len() < 64 {
        return Ok(None);
    }
    content.read_at(0, &mut ident)?;
    let machine = u16::from_le_bytes([ident[18], ident[19]]);
    if !ident.starts_with(b"\x7fELF\x02\x01") || elf::Machine(machine) != elf::EM_X86_64 {
        return Ok(None);
    }
    let cache = ReadCache::new(ContentCursor { content: content.clone(), position: 0 });
    let file = File::parse(&cache).map_err(|error| fault(content, error))?;
    let wrappers = match file.section_by_name(".hipFatBinSegment") {
        Some(section) => wrappers(content, &file, &cache, section.address(), section.file_range())?,
        None => Vec::new(),
    };
    let section = |name| {
        file.section_by_name(name).map(|s| Section {
            address: s.address(),
            size: s.size(),
            offset: s.file_range().map(|(offset, _)| offset),
        })
    };
    Ok(Some(HostElf {
        fatbin: section(".hip_fatbin"),
        marker: section(".rocm_kpack_ref"),
        wrappers,
    }))
}

fn fault(content: &Content, error: object::Error) -> Error {
    Error::malformed("cannot be read as an ELF file").cause(error).at(&content.place(0))
}

/// The wrappers: by magic at 8-byte steps, since sanitizers pad them with redzones.
fn wrappers(
    content: &Content,
    file: &File<'_>,
    cache: &ReadCache<ContentCursor>,
    address: u64,
    range: Option<(u64, u64)>,
) -> Result<Vec<Wrapper>> {
    let Some((offset, size)) = range else {
        return Ok(Vec::new());
    };
    let end = offset.saturating_add(size);
    let bytes = content.read_vec(offset..end, WRAPPER_SECTION_LIMIT, ".hipFatBinSegment")?;
    let relocated = relocated_values(content, file, cache)?;
    let mut found = Vec::new();
    let mut at = 0;
    while at + WRAPPER_LEN <= size {
        let record = &bytes[usize::try_from(at).map_err(|_| Error::bug("offset"))?..];
        let magic = u32::from_le_bytes([record[0], record[1], record[2], record[3]]);
        if magic != HIPF && magic != HIPK {
            at += 8;
            continue;
        }
        let word = |from: usize| {
            record[from..from + 8].iter().rev().fold(0, |v, b| v << 8 | u64::from(*b))
        };
        let pointer = relocated.get(&(address + at + 8)).copied().unwrap_or_else(|| word(8));
        let co_index = u32::from_le_bytes([record[16], record[17], record[18], record[19]]);
        found.push(Wrapper { magic, pointer, co_index });
        at += WRAPPER_LEN;
    }
    Ok(found)
}

/// Address → value that the dynamic loader stores there, for the relocations a wrapper may have.
/// RELR relocations add to the value in place, which the caller falls back on.
fn relocated_values(
    content: &Content,
    file: &File<'_>,
    cache: &ReadCache<ContentCursor>,
) -> Result<BTreeMap<u64, u64>> {
    let header: &FileHeader64<LittleEndian> = file.elf_header();
    let sections = header.sections(LittleEndian, cache).map_err(|e| fault(content, e))?;
    let symbols = file.elf_dynamic_symbol_table();
    let mut values = BTreeMap::new();
    for section in sections.iter() {
        let Ok(Some((entries, _))) = section.rela(LittleEndian, cache) else {
            continue;
        };
        for entry in entries {
            let addend = entry.r_addend.get(LittleEndian).cast_unsigned();
            let symbol = entry.r_sym(LittleEndian, false);
            let value = match entry.r_type(LittleEndian, false) {
                elf::R_X86_64_RELATIVE => Some(addend),
                elf::R_X86_64_64 => symbols
                    .symbol(object::SymbolIndex(symbol as usize))
                    .ok()
                    .map(|s: &Sym64<LittleEndian>| s.st_value(LittleEndian).wrapping_add(addend)),
                _ => None,
            };
            if let Some(value) = value {
                values.insert(entry.r_offset.get(LittleEndian), value);
            }
        }
    }
    Ok(values)
}

/// `Read + Seek` over content, as the `object` crate's cache wants it.
pub(super) struct ContentCursor {
    content: Content,
    position: u64,
}

impl Read for ContentCursor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.content.len().saturating_sub(self.position);
        let len = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.content.read_at(self.position, &mut buffer[..len])?;
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
