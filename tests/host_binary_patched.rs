//! Host binaries with headers and tables that say what no linker writes: refused, or transformed
//! without loss.

#![allow(clippy::unwrap_used)] // A panic is how a test fails.

#[path = "../fuzz/src"]
mod fuzz {
    pub mod preserved;
}
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use object::LittleEndian as LE;
use object::elf;
use object::read::elf::{ElfFile64, ProgramHeader as _};
use object::{Object, ObjectSection};
use rockpack::content::Content;
use rockpack::error::Kind;
use rockpack::host_binary::{Examined, examine};
use support::{fixtures, tools};

/// Fields of a section header.
const FLAGS: usize = 8;
const ADDRESS: usize = 16;
const OFFSET: usize = 24;
const SIZE: usize = 32;

/// A committed binary with changes.
struct Patched {
    bytes: Vec<u8>,
    sections: usize,
}

impl Patched {
    fn new(name: &str) -> Self {
        Self::read(&fixtures::folder().join("binaries").join(name))
    }

    fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let sections = usize::try_from(word(&bytes, 40)).unwrap();
        Self { bytes, sections }
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..][..bytes.len()].copy_from_slice(bytes);
    }

    fn section(&mut self, name: &str, fields: &[(usize, u64)]) -> &mut Self {
        let header = self.header(name);
        for (field, value) in fields {
            self.put(header + field, &value.to_le_bytes());
        }
        self
    }

    fn kind(&mut self, names: &[&str], kind: elf::SectionType) -> &mut Self {
        let headers: Vec<usize> = names.iter().map(|name| self.header(name)).collect();
        for header in headers {
            self.put(header + 4, &kind.0.to_le_bytes());
        }
        self
    }

    /// Offset of the header of a section.
    fn header(&self, name: &str) -> usize {
        let file = ElfFile64::<LE>::parse(&*self.bytes).unwrap();
        let all = file.sections().find(|section| section.name() == Ok(name));
        self.sections + all.unwrap().index().0 * 64
    }

    /// Offset, address and size of the segment of a kind.
    fn segment(&mut self, kind: elf::ProgramType, place: (u64, u64)) -> &mut Self {
        let header = self.segment_header(kind);
        let (start, size) = place;
        for (field, value) in [(8, start), (16, start), (24, start), (32, size), (40, size)] {
            self.put(header + field, &value.to_le_bytes());
        }
        self
    }

    fn segment_header(&self, kind: elf::ProgramType) -> usize {
        let headers = (64..self.bytes.len()).step_by(56);
        let mut headers = headers.filter(|at| self.bytes[*at..].starts_with(&kind.0.to_le_bytes()));
        headers.next().unwrap()
    }

    /// The value of a dynamic tag.
    fn tag(&mut self, tag: elf::DynamicTag, value: u64) -> &mut Self {
        let file = ElfFile64::<LE>::parse(&*self.bytes).unwrap();
        let (start, size) = file.section_by_name(".dynamic").unwrap().file_range().unwrap();
        let mut entries = (start..start + size).step_by(16);
        let is_it = |at: &u64| word(&self.bytes, usize::try_from(*at).unwrap()) == tag.0 as u64;
        let at = usize::try_from(entries.find(is_it).unwrap()).unwrap();
        self.put(at + 8, &value.to_le_bytes());
        self
    }

    fn refused(&self, kind: Kind, text: &str) {
        let error = match examine(&Content::of_bytes(self.bytes.clone())) {
            Err(error) => error,
            Ok(other) => panic!("{text}: {other:?}"),
        };
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(text), "{error}");
        assert!(error.place().structure.is_some(), "{error}");
    }

    /// What is written is what was there but for the device code.
    fn transformed(&self) -> Vec<u8> {
        transformed(&Content::of_bytes(self.bytes.clone()))
    }
}

fn transformed(content: &Content) -> Vec<u8> {
    let Examined::Fat(analysis) = examine(content).unwrap() else {
        panic!("not fat");
    };
    let after = analysis.apply(b"\x80").unwrap();
    fuzz::preserved::check(analysis.original(), &after);
    after.read_vec(0..after.len(), 1 << 30, "test").unwrap()
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Address, size in the file and in memory, alignment, and flags of the load segments.
fn loads(bytes: &[u8]) -> Vec<(u64, u64, u64, u64, u32)> {
    let file = ElfFile64::<LE>::parse(bytes).unwrap();
    let headers = file.elf_program_headers().iter();
    let loads = headers.filter(|header| header.p_type(LE) == elf::PT_LOAD);
    let fields = |load: &elf::ProgramHeader64<LE>| {
        let sizes = (load.p_filesz(LE), load.p_memsz(LE));
        (load.p_vaddr(LE), sizes.0, sizes.1, load.p_align(LE), load.p_flags(LE).0)
    };
    loads.map(fields).collect()
}

/// Of sections that move because there are too few bytes for more program headers.
#[test]
fn tables_that_sections_show_in_part_do_not_move() {
    let (unknown, tag) = ("belong to no section", "make room for program headers");
    let case = |text: &str, change: fn(&mut Patched) -> &mut Patched| {
        let mut file = Patched::new("bfd_shared");
        change(&mut file).refused(Kind::Unsupported, text);
    };
    case(unknown, |file| file.section(".dynstr", &[(SIZE, 0x100)]));
    case(unknown, |file| file.kind(&[".gnu.hash"], elf::SHT_NULL));
    case(unknown, |file| file.kind(&[".gnu.hash"], elf::SHT_NOBITS));
    case(tag, |file| {
        file.section(".gnu.version", &[(ADDRESS, 0x7dd), (OFFSET, 0x7dd), (SIZE, 0x35)])
    });
    // The last byte of the strings is a zero, as bytes between sections are.
    case(tag, |file| file.section(".dynstr", &[(SIZE, 0x274)]));
    // A relocation that leads there, as an addend to the load address.
    let mut file = Patched::new("bfd_shared");
    file.put(0x858 + 8, &u64::from(elf::R_X86_64_64.0).to_le_bytes());
    file.put(0x858 + 16, &0x298_u64.to_le_bytes());
    file.refused(Kind::Unsupported, "make room for program headers");
    // Relocations, in what is called strings.
    case(tag, |file| {
        let others = [".gnu.hash", ".dynstr", ".gnu.version", ".gnu.version_r"];
        file.kind(&[".rela.dyn"], elf::SHT_STRTAB).kind(&others, elf::SHT_NOTE)
    });
}

#[test]
fn headers_of_more_than_what_moves_are_refused() {
    let text = "covers a section that has to make room";
    let mut file = Patched::new("bfd_shared");
    file.segment(elf::PT_NOTE, (0x40, 0x254)).refused(Kind::Unsupported, text);
    let mut file = Patched::new("bfd_shared");
    file.segment(elf::PT_GNU_EH_FRAME, (0x270, 0x24)).refused(Kind::Unsupported, text);
}

/// Zeros that no section names are memory, and so are other bytes.
#[test]
fn what_no_section_names_behind_the_device_code_stays_loaded() {
    let mut file = Patched::new("bfd_shared");
    file.kind(&[".eh_frame_hdr", ".eh_frame"], elf::SHT_NULL);
    file.section(".eh_frame_hdr", &[(FLAGS, 0)]).section(".eh_frame", &[(FLAGS, 0)]);
    file.put(0xbff8, &[0; 0xc290 - 0xbff8]);
    let is_there = |file: &Patched| {
        let after = loads(&file.transformed());
        assert!(after.iter().any(|load| (load.0..load.0 + load.2).contains(&0xc28f)), "{after:x?}");
    };
    // A header names them, or nothing does.
    is_there(&file);
    let header = file.segment_header(elf::PT_GNU_EH_FRAME);
    file.put(header, &0u32.to_le_bytes());
    file.put(header + 32, &0u64.to_le_bytes());
    is_there(&file);

    let mut file = Patched::new("lld_relr");
    file.section(".hip_fatbin", &[(SIZE, 0x8ff0)]);
    for (value, start) in [(0, 0x9ff8), (7, 0x9ff0)] {
        let place = file.header(".hip_fatbin") + OFFSET;
        let end = usize::try_from(word(&file.bytes, place)).unwrap() + 0x8ff0;
        file.put(end, &[value; 8]);
        let after = loads(&file.transformed());
        assert!(after.iter().any(|load| load.0 == start), "{value}: {after:x?}");
    }
}

/// The dynamic linker does not read sections: a copy could be edited in place of what it reads.
#[test]
fn symbols_that_the_dynamic_linker_does_not_read_are_refused() {
    let mut file = Patched::new("rdc");
    let header = file.header(".dynsym");
    let start = usize::try_from(word(&file.bytes, header + OFFSET)).unwrap();
    let size = usize::try_from(word(&file.bytes, header + SIZE)).unwrap();
    let copy = file.bytes[start..start + size].to_vec();
    let end = file.bytes.len() as u64;
    file.bytes.extend(copy);
    file.section(".dynsym", &[(FLAGS, 0), (OFFSET, end)]);
    file.refused(Kind::Unsupported, "not loaded where DT_SYMTAB leads");
    let mut file = Patched::new("rdc");
    file.kind(&[".dynsym"], elf::SHT_PROGBITS);
    file.refused(Kind::Unsupported, "no section has dynamic symbols");
}

/// Tools leave out what sections without bytes are said to be.
#[test]
fn tables_in_sections_without_bytes_are_refused() {
    let text = "by its flags or its type";
    let mut file = Patched::new("bfd_shared");
    file.kind(&[".rela.dyn"], elf::SHT_NOBITS).refused(Kind::Unsupported, text);
    let mut file = Patched::new("bfd_shared");
    file.kind(&[".dynamic"], elf::SHT_NULL).section(".dynamic", &[(FLAGS, 0)]);
    file.kind(&[".data.rel.ro"], elf::SHT_NOBITS).section(".data.rel.ro", &[(SIZE, 0x208)]);
    file.refused(Kind::Unsupported, text);
}

#[test]
fn parts_of_packed_relocations_are_refused() {
    let mut file = Patched::new("lld_relr");
    file.tag(elf::DT_RELRSZ, 36).refused(Kind::Malformed, "no number of whole words");
}

/// Relocations of all kinds that lead into the device code, which would be left behind.
#[test]
fn other_relocations_into_the_device_code_are_refused() {
    let code = 0x1040_u64;
    for (kind, symbol, addend) in [
        (elf::R_X86_64_IRELATIVE, 0, code),
        (elf::R_X86_64_64, 0, code),
        (elf::R_X86_64_32, 15, 0),
        (elf::R_X86_64_PC32, 15, 8),
        (elf::R_X86_64_SIZE64, 15, 0),
    ] {
        let mut file = Patched::new("rdc");
        // The first relocation, that of a pointer to a function, is one of symbol 15, a bundle's.
        file.put(0x980 + 8, &(symbol << 32 | u64::from(kind.0)).to_le_bytes());
        file.put(0x980 + 16, &addend.to_le_bytes());
        file.refused(Kind::Unsupported, "is no wrapper's");
    }
}

/// Where no section is said to be code, it may be anywhere.
#[test]
fn a_segment_of_unknown_code_stays_executable() {
    let mut file = Patched::new("bfd_shared");
    let header = 64 + 2 * 56;
    file.put(header + 4, &5u32.to_le_bytes());
    let after = loads(&file.transformed());
    let parts = after.iter().filter(|load| (0x2000..0xd000).contains(&load.0));
    let flags: Vec<u32> = parts.map(|load| load.4).collect();
    assert_eq!(flags, [5, 5]);
}

/// Data that asks for more than the alignment of pages, and a program that loads the library again and
/// again, so that it comes to lie elsewhere, and tells by how much the data misses its alignment.
const ALIGNED: &str = "__attribute__((aligned(0x10000))) int aligned = 1;\n";
const LOADER: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>
int main(int count, char **names) {
    unsigned long missed = 0;
    for (int n = 0; n < 64; n++) {
        void *library = dlopen(names[1], RTLD_NOW);
        if (!library) return puts(dlerror()), 1;
        missed |= (unsigned long) dlsym(library, "aligned") & 0xffff;
        dlclose(library);
        mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    printf("%#lx\n", missed);
}
"#;

/// A library of `cases.S` and aligned data, or `None` without gcc.
fn aligned(case: &str, flags: &[&str]) -> Option<PathBuf> {
    let source = fixtures::scratch(&format!("{case}-source")).join("aligned.c");
    std::fs::write(&source, ALIGNED).unwrap();
    let source = source.into_os_string().into_string().unwrap();
    fixtures::assembled(case, &[flags, &[&source]].concat())
}

/// By how much the data of a library misses its alignment.
fn missed(library: &Path) -> String {
    let folder = fixtures::scratch("aligned-loader");
    let (source, program) = (folder.join("load.c"), folder.join("load"));
    std::fs::write(&source, LOADER).unwrap();
    tools::succeed(Command::new("gcc").arg("-o").arg(&program).arg(source).arg("-ldl"));
    let mut load = Command::new(program);
    load.env("LD_LIBRARY_PATH", fixtures::runtime().unwrap());
    let said = tools::succeed(load.arg(library));
    said.lines().last().unwrap().to_owned()
}

/// A load segment without bytes may have its offset anywhere, as long as it is congruent.
#[test]
fn empty_segments_in_the_device_code_stay_congruent_by_large_alignments() {
    let Some(path) = aligned("empty", &["-DCODE=0x18000"]) else {
        return;
    };
    let mut file = Patched::read(&path);
    let header = file.segment_header(elf::PT_GNU_STACK);
    let start = word(&file.bytes, file.header(".hip_fatbin") + OFFSET);
    for offset in (start..start + 0x18000).step_by(0x1000) {
        let address = 0x20_0000 + offset;
        file.put(header, &elf::PT_LOAD.0.to_le_bytes());
        for (field, value) in [offset, address, address, 0, 0x100, 0x10000].into_iter().enumerate()
        {
            file.put(header + 8 + 8 * field, &value.to_le_bytes());
        }
        file.transformed();
    }
}

/// Loaders align a file to the largest alignment of its segments, which the cut must leave as it is,
/// whether much is cut out, in files for pages of 4 KiB or of 2 MiB, or nothing can be.
#[test]
fn alignments_above_that_of_pages_are_kept() {
    let large = "-Wl,-z,max-page-size=0x200000";
    for (case, flags, cut) in [
        ("little", &[][..], 0..1),
        ("much", &["-DCODE=0x18000"], 0x20000..0x40000),
        ("large", &["-DCODE=0x18000", large], 0x20000..0x40000),
    ] {
        let Some(path) = aligned(case, flags) else {
            return;
        };
        let before = std::fs::read(&path).unwrap();
        let after = transformed(&Content::open(&path).unwrap());
        let removed = (before.len() as u64).saturating_sub(after.len() as u64) & !0xfff;
        assert!(cut.contains(&removed), "{case}: {removed:#x}");
        let data = loads(&after).last().unwrap().3;
        assert_eq!(data, 0x10000, "{case}");
        let library = path.with_file_name("transformed.so");
        std::fs::write(&library, after).unwrap();
        assert_eq!((missed(&path), missed(&library)), ("0".into(), "0".into()), "{case}");
    }
}
