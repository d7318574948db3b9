//! The device code of a host binary.
//!
//! Verification must not trust the code that made the output, so nothing here is shared with the
//! transform: sections and relocations are looked up by their section headers, where the transform
//! goes by the dynamic table.
//!
//! Refused: executable or relocation sections that have more bytes together than the file, and more dynamic
//! sections or names of libraries than any file has ([`linked`]).

use std::collections::BTreeMap;

use object::LittleEndian as LE;
use object::elf;
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};
use rockpack_core::content::Content;
use rockpack_core::error::Result;

use super::digest::Sha;
use super::elf_file::{self, HostElfFile, Section, Segment, bytes_of, has, word};
use super::linked::{self, Linked};

/// Wrapper magic of a fat binary: "HIPF".
pub(crate) const HIPF: u32 = 0x4849_5046;
/// Wrapper magic of a transformed binary: "HIPK".
pub(crate) const HIPK: u32 = 0x4B50_4948;
/// Bytes of one wrapper: magic, version, pointer, reserved.
pub(crate) const WRAPPER_LEN: usize = 24;
/// Most bytes that `.hipFatBinSegment` may have; the largest ROCm library has a few thousand wrappers.
pub(super) const WRAPPER_SECTION_LIMIT: u64 = 64 << 20;

/// One record of `.hipFatBinSegment`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrapperRecord {
    pub(crate) magic: u32,
    pub(crate) version: u32,
    /// Address it points to once the file is loaded at its own addresses.
    pub(crate) pointer: u64,
    /// Whether the dynamic loader moves the pointer along with the file, as it has to unless the
    /// file is loaded where it says.
    pub(crate) moves: bool,
    /// Low half of `reserved`: the co_index of a transformed wrapper.
    pub(crate) co_index: u32,
}

/// The device-code side of a host ELF.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostElf {
    pub(crate) fatbin: Option<Section>,
    pub(crate) marker: Option<Section>,
    pub(crate) wrappers: Vec<WrapperRecord>,
    /// Whether it is loaded at the addresses it states.
    pub(crate) fixed: bool,
    /// SHA-256 of its machine code: of the content of all executable sections.
    pub(crate) code: Sha,
    /// The entries for the dynamic linker.
    pub(crate) linked: Linked,
    loads: Vec<Segment>,
}

impl HostElf {
    /// The file offset of what is loaded at `section`, if all of it is.
    pub(crate) fn loaded_at(&self, section: Section) -> Option<u64> {
        self.loads.iter().find_map(|load| {
            let from = section.address.checked_sub(load.p_vaddr(LE))?;
            let end = from.checked_add(section.size)?;
            (end <= load.p_filesz(LE)).then(|| load.p_offset(LE).checked_add(from)).flatten()
        })
    }
}

/// Reads the linked host ELF `content`; `None` for other machines than x86-64, and for object files.
pub(crate) fn read(content: &Content) -> Result<Option<HostElf>> {
    let Some(file) = elf_file::open(content)? else { return Ok(None) };
    let loads = file.segments.iter().filter(|header| header.p_type(LE) == elf::PT_LOAD);
    Ok(Some(HostElf {
        fatbin: file.section(".hip_fatbin")?,
        marker: file.section(".rocm_kpack_ref")?,
        wrappers: file.wrappers()?,
        fixed: file.header.e_type(LE) == elf::ET_EXEC,
        code: file.code()?,
        linked: linked::read(&file)?,
        loads: loads.copied().collect(),
    }))
}

impl HostElfFile<'_> {
    fn code(&self) -> Result<Sha> {
        let mut parts = Vec::new();
        let mut left = self.content.len();
        for section in self.sections.iter().filter(|it| has(it, elf::SHF_EXECINSTR)) {
            let range = bytes_of(section);
            self.take(&mut left, range.end - range.start, "executable sections")?;
            parts.push(self.content.slice(range)?);
        }
        Content::concat(&parts).sha256()
    }

    /// The wrappers: by magic at 8-byte steps, since sanitizers pad them with redzones.
    fn wrappers(&self) -> Result<Vec<WrapperRecord>> {
        let Some(section) = self.section(".hipFatBinSegment")? else {
            return Ok(Vec::new());
        };
        let Some(offset) = section.offset else {
            return Ok(Vec::new());
        };
        let end = offset.saturating_add(section.size);
        let bytes =
            self.content.read_vec(offset..end, WRAPPER_SECTION_LIMIT, ".hipFatBinSegment")?;
        let relocated = self.relocated(section)?;
        let mut found = Vec::new();
        let mut rest = bytes.as_slice();
        while let Some((record, _)) = rest.split_first_chunk::<WRAPPER_LEN>() {
            let [magic, version, low, high, co_index, _] = words(record);
            if magic != HIPF && magic != HIPK {
                rest = &rest[8..];
                continue;
            }
            let at = section.address.wrapping_add((bytes.len() - rest.len()) as u64 + 8);
            let (stored, loaded) = (u64::from(high) << 32 | u64::from(low), relocated.get(&at));
            let (moves, pointer) = (loaded.is_some(), loaded.copied().flatten().unwrap_or(stored));
            found.push(WrapperRecord { magic, version, pointer, moves, co_index });
            rest = &rest[WRAPPER_LEN..];
        }
        Ok(found)
    }

    /// The words of `within` that the dynamic loader relocates, by address, with the value that it stores; none where
    /// that is the stored one and the load address (RELR).
    fn relocated(&self, within: Section) -> Result<BTreeMap<u64, Option<u64>>> {
        let range = within.address..within.address.saturating_add(within.size);
        let mut values = BTreeMap::new();
        let mut left = self.content.len();
        // What linkers keep beside them (`--emit-relocs`) is for linkers.
        for section in self.sections.iter().filter(|section| has(section, elf::SHF_ALLOC)) {
            let kind = section.sh_type(LE);
            if ![elf::SHT_RELR, elf::SHT_RELA].contains(&kind) {
                continue;
            }
            self.take(&mut left, section.sh_size(LE), "sections of relocations")?;
            if kind == elf::SHT_RELA {
                let mut own: Vec<[u8; 24]> = Vec::new();
                let mut add = |entry: &mut [u8; 24]| {
                    if range.contains(&word(entry, 0)) {
                        own.push(*entry);
                    }
                };
                self.each_record(section, &mut add, &mut |_| ())?;
                for entry in own {
                    if let Some(value) = self.value(&entry)? {
                        values.insert(word(&entry, 0), Some(value));
                    }
                }
                continue;
            }
            let mut base = 0_u64;
            let mut add = |bytes: &mut [u8; 8]| {
                let entry = u64::from_le_bytes(*bytes);
                // An address, or a bit for each of the 63 words behind the last one.
                let bits = if entry & 1 == 0 { 1 } else { entry >> 1 };
                let start = if entry & 1 == 0 { entry } else { base };
                let words = (0..63).filter(|bit| bits >> bit & 1 == 1);
                let own = words.map(|bit| start.wrapping_add(bit * 8));
                values.extend(own.filter(|at| range.contains(at)).map(|at| (at, None)));
                base = start.wrapping_add(if entry & 1 == 0 { 8 } else { 63 * 8 });
            };
            self.each_record(section, &mut add, &mut |_| ())?;
        }
        Ok(values)
    }

    /// The value that a relocation of a kind found in wrappers stores, by the dynamic symbols.
    fn value(&self, entry: &[u8; 24]) -> Result<Option<u64>> {
        let (info, addend) = (word(entry, 8), word(entry, 16));
        let (symbol, kind) = (info >> 32, info & u64::from(u32::MAX));
        if kind == u64::from(elf::R_X86_64_RELATIVE.0) {
            return Ok(Some(addend));
        }
        let symbols = self.of_type(elf::SHT_DYNSYM).next().map(bytes_of).unwrap_or_default();
        let at = symbols.start.saturating_add(symbol * 24 + 8);
        if kind != u64::from(elf::R_X86_64_64.0) || at.saturating_add(8) > symbols.end {
            return Ok(None);
        }
        let value = u64::from_le_bytes(self.content.read_array(at)?);
        Ok(Some(value.wrapping_add(addend)))
    }
}

/// The record as 32-bit words.
fn words(record: &[u8; WRAPPER_LEN]) -> [u32; WRAPPER_LEN / 4] {
    std::array::from_fn(|at| {
        let word = &record[at * 4..at * 4 + 4];
        u32::from_le_bytes([word[0], word[1], word[2], word[3]])
    })
}
