//! A committed binary with a few words changed, so that one part of the file contradicts another.

use std::path::Path;

use object::LittleEndian as LE;
use object::elf;
use object::read::elf::{ElfFile64, ProgramHeader as _};
use object::{Object, ObjectSection};
use rockpack_core::content::Content;
use rockpack_core::error::{Kind, Result};
use rockpack_split::host_binary::{Examined, examine};
use support::fixtures;
use support::program::repository;

use super::fuzz::preserved;

// Offsets of fields in a section header.
pub const TYPE: usize = 4;
pub const FLAGS: usize = 8;
pub const ADDRESS: usize = 16;
pub const OFFSET: usize = 24;
pub const SIZE: usize = 32;
pub const LINK: usize = 40;
pub const ALIGN: usize = 48;

/// The bytes of a binary.
#[derive(Clone)]
pub struct Patched(pub Vec<u8>);

impl Patched {
    /// Reads a committed binary, or the seed `transformed`.
    pub fn new(name: &str) -> Self {
        let folder = match name {
            "transformed" => repository("fuzz/seeds/host_binary"),
            _ => fixtures::folder().join("binaries"),
        };
        Self::read(&folder.join(name))
    }

    pub fn read(path: &Path) -> Self {
        Self(std::fs::read(path).unwrap())
    }

    pub fn put(mut self, at: usize, bytes: &[u8]) -> Self {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    pub fn word(self, at: usize, value: u64) -> Self {
        self.put(at, &value.to_le_bytes())
    }

    pub fn copy(self, from: usize, size: usize, to: usize) -> Self {
        let bytes = self.0[from..from + size].to_vec();
        self.put(to, &bytes)
    }

    pub fn number(&self, at: usize) -> usize {
        usize::try_from(u64::from_le_bytes(self.0[at..at + 8].try_into().unwrap())).unwrap()
    }

    /// The index of a section.
    pub fn index(&self, name: &str) -> usize {
        let file = ElfFile64::<LE>::parse(&*self.0).unwrap();
        file.section_by_name(name).unwrap().index().0
    }

    /// The offset of a field in a section header.
    pub fn field(&self, index: usize, field: usize) -> usize {
        self.number(40) + index * 64 + field
    }

    pub fn with_type(self, section: usize, sh_type: elf::SectionType) -> Self {
        let at = self.field(section, TYPE);
        self.put(at, &sh_type.0.to_le_bytes())
    }

    /// Sets fields of a section header.
    pub fn with(self, section: usize, fields: &[(usize, u64)]) -> Self {
        fields.iter().fold(self, |file, (field, value)| {
            let at = file.field(section, *field);
            file.word(at, *value)
        })
    }

    /// Sets fields of a section header, by the section's name.
    pub fn section(self, name: &str, fields: &[(usize, u64)]) -> Self {
        let index = self.index(name);
        self.with(index, fields)
    }

    /// Sets the type of sections, by their names.
    pub fn kind(self, names: &[&str], sh_type: elf::SectionType) -> Self {
        let indexes: Vec<usize> = names.iter().map(|name| self.index(name)).collect();
        indexes.into_iter().fold(self, |file, index| file.with_type(index, sh_type))
    }

    /// Sets a program header: type, offset, address, sizes and alignment.
    pub fn with_segment(self, index: usize, p_type: elf::ProgramType, fields: [u64; 5]) -> Self {
        let [offset, address, in_file, in_memory, align] = fields;
        let words = [offset, address, address, in_file, in_memory, align].map(u64::to_le_bytes);
        let at = 64 + index * 56;
        self.put(at, &p_type.0.to_le_bytes()).put(at + 8, &words.concat())
    }

    /// The index of the first segment of a type.
    pub fn segment(&self, p_type: elf::ProgramType) -> usize {
        let file = ElfFile64::<LE>::parse(&*self.0).unwrap();
        let mut headers = file.elf_program_headers().iter();
        headers.position(|header| header.p_type(LE) == p_type).unwrap()
    }

    /// The offset of the entry with a dynamic tag.
    pub fn tag_at(&self, tag: elf::DynamicTag) -> usize {
        let index = self.index(".dynamic");
        let (start, size) =
            (self.number(self.field(index, OFFSET)), self.number(self.field(index, SIZE)));
        let is_it = |at: &usize| self.number(*at) as i64 == tag.0;
        (start..start + size).step_by(16).find(is_it).unwrap()
    }

    /// Sets the value of a dynamic tag.
    pub fn tag(self, tag: elf::DynamicTag, value: u64) -> Self {
        let at = self.tag_at(tag);
        self.word(at + 8, value)
    }

    pub fn content(&self) -> Content {
        Content::of_bytes(&*self.0)
    }

    pub fn examine(&self) -> Result<Examined> {
        examine(&self.content())
    }

    /// The transformed file. Fails unless it is the same as before except for the device code.
    pub fn transformed(&self) -> Vec<u8> {
        transformed(&self.content())
    }

    #[track_caller]
    pub fn refused(&self, kind: Kind, text: &str) {
        match self.examine() {
            Err(error) => {
                assert_eq!(error.kind(), kind, "{error}");
                assert!(error.to_string().contains(text), "{error}");
                assert!(error.place().structure.is_some(), "{error}");
            }
            Ok(_) => panic!("is not refused: {text}"),
        }
    }
}

pub fn transformed(content: &Content) -> Vec<u8> {
    let Examined::Fat(analysis) = examine(content).unwrap() else { panic!("is not fat") };
    let after = analysis.apply(b"\x80").unwrap();
    preserved::check(analysis.original(), &after);
    after.read_vec(0..after.len(), 1 << 30, "test").unwrap()
}
