//! AMDGPU code object: an ELF64 file with device code of one target.
//!
//! ```text
//! e_ident[EI_OSABI]       64 for ROCm (AMDGPU_HSA)
//! e_ident[EI_ABIVERSION]  0 code object V2, 1 V3, 2 V4, 3 V5, 4 V6
//! e_type                  3 (ET_DYN)
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
//! Refused: files other than ELF64 for AMDGPU. [`read_whole`] also refuses files that loaders refuse
//! (another type, ABI or version than those above), and files that end before a segment or section
//! does. [`kernel_names`] refuses symbols whose names are far longer than their string table.

use std::collections::BTreeSet;

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::gfx::{self, BaseArch, Target};
use sha2::{Digest, Sha256};

use crate::{ElfFile, FileHeader, ProgramHeader, SectionHeader, StringTable};

const OS_ABI_HSA: elf::OsAbi = elf::OsAbi(64);

/// EI_ABIVERSION of code object V6, the newest one.
const ABI_VERSION_MAX: u8 = 4;

/// The state of a target feature in the flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FeatureState {
    /// The flags do not say: the version has no known bits for the feature, or the bit of a V3 file is
    /// clear.
    Unknown,
    /// The processor lacks the feature.
    Unsupported,
    /// The code runs with either setting.
    Any,
    /// The code needs the feature off.
    Off,
    /// The code needs the feature on.
    On,
}

impl FeatureState {
    /// The setting that the code needs; `None` if it runs with either, the processor lacks the feature,
    /// or the flags do not say.
    pub fn fixed(self) -> Option<bool> {
        match self {
            Self::On => Some(true),
            Self::Off => Some(false),
            Self::Unknown | Self::Unsupported | Self::Any => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeObjectHeader {
    /// The processor or generic target; `None` if its number is unknown.
    pub processor: Option<BaseArch>,
    /// e_flags.
    pub flags: u32,
    /// EI_ABIVERSION.
    pub abi_version: u8,
    pub xnack: FeatureState,
    pub sramecc: FeatureState,
    /// The processor with the features that the code needs; `None` if the processor is unknown.
    pub target: Option<Target>,
}

/// Whether `content` is an ELF64 file for AMDGPU.
pub fn is_code_object(content: &Content) -> Result<bool> {
    Ok(FileHeader::read(content)?.is_some_and(|header| header.e_machine == elf::EM_AMDGPU))
}

pub fn read_header(content: &Content) -> Result<CodeObjectHeader> {
    let file = file_header(content)?;
    let is_v3_or_later = file.e_ident.os_abi == OS_ABI_HSA && file.e_ident.abi_version > 0;
    let [mach, ..] = file.e_flags.0.to_le_bytes();
    let processor = is_v3_or_later.then(|| gfx::processor(mach)).flatten().cloned();
    let [xnack, sramecc] = features(&file);
    let fixed = [("sramecc", sramecc), ("xnack", xnack)]
        .into_iter()
        .filter_map(|(name, state)| Some((name.to_owned(), state.fixed()?)));
    let target = processor.clone().map(|base| Target::new(base, fixed));
    let (flags, abi_version) = (file.e_flags.0, file.e_ident.abi_version);
    Ok(CodeObjectHeader { processor, flags, abi_version, xnack, sramecc, target })
}

/// Fails if ROCm's loaders would refuse the ELF header of a code object: its type is not ET_DYN, or its ABI or ABI
/// version is unknown to them.
pub fn check_loadable(content: &Content) -> Result<()> {
    let header = file_header(content)?;
    let (kind, abi, version) = (header.e_type, header.e_ident.os_abi, header.e_ident.abi_version);
    let fault = if kind != elf::ET_DYN {
        Error::malformed(format!("has type {} (e_type); loaders accept only 3 (ET_DYN)", kind.0))
    } else if abi != OS_ABI_HSA {
        let (own, known) = (abi.0, OS_ABI_HSA.0);
        Error::unsupported(format!("has ABI {own} (EI_OSABI); ROCm loads only {known} (HSA)"))
    } else if version > ABI_VERSION_MAX {
        Error::unsupported(format!(
            "has ABI version {version} (EI_ABIVERSION); rockpack knows 0 to {ABI_VERSION_MAX} (code \
             objects V2 to V6)"
        ))
    } else {
        return Ok(());
    };
    Err(fault.structure("code object header").at(&content.place(0)).hint(
        "the file is damaged, or not a ROCm code object: build it or copy it again; code objects of \
         a newer version need a newer rockpack",
    ))
}

/// Reads the ELF header of a code object, after checking that loaders take the file and that no segment or
/// section reaches beyond the end of the file: a partial copy still has a header.
pub fn read_whole(content: &Content) -> Result<CodeObjectHeader> {
    check_loadable(content)?;
    let file = ElfFile::with_header(content, file_header(content)?)?;
    let segments = file.program_headers.iter().map(ProgramHeader::file_end);
    let sections = file.sections.iter().filter(|section| section.is_in_file());
    let end = segments.chain(sections.map(SectionHeader::file_end)).max();
    if end.is_some_and(|end| end > content.len()) {
        let message = format!("ends after {} of {} bytes", content.len(), end.unwrap_or_default());
        let error = Error::truncated(message).structure("code object");
        return Err(error
            .at(&content.place(0))
            .hint("the file is damaged or was copied only in part: build it or copy it again"));
    }
    read_header(content)
}

fn file_header(content: &Content) -> Result<FileHeader> {
    let header = FileHeader::read(content)?
        .ok_or_else(|| wrong_file(content, "is not a little-endian ELF64 file".to_owned()))?;
    if header.e_machine != elf::EM_AMDGPU {
        let message = format!("is for ELF machine {}, not for AMDGPU", header.e_machine.0);
        return Err(wrong_file(content, message));
    }
    Ok(header)
}

fn wrong_file(content: &Content, message: String) -> Error {
    let place = content.place(0);
    Error::malformed(message).structure("code object").at(&place)
}

/// The states of XNACK and SRAMECC in the flags of a header.
fn features(file: &FileHeader) -> [FeatureState; 2] {
    let flags = file.e_flags.0;
    match (file.e_ident.os_abi, file.e_ident.abi_version) {
        (OS_ABI_HSA, 1) => [0x100, 0x200].map(|bit| match flags & bit {
            // A clear bit means off, or that the processor lacks the feature.
            0 => FeatureState::Unknown,
            _ => FeatureState::On,
        }),
        (OS_ABI_HSA, 2..) => [8, 10].map(|shift| match (flags >> shift) & 3 {
            0 => FeatureState::Unsupported,
            1 => FeatureState::Any,
            2 => FeatureState::Off,
            _ => FeatureState::On,
        }),
        _ => [FeatureState::Unknown; 2],
    }
}

/// The names of the kernels that the code object defines, without `.kd`.
pub fn kernel_names(content: &Content) -> Result<BTreeSet<String>> {
    let file = ElfFile::with_header(content, file_header(content)?)?;
    let mut found = BTreeSet::new();
    // A file has at most one table of each type.
    for wanted in [elf::SHT_DYNSYM, elf::SHT_SYMTAB] {
        let mut sections = file.sections.iter().enumerate();
        let table = sections.find(|(_, section)| section.sh_type == wanted);
        let Some((index, table)) = table else { continue };
        let strings = file.linked_strings(table)?;
        let symbols = file.symbols(index, table)?;
        let mut names = StringTable::new(&file, &strings, symbols.len());
        for item in symbols.iter() {
            let (offset, symbol) = item?;
            if symbol.st_shndx == elf::SHN_UNDEF {
                continue;
            }
            if let Some(kernel) = names.get(symbol.st_name, offset)?.strip_suffix(b".kd") {
                let text = std::str::from_utf8(kernel).map_err(|_| {
                    let message = "a kernel name is not text";
                    file.refuse(Kind::Malformed, "code object symbols", offset, message)
                })?;
                found.insert(text.to_owned());
            }
        }
    }
    Ok(found)
}

/// The SHA-256 of the loaded part of a code object: all code and data that loading `content` gives to its kernels,
/// but no names and no debug information.
///
/// Kernels run on allocated sections of type PROGBITS (code, kernel descriptors, constants, data) and NOBITS
/// (zeroed data). Notes, symbol and hash tables, strings and everything that is not allocated only describe
/// them, and differ between translation units with the same code: in Debian 13's librocblas, 17 of 65 code
/// objects per arch share their kernels and, byte for byte, their `.text` and `.rodata` with another one, and
/// differ in debug information.
///
/// Source: the ELF specification (gABI). Other device code than ELF (SPIR-V) counts as a whole. Refused: sections
/// that together have more bytes than the file, because they must overlap.
pub fn loaded_digest(content: &Content) -> Result<[u8; 32]> {
    let Some(header) = FileHeader::read(content)? else {
        return content.sha256();
    };
    let file = ElfFile::with_header(content, header)?;
    if file.sections.is_empty() {
        let error = Error::unsupported("has no section table by which its code could be located");
        return Err(error.structure("code object").at(&content.place(0)));
    }
    let mut digest = Sha256::new();
    let mut left = content.len();
    let sections = file.sections.iter().enumerate();
    for (index, section) in sections.filter(|(_, section)| section.is_allocated()) {
        if ![elf::SHT_PROGBITS, elf::SHT_NOBITS].contains(&section.sh_type) {
            continue;
        }
        // Flags and size come first, so that different sections cannot give the same bytes.
        digest.update(section.sh_flags.0.to_le_bytes());
        digest.update(section.sh_size.to_le_bytes());
        if section.sh_type == elf::SHT_PROGBITS {
            left = left.checked_sub(section.sh_size).ok_or_else(|| {
                let message = "shares bytes with other sections, or ends outside of the file";
                let error = file.refuse_section(Kind::Malformed, index, message);
                error.hint("the file is damaged: build it or copy it again")
            })?;
            let bytes = file.content().slice(file.file_range(index, section)?)?;
            bytes.each_window(|window| digest.update(window))?;
        }
    }
    Ok(digest.finalize().into())
}

#[cfg(test)]
#[path = "code_object_tests.rs"]
mod tests;
