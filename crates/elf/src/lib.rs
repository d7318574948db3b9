//! The small tables of ELF64 little-endian files, read by positioned reads.
//!
//! ```text
//! offset  size  what
//! 0       64    file header: e_type, e_machine, e_phoff, e_shoff, e_phnum, e_shnum, e_shstrndx
//! e_phoff 56 n  program headers: p_type, p_flags, p_offset, p_vaddr, p_filesz, p_memsz, p_align
//! e_shoff 64 n  section headers: sh_name, sh_type, sh_flags, sh_addr, sh_offset, sh_size, ...
//! PT_DYNAMIC    16-byte pairs of d_tag and d_val, up to DT_NULL
//! DT_SYMTAB     24-byte symbols: st_name, st_info, st_shndx, st_value, st_size
//! DT_RELA       24-byte relocations: r_offset, r_type, symbol, r_addend; DT_JMPREL likewise
//! DT_VERSYM     2 bytes per symbol: the index of its version, bit 15 = hidden
//! DT_VERNEED    16 bytes: vn_version, vn_cnt, vn_file, vn_aux, vn_next, and at vn_aux
//!               16 bytes each: vna_hash, vna_flags, vna_other, vna_name, vna_next
//! DT_VERDEF     20 bytes: vd_version, vd_flags, vd_ndx, vd_cnt, vd_hash, vd_aux, vd_next, and
//!               at vd_aux 8 bytes each: vda_name, vda_next
//! DT_RELR       8-byte words: even = an address, odd = a bitmap of the next 63 addresses
//! ```
//!
//! Source: System V ABI, generic edition and AMD64 supplement (symbols and dynamic relocations are those of
//! x86-64; the rest is the same for AMDGPU code objects); versions as in the Linux Standard Base, symbol
//! versioning; RELR as in glibc 2.36. The byte layouts are those of the `object` crate; field names are the
//! specification's.
//!
//! A file of another class or byte order is not an error: [`FileHeader::read`] and [`ElfFile::read`] return
//! `None`. [`ElfFile::read`] also returns `None` for another machine. Reading checks that tables lie
//! inside the file. [`ElfFile::validate`] checks their content, and is a separate call because rockpack
//! packs files without device code unchanged, even damaged ones.
//!
//! Refused: files from which far more bytes would be read than they have. Any number of records may
//! refer to the same bytes, so the bytes read through references are limited in total: names in a
//! [`StringTable`], names and search paths in the dynamic section, chains of symbol versions.

pub mod amdgpu_metadata;
mod build_id;
pub mod ccob;
pub mod code_object;
mod dynamic;
pub mod fatbin;
mod file;
mod hash_tables;
pub mod hip_wrapper;
pub mod kpack;
pub mod kpm;
mod linking;
pub mod message_pack;
pub mod message_pack_stream;
pub mod offload_binary;
pub mod offload_bundle;
mod record;
mod relocation;
mod table;
mod versions;

pub use build_id::build_id;
pub use dynamic::{Dynamic, DynamicEntry, DynamicSymbols};
pub use file::{ElfFile, FILE_HEADER_SIZE};
pub use linking::{LinkedSymbol, Linking, SearchPath, with_rpath};
pub use record::{
    Dyn, FileHeader, PROGRAM_HEADER_SIZE, ProgramHeader, Record, Rela, SECTION_HEADER_SIZE,
    SectionHeader, Symbol, VersionDefinition, VersionDefinitionAux, VersionNeed, VersionNeedAux,
};
pub use relocation::{Relocation, for_each_relocation};
pub use table::{RecordTable, StringTable};
pub use versions::{DefinedVersion, NeededVersion, NeededVersions, Versions};

pub mod marker {
    //! The reference to kernel archives inside a transformed host binary, which [`rockpack_kpack::marker`] reads.

    pub use rockpack_kpack::marker::{ARCH_PLACEHOLDER, AnyMarker, LIMIT, Marker};

    use rmpv::Value;
    use rockpack_core::error::{Error, Kind, Result};
    use rockpack_kpack::marker::{KERNEL_NAME, MarkerFault, SEARCH_PATHS};

    use crate::message_pack::{encode, map};

    /// Reads a marker of any form from the bytes of its section, with the strict rules for tools.
    pub fn parse(bytes: &[u8]) -> Result<AnyMarker> {
        rockpack_kpack::marker::parse(bytes).map_err(refused)
    }

    pub fn to_bytes(marker: &Marker) -> Result<Vec<u8>> {
        let paths = marker.kpack_search_paths.iter().map(|path| path.as_str().into());
        let bytes = encode(&map([
            (KERNEL_NAME, marker.kernel_name.as_str().into()),
            (SEARCH_PATHS, Value::Array(paths.collect())),
        ]))?;
        match bytes.len() {
            ..=LIMIT => Ok(bytes),
            long => Err(refused(MarkerFault::TooLong(long))),
        }
    }

    fn refused(fault: MarkerFault) -> Error {
        let kind = match fault {
            MarkerFault::Empty => Kind::Truncated,
            MarkerFault::TooLong(_) => Kind::Limit,
            MarkerFault::NotAMap | MarkerFault::TrailingBytes | MarkerFault::NotAList => {
                Kind::Malformed
            }
        };
        Error::new(kind, fault.to_string()).structure("marker")
    }
}
