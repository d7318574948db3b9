//! Fixed-size structures in host byte order, and their conversion to and from bytes.

use object::LittleEndian as LE;
use object::elf;
use object::pod::{self, Pod};

/// A structure of fixed size.
pub trait Record: Copy {
    /// The structure as it is stored in a file.
    type Raw: Pod;
    const NAME: &'static str;
    const SIZE: u64 = size_of::<Self::Raw>() as u64;

    fn from_raw(raw: &Self::Raw) -> Self;
    fn to_raw(self) -> Self::Raw;

    fn to_bytes(self) -> Vec<u8> {
        pod::bytes_of(&self.to_raw()).to_vec()
    }
}

macro_rules! record {
    ($(#[$doc:meta])* $name:ident = $raw:ty, $called:literal {
        $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
        // Fields of one byte have no byte order.
        $(; $($(#[$byte_doc:meta])* $byte:ident: $byte_type:ty,)*)?
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
            $($($(#[$byte_doc])* pub $byte: $byte_type,)*)?
        }

        impl Record for $name {
            type Raw = $raw;
            const NAME: &'static str = $called;
            fn from_raw(raw: &Self::Raw) -> Self {
                Self { $($field: raw.$field.get(LE),)* $($($byte: raw.$byte,)*)? }
            }
            fn to_raw(self) -> Self::Raw {
                Self::Raw { $($field: self.$field.into(),)* $($($byte: self.$byte,)*)? }
            }
        }
    };
}

record! {
    #[derive(PartialEq, Eq)]
    ProgramHeader = elf::ProgramHeader64<LE>, "program header" {
        p_type: elf::ProgramType,
        p_flags: elf::ProgramFlags,
        p_offset: u64,
        /// Address relative to the load address.
        p_vaddr: u64,
        /// Physical address. Linux ignores it.
        p_paddr: u64,
        p_filesz: u64,
        p_memsz: u64,
        /// Alignment: address and file offset have the same remainder when divided by it.
        p_align: u64,
    }
}

record! {
    #[derive(PartialEq, Eq)]
    SectionHeader = elf::SectionHeader64<LE>, "section header" {
        /// Offset of the name in the section name table.
        sh_name: u32,
        sh_type: elf::SectionType,
        sh_flags: elf::SectionFlags,
        /// Address relative to the load address; zero if the section is not loaded.
        sh_addr: u64,
        sh_offset: u64,
        /// Bytes in the file, or in memory for `SHT_NOBITS`.
        sh_size: u64,
        /// Index of a related section.
        sh_link: u32,
        /// Further information; its meaning depends on `sh_type`.
        sh_info: u32,
        sh_addralign: u64,
        /// Bytes per entry of a table.
        sh_entsize: u64,
    }
}

record! {
    #[derive(PartialEq, Eq)]
    Dyn = elf::Dyn64<LE>, "dynamic entry" {
        d_tag: elf::DynamicTag,
        /// A number or an address.
        d_val: u64,
    }
}

record! {
    #[derive(PartialEq, Eq)]
    Rela = elf::Rela64<LE>, "relocation" {
        r_offset: u64,
        r_info: u64,
        r_addend: i64,
    }
}

record! {
    /// The versions needed from one library; a list of [`VersionNeedAux`] follows.
    VersionNeed = elf::Verneed<LE>, "version need" {
        vn_version: u16,
        vn_cnt: u16,
        /// Offset of the library's name in the string table.
        vn_file: u32,
        /// Offset of the first version from here.
        vn_aux: u32,
        /// Offset of the next library from here; zero for the last.
        vn_next: u32,
    }
}

record! {
    /// One needed version.
    VersionNeedAux = elf::Vernaux<LE>, "needed version" {
        vna_hash: u32,
        vna_flags: elf::VersionFlags,
        /// The index by which symbols refer to the version.
        vna_other: elf::VersionIndex,
        /// Offset of the name in the string table.
        vna_name: u32,
        /// Offset of the next version from here; zero for the last.
        vna_next: u32,
    }
}

record! {
    /// A version definition; a list of [`VersionDefinitionAux`] follows.
    VersionDefinition = elf::Verdef<LE>, "version definition" {
        vd_version: u16,
        vd_flags: elf::VersionFlags,
        /// The index by which symbols refer to the version.
        vd_ndx: elf::VersionIndex,
        /// Number of names: the version's own, and those of the versions that it builds on.
        vd_cnt: u16,
        /// Hash of the version's own name.
        vd_hash: u32,
        /// Offset of the first name from here.
        vd_aux: u32,
        /// Offset of the next definition from here; zero for the last.
        vd_next: u32,
    }
}

record! {
    /// A name of a version definition.
    VersionDefinitionAux = elf::Verdaux<LE>, "version definition name" {
        /// Offset of the name in the string table.
        vda_name: u32,
        /// Offset of the next name from here; zero for the last.
        vda_next: u32,
    }
}

record! {
    #[derive(PartialEq, Eq)]
    Symbol = elf::Sym64<LE>, "symbol" {
        /// Offset of the name in the linked string table.
        st_name: u32,
        /// Index of the defining section, or a reserved value.
        st_shndx: elf::SymbolSection,
        st_value: u64,
        st_size: u64,
        ;
        st_info: elf::SymbolInfo,
        st_other: elf::SymbolOther,
    }
}

pub const PROGRAM_HEADER_SIZE: u64 = ProgramHeader::SIZE;
pub const SECTION_HEADER_SIZE: u64 = SectionHeader::SIZE;

impl ProgramHeader {
    pub fn is_load(&self) -> bool {
        self.p_type == elf::PT_LOAD
    }

    /// Offset of the end of the segment in the file; `u64::MAX` if the sum overflows.
    pub fn file_end(&self) -> u64 {
        self.p_offset.saturating_add(self.p_filesz)
    }

    /// Address of the end of the segment; `u64::MAX` if the sum overflows.
    pub fn memory_end(&self) -> u64 {
        self.p_vaddr.saturating_add(self.p_memsz)
    }
}

impl SectionHeader {
    /// Whether the section is loaded.
    pub fn is_allocated(&self) -> bool {
        self.sh_flags.0 & elf::SHF_ALLOC.0 != 0
    }

    /// Whether the section has bytes in the file.
    pub fn is_in_file(&self) -> bool {
        self.sh_type != elf::SHT_NOBITS && self.sh_type != elf::SHT_NULL && self.sh_size > 0
    }

    /// Whether the section takes addresses of the process image. `.tbss` has an address and a size, but only
    /// each thread's copy takes space.
    pub fn takes_addresses(&self) -> bool {
        let template = self.sh_type == elf::SHT_NOBITS && self.is_thread_local();
        self.is_allocated() && self.sh_size > 0 && !template
    }

    /// Whether the section is a template that is copied for every thread.
    pub fn is_thread_local(&self) -> bool {
        self.sh_flags.0 & elf::SHF_TLS.0 != 0
    }

    /// Offset of the end of the section in the file; `u64::MAX` if the sum overflows.
    pub fn file_end(&self) -> u64 {
        self.sh_offset.saturating_add(self.sh_size)
    }

    /// Address of the end of the section; `u64::MAX` if the sum overflows.
    pub fn memory_end(&self) -> u64 {
        self.sh_addr.saturating_add(self.sh_size)
    }
}

impl Symbol {
    /// Whether the symbol represents a whole section (`STT_SECTION`).
    pub fn is_section(&self) -> bool {
        self.st_info.st_type() == elf::STT_SECTION
    }

    /// The address at which the dynamic linker finds the symbol, relative to the load address. The section of
    /// the symbol does not matter. `None` for undefined, absolute and thread-local symbols, whose values
    /// are not such addresses.
    pub fn address(&self) -> Option<u64> {
        let elsewhere = [elf::SHN_UNDEF, elf::SHN_ABS].contains(&self.st_shndx);
        let is_address = !elsewhere && self.st_info.st_type() != elf::STT_TLS;
        is_address.then_some(self.st_value)
    }

    /// The index of the defining section; `None` for a reserved value.
    pub fn section(&self) -> Option<usize> {
        self.st_shndx.index().map(usize::from)
    }
}

record! {
    FileHeader = elf::FileHeader64<LE>, "ELF header" {
        e_type: elf::FileType,
        e_machine: elf::Machine,
        e_version: u32,
        /// Address of the first instruction of a program.
        e_entry: u64,
        e_phoff: u64,
        /// Offset of the section headers; zero without section headers.
        e_shoff: u64,
        e_flags: elf::FileFlags,
        e_ehsize: u16,
        e_phentsize: u16,
        e_phnum: u16,
        e_shentsize: u16,
        /// Number of section headers; zero if there are none, or if it does not fit and is in `sh_size` of the null
        /// section.
        e_shnum: u16,
        /// Index of the section with the section names.
        e_shstrndx: elf::SymbolSection,
        ;
        e_ident: elf::Ident,
    }
}

impl FileHeader {
    /// Whether the first bytes identify ELF64, little-endian, version 1.
    pub(super) fn is_supported(&self) -> bool {
        let ident = &self.e_ident;
        ident.magic == elf::ELFMAG
            && ident.class == elf::ELFCLASS64
            && ident.data == elf::ELFDATA2LSB
            && ident.version == elf::EV_CURRENT
    }
}
