//! AMDGPU code object: an ELF64 file with device code of one target.
//!
//! ```text
//! e_ident[EI_OSABI]       64 for ROCm (AMDGPU_HSA)
//! e_ident[EI_ABIVERSION]  0 code object V2, 1 V3, 2 V4, 3 V5, 4 V6
//! e_machine               224 (EM_AMDGPU)
//! e_flags  bits 0-7       EF_AMDGPU_MACH: the processor
//!   V3     bit 8 XNACK on, bit 9 SRAMECC on
//!   V4 on  bits 8-9 XNACK, bits 10-11 SRAMECC: 0 unsupported, 1 any, 2 off, 3 on
//!   V6     bits 24-31 version of a generic target
//! symbols  `<kernel>.kd`  a kernel's descriptor, in .dynsym (and .symtab, if not stripped)
//! ```
//!
//! Source: LLVM's AMDGPU guide ("ELF Code Object"); code objects of LLVM 17 and 19. V2 keeps its
//! target in a note and other bits in the flags, so its processor is not read.
//!
//! Refused: files that are no ELF64 for AMDGPU, and symbol tables that reach beyond the file.

use std::collections::BTreeSet;
use std::io::Read;

use super::elf_sections::{self, FileHeader, Section};
use crate::content::Content;
use crate::error::{Error, Result};
use crate::gfx::{self, BaseArch, Target};

/// EM_AMDGPU.
pub const MACHINE: u16 = 224;

/// ELFOSABI_AMDGPU_HSA.
const OS_ABI_HSA: u8 = 64;

/// What the flags say about a target feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FeatureState {
    /// The format version cannot say.
    Unknown,
    /// The processor does not have it.
    Unsupported,
    /// The code runs whatever its setting is.
    Any,
    /// The code needs it off.
    Off,
    /// The code needs it on.
    On,
}

impl FeatureState {
    /// The setting that the code needs, if it needs one.
    pub fn fixed(self) -> Option<bool> {
        match self {
            Self::On => Some(true),
            Self::Off => Some(false),
            Self::Unknown | Self::Unsupported | Self::Any => None,
        }
    }
}

/// What the ELF header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The processor or generic target, if its value is known.
    pub processor: Option<BaseArch>,
    /// e_flags.
    pub flags: u32,
    /// EI_ABIVERSION.
    pub abi_version: u8,
    /// State of XNACK.
    pub xnack: FeatureState,
    /// State of SRAMECC.
    pub sramecc: FeatureState,
    /// The processor with the features that the code needs.
    pub target: Option<Target>,
}

/// Whether `content` is an ELF64 file for AMDGPU.
pub fn is_code_object(content: &Content) -> Result<bool> {
    Ok(elf_sections::file_header(content)?.is_some_and(|header| header.machine == MACHINE))
}

/// Reads the ELF header.
pub fn read_header(content: &Content) -> Result<Header> {
    let file = file_header(content)?;
    let versioned = file.os_abi == OS_ABI_HSA && file.abi_version > 0;
    let [mach, ..] = file.flags.to_le_bytes();
    let processor = versioned.then(|| gfx::processor(mach)).flatten().cloned();
    let (xnack, sramecc) = features(&file);
    let fixed = [("sramecc", sramecc), ("xnack", xnack)]
        .into_iter()
        .filter_map(|(name, state)| Some((name.to_owned(), state.fixed()?)));
    let target = processor.clone().map(|base| Target::new(base, fixed));
    Ok(Header {
        processor,
        flags: file.flags,
        abi_version: file.abi_version,
        xnack,
        sramecc,
        target,
    })
}

fn file_header(content: &Content) -> Result<FileHeader> {
    let wrong = |message: String| {
        let place = content.place(0);
        Error::malformed(message).structure("code object").at(&place)
    };
    let header = elf_sections::file_header(content)?;
    let header = header.ok_or_else(|| wrong("is no ELF64 little-endian file".to_owned()))?;
    match header.machine {
        MACHINE => Ok(header),
        other => Err(wrong(format!("is for ELF machine {other}, not for AMDGPU"))),
    }
}

/// XNACK and SRAMECC.
fn features(file: &FileHeader) -> (FeatureState, FeatureState) {
    let two_bits = |shift: u32| match (file.flags >> shift) & 3 {
        0 => FeatureState::Unsupported,
        1 => FeatureState::Any,
        2 => FeatureState::Off,
        _ => FeatureState::On,
    };
    // A clear bit of V3 means off, or no such feature.
    let one_bit = |bit: u32| match file.flags & bit {
        0 => FeatureState::Unknown,
        _ => FeatureState::On,
    };
    match (file.os_abi, file.abi_version) {
        (OS_ABI_HSA, 1) => (one_bit(0x100), one_bit(0x200)),
        (OS_ABI_HSA, 2..) => (two_bits(8), two_bits(10)),
        _ => (FeatureState::Unknown, FeatureState::Unknown),
    }
}

const SHT_SYMTAB: u32 = 2;
const SHT_DYNSYM: u32 = 11;

/// Length of an ELF64 symbol: u32 name | u8 info | u8 other | u16 section | u64 value | u64 size.
const SYMBOL_LEN: usize = 24;

/// The names of the kernels that the code object defines, without their `.kd`.
pub fn kernel_names(content: &Content) -> Result<BTreeSet<String>> {
    let header = file_header(content)?;
    let sections = elf_sections::sections(content, &header)?;
    let mut found = BTreeSet::new();
    // A file has at most one table of each type.
    let tables = [SHT_DYNSYM, SHT_SYMTAB]
        .map(|wanted| sections.iter().find(|section| section.section_type == wanted));
    for table in tables.into_iter().flatten() {
        let link = usize::try_from(table.link).unwrap_or(usize::MAX);
        let names = sections.get(link).ok_or_else(|| {
            let message = format!("a symbol table names section {link} for its names");
            Error::malformed(message).at(&content.place(table.offset))
        })?;
        collect_kernels(content, table, names, &mut found)
            .map_err(|error| error.structure("code object symbols"))?;
    }
    Ok(found)
}

fn collect_kernels(
    content: &Content,
    table: &Section,
    names: &Section,
    found: &mut BTreeSet<String>,
) -> Result<()> {
    let names = elf_sections::names(content, names)?;
    let end = table.offset.saturating_add(table.size);
    let mut symbols = std::io::BufReader::new(content.slice(table.offset..end)?.reader());
    let mut symbol = [0; SYMBOL_LEN];
    for _ in 0..table.size / SYMBOL_LEN as u64 {
        symbols
            .read_exact(&mut symbol)
            .map_err(|e| Error::from_io(e).unwrap_or_else(|e| Error::truncated("ends").cause(e)))?;
        let name = u32::from_le_bytes(elf_sections::field(&symbol, 0));
        let section = u16::from_le_bytes(elf_sections::field(&symbol, 6));
        let name = elf_sections::name_at(&names, name);
        let kernel = name.and_then(|name| name.strip_suffix(b".kd"));
        if let Some(kernel) = kernel.filter(|_| section != 0) {
            let text = std::str::from_utf8(kernel);
            let text = text.map_err(|_| Error::malformed("a kernel name is not text"))?;
            found.insert(text.to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "code_object_tests.rs"]
mod tests;
