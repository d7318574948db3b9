//! The device code of a host binary, read through the `object` crate.
//!
//! Verification must not trust the code that made the output, so nothing here is shared with the
//! transform: sections and relocations are looked up by their section headers, where the transform
//! goes by the dynamic table.
//!
//! Refused: executable sections that have more bytes together than the file, more dynamic sections or
//! names of libraries than any file has ([`linked`]), and relocation sections that share bytes
//! ([`relocated`](super::relocated)).

use object::LittleEndian;
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use rockpack_base::content::Content;
use rockpack_base::error::Result;

use super::digest::Sha;
use super::elf_file::{HostElfFile, Section, fault, with_file};
use super::linked::{self, Linked};
use super::relocated::Relocated;

/// Wrapper magic of a fat binary: "HIPF".
pub(in crate::verify) const HIPF: u32 = 0x4849_5046;
/// Wrapper magic of a transformed binary: "HIPK".
pub(in crate::verify) const HIPK: u32 = 0x4B50_4948;
/// Bytes of one wrapper: magic, version, pointer, reserved.
pub(in crate::verify) const WRAPPER_LEN: usize = 24;
/// Most bytes that `.hipFatBinSegment` may have; the largest ROCm library has a few thousand wrappers.
pub(super) const WRAPPER_SECTION_LIMIT: u64 = 64 << 20;

/// One record of `.hipFatBinSegment`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::verify) struct WrapperRecord {
    pub(in crate::verify) magic: u32,
    pub(in crate::verify) version: u32,
    /// Address it points to once the file is loaded at its own addresses.
    pub(in crate::verify) pointer: u64,
    /// Whether the dynamic loader moves the pointer along with the file, as it has to unless the
    /// file is loaded where it says.
    pub(in crate::verify) moves: bool,
    /// Low half of `reserved`: the co_index of a transformed wrapper.
    pub(in crate::verify) co_index: u32,
}

/// A load segment, as far as the file fills it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Load {
    address: u64,
    offset: u64,
    size: u64,
}

/// The device-code side of a host ELF.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::verify) struct HostElf {
    pub(in crate::verify) fatbin: Option<Section>,
    pub(in crate::verify) marker: Option<Section>,
    pub(in crate::verify) wrappers: Vec<WrapperRecord>,
    /// Whether it is loaded at the addresses it states.
    pub(in crate::verify) fixed: bool,
    /// SHA-256 of its machine code: of the content of all executable sections.
    pub(in crate::verify) code: Sha,
    /// The entries for the dynamic linker.
    pub(in crate::verify) linked: Linked,
    loads: Vec<Load>,
}

impl HostElf {
    /// The file offset of what is loaded at `section`, if all of it is.
    pub(in crate::verify) fn loaded_at(&self, section: Section) -> Option<u64> {
        self.loads.iter().find_map(|load| {
            let from = section.address.checked_sub(load.address)?;
            let end = from.checked_add(section.size)?;
            (end <= load.size).then(|| load.offset.checked_add(from)).flatten()
        })
    }
}

/// Reads the linked host ELF `content`; `None` for other machines than x86-64, and for object files.
pub(in crate::verify) fn read(content: &Content) -> Result<Option<HostElf>> {
    with_file(content, |file| {
        Ok(HostElf {
            fatbin: file.section(".hip_fatbin")?,
            marker: file.section(".rocm_kpack_ref")?,
            wrappers: file.wrappers()?,
            fixed: file.header.e_type(LittleEndian) == elf::ET_EXEC,
            code: file.code()?,
            linked: linked::read(file)?,
            loads: file.loads()?,
        })
    })
}

impl<'a> HostElfFile<'a> {
    fn loads(&self) -> Result<Vec<Load>> {
        let headers = self
            .header
            .program_headers(LittleEndian, self.cache)
            .map_err(|error| fault(self.content, error))?;
        let segments = headers.iter().filter(|h| h.p_type(LittleEndian) == elf::PT_LOAD);
        let loads = segments.map(|header| Load {
            address: header.p_vaddr(LittleEndian),
            offset: header.p_offset(LittleEndian),
            size: header.p_filesz(LittleEndian),
        });
        Ok(loads.collect())
    }

    fn code(&self) -> Result<Sha> {
        let mut parts = Vec::new();
        let mut left = self.content.len();
        for section in self.sections.iter() {
            let executable = section.sh_flags(LittleEndian).0 & elf::SHF_EXECINSTR.0 != 0;
            if let Some((offset, size)) = section.file_range(LittleEndian).filter(|_| executable) {
                self.take(&mut left, size, "executable sections")?;
                parts.push(self.content.slice(offset..offset.saturating_add(size))?);
            }
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
            let [magic, version, _, _, co_index, _] = words(record);
            if magic != HIPF && magic != HIPK {
                rest = &rest[8..];
                continue;
            }
            let at = section.address.wrapping_add((bytes.len() - rest.len()) as u64 + 8);
            let (moves, pointer) = match relocated.get(&at) {
                Some(Relocated::To(value)) => (true, *value),
                Some(Relocated::InPlace) => (true, pointer(record)),
                None => (false, pointer(record)),
            };
            found.push(WrapperRecord { magic, version, pointer, moves, co_index });
            rest = &rest[WRAPPER_LEN..];
        }
        Ok(found)
    }
}

/// The record as 32-bit words.
fn words(record: &[u8; WRAPPER_LEN]) -> [u32; WRAPPER_LEN / 4] {
    std::array::from_fn(|at| {
        let word = &record[at * 4..at * 4 + 4];
        u32::from_le_bytes([word[0], word[1], word[2], word[3]])
    })
}

/// The pointer as stored in the file.
fn pointer(record: &[u8; WRAPPER_LEN]) -> u64 {
    let [_, _, low, high, _, _] = words(record);
    u64::from(high) << 32 | u64::from(low)
}
