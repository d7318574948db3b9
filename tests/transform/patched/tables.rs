//! Tables that the dynamic linker and the loader read, and sections show only in part or not at all; and
//! alignments.

use std::path::{Path, PathBuf};
use std::process::Command;

use object::LittleEndian as LE;
use object::elf;
use object::read::elf::{ElfFile64, ProgramHeader as _};
use rockpack_core::error::Kind;
use support::{fixtures, tools};

use super::bfd_shared;
use super::file::{ADDRESS, ALIGN, FLAGS, OFFSET, Patched, SIZE, transformed};

/// Address, size in the file, size in memory, alignment, and flags of each load segment.
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

/// There are too few bytes for more program headers, so sections have to move.
#[test]
fn tables_that_sections_show_in_part_do_not_move() {
    let (unknown, tag) = ("belong to no section", "make room for program headers");
    let others = [".gnu.hash", ".dynstr", ".gnu.version", ".gnu.version_r"];
    for (text, file) in [
        (unknown, bfd_shared().section(".dynstr", &[(SIZE, 0x100)])),
        (unknown, bfd_shared().kind(&[".gnu.hash"], elf::SHT_NULL)),
        (unknown, bfd_shared().kind(&[".gnu.hash"], elf::SHT_NOBITS)),
        (
            tag,
            bfd_shared()
                .section(".gnu.version", &[(ADDRESS, 0x7dd), (OFFSET, 0x7dd), (SIZE, 0x35)]),
        ),
        // The last byte of the strings is zero, like the bytes between sections.
        (tag, bfd_shared().section(".dynstr", &[(SIZE, 0x274)])),
        // A relocation whose addend, an offset from the load address, leads there.
        (tag, bfd_shared().word(0x858 + 8, u64::from(elf::R_X86_64_64.0)).word(0x858 + 16, 0x298)),
        // Relocations in a section that claims to have strings.
        (tag, bfd_shared().kind(&[".rela.dyn"], elf::SHT_STRTAB).kind(&others, elf::SHT_NOTE)),
    ] {
        file.refused(Kind::Unsupported, text);
    }
}

/// Another section has the rest of the table, which stays in place.
#[test]
fn tables_that_go_on_in_another_section_do_not_move() {
    for (fixture, name) in [("bfd_shared", ".gnu.hash"), ("bfd_pie", ".gnu.version_r")] {
        let file = Patched::new(fixture);
        let [offset, address, size] = [OFFSET, ADDRESS, SIZE]
            .map(|field| file.number(file.field(file.index(name), field)) as u64);
        let (size, end) = (size - 4, offset + size - 4);
        assert_eq!(offset, address);
        let rest = [(FLAGS, 2), (ADDRESS, end), (OFFSET, end), (SIZE, 4), (ALIGN, 1)];
        let file = file.section(name, &[(SIZE, size)]).section(".comment", &rest);
        file.refused(Kind::Unsupported, "its section does not begin there or is shorter");
    }
}

#[test]
fn headers_of_more_than_what_moves_are_refused() {
    let text = "covers a section that must move to make room";
    for (p_type, start, size) in [(elf::PT_NOTE, 0x40, 0x254), (elf::PT_GNU_EH_FRAME, 0x270, 0x24)]
    {
        let file = Patched::new("bfd_shared");
        let index = file.segment(p_type);
        let file = file.with_segment(index, p_type, [start, start, size, size, 4]);
        file.refused(Kind::Unsupported, text);
    }
}

/// Zeros outside of sections are memory like other bytes.
#[test]
fn what_no_section_names_behind_the_device_code_stays_loaded() {
    let file = Patched::new("bfd_shared")
        .kind(&[".eh_frame_hdr", ".eh_frame"], elf::SHT_NULL)
        .section(".eh_frame_hdr", &[(FLAGS, 0)])
        .section(".eh_frame", &[(FLAGS, 0)])
        .put(0xbff8, &[0; 0xc290 - 0xbff8]);
    // A header names them, or a header without a type, or no header.
    assert_loaded(&file);
    let index = file.segment(elf::PT_GNU_EH_FRAME);
    assert_loaded(&file.clone().with_segment(index, elf::PT_NULL, [0xbff8, 0xbff8, 0, 0x8c, 4]));
    assert_loaded(&file.with_segment(index, elf::PT_NULL, [0; 5]));

    let file = Patched::new("lld_relr").section(".hip_fatbin", &[(SIZE, 0x8ff0)]);
    let end = file.number(file.field(file.index(".hip_fatbin"), OFFSET)) + 0x8ff0;
    for (value, start) in [(0, 0x9ff8), (7, 0x9ff0)] {
        let after = loads(&file.clone().put(end, &[value; 8]).transformed());
        assert!(after.iter().any(|load| load.0 == start), "{value}: {after:x?}");
    }
}

fn assert_loaded(file: &Patched) {
    let after = loads(&file.transformed());
    assert!(after.iter().any(|load| (load.0..load.0 + load.2).contains(&0xc28f)), "{after:x?}");
}

/// The dynamic linker ignores sections: the transform could edit a copy instead of the symbols in use.
#[test]
fn symbols_that_the_dynamic_linker_does_not_read_are_refused() {
    let mut file = Patched::new("rdc");
    let (index, end) = (file.index(".dynsym"), file.0.len());
    let start = file.number(file.field(index, OFFSET));
    let size = file.number(file.field(index, SIZE));
    file.0.extend_from_within(start..start + size);
    let file = file.with(index, &[(FLAGS, 0), (OFFSET, end as u64)]);
    file.refused(Kind::Unsupported, "not loaded at DT_SYMTAB");
    let file = Patched::new("rdc").kind(&[".dynsym"], elf::SHT_PROGBITS);
    file.refused(Kind::Unsupported, "no section has dynamic symbols");
}

/// Tools leave out the content of sections that claim to have no bytes.
#[test]
fn tables_in_sections_without_bytes_are_refused() {
    let text = "its flags or its type say";
    bfd_shared().kind(&[".rela.dyn"], elf::SHT_NOBITS).refused(Kind::Unsupported, text);
    let file = bfd_shared()
        .kind(&[".dynamic"], elf::SHT_NULL)
        .section(".dynamic", &[(FLAGS, 0)])
        .kind(&[".data.rel.ro"], elf::SHT_NOBITS)
        .section(".data.rel.ro", &[(SIZE, 0x208)]);
    file.refused(Kind::Unsupported, text);
}

#[test]
fn parts_of_packed_relocations_are_refused() {
    let file = Patched::new("lld_relr").tag(elf::DT_RELRSZ, 36);
    file.refused(Kind::Malformed, "not a multiple of 8 bytes");
}

/// Relocations of every kind that lead into the device code, and would be left behind.
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
        // The first relocation, a pointer to a function, now has symbol 15, which is a bundle's.
        let info = symbol << 32 | u64::from(kind.0);
        let file = Patched::new("rdc").word(0x980 + 8, info).word(0x980 + 16, addend);
        file.refused(Kind::Unsupported, "belongs to no wrapper");
    }
}

/// If no section claims to be code, code may be anywhere; otherwise, anywhere except in known data.
#[test]
fn a_segment_of_unknown_code_stays_executable() {
    let header = 64 + 2 * 56;
    let file = Patched::new("bfd_shared").put(header + 4, &5u32.to_le_bytes());
    assert_eq!(load_flags(&file), [5, 5]);
    let file = file.section(".rodata", &[(FLAGS, 6)]);
    assert_eq!(load_flags(&file), [5, 4]);
    let name =
        u32::try_from(file.number(file.field(file.index(".data"), 0)) & 0xffff_ffff).unwrap();
    let header = file.field(file.index(".eh_frame"), 0);
    assert_eq!(load_flags(&file.clone().put(header, &name.to_le_bytes())), [5, 5]);
    // Between the two sections.
    assert_eq!(load_flags(&file.put(0xc084, &[0xc3; 4])), [5, 5]);
}

/// The flags of the load segments between headers and relocated data.
fn load_flags(file: &Patched) -> Vec<u32> {
    let after = loads(&file.transformed());
    let parts = after.iter().filter(|load| (0x2000..0xd000).contains(&load.0));
    parts.map(|load| load.4).collect()
}

/// Data with an alignment larger than a page, and a program that loads the library repeatedly, at different
/// addresses, and prints how far the data is from its alignment.
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

/// A library made from `cases.S` and aligned data.
fn aligned(case: &str, flags: &[&str]) -> PathBuf {
    let source = fixtures::scratch(&format!("{case}-source")).join("aligned.c");
    std::fs::write(&source, ALIGNED).unwrap();
    let source = source.into_os_string().into_string().unwrap();
    fixtures::assembled(case, &[flags, &[&source]].concat())
}

/// The distance of a library's data from its alignment.
fn missed(library: &Path) -> String {
    let folder = fixtures::scratch("aligned-loader");
    let (source, program) = (folder.join("load.c"), folder.join("load"));
    std::fs::write(&source, LOADER).unwrap();
    tools::succeed(Command::new("gcc").arg("-o").arg(&program).arg(source).arg("-ldl"));
    let mut load = Command::new(program);
    load.env("LD_LIBRARY_PATH", fixtures::runtime());
    let said = tools::succeed(load.arg(library));
    said.lines().last().unwrap().to_owned()
}

/// A load segment without bytes may have any offset that is congruent.
#[test]
fn empty_segments_in_the_device_code_stay_congruent_by_large_alignments() {
    let path = aligned("empty", &["-DCODE=0x18000"]);
    let file = Patched::read(&path);
    let index = file.segment(elf::PT_GNU_STACK);
    let start = file.number(file.field(file.index(".hip_fatbin"), OFFSET)) as u64;
    for offset in (start..start + 0x18000).step_by(0x1000) {
        let fields = [offset, 0x20_0000 + offset, 0, 0x100, 0x10000];
        file.clone().with_segment(index, elf::PT_LOAD, fields).transformed();
    }
}

/// Loaders align a file to the largest alignment of its segments. The cut must preserve that, whether it
/// removes much, in files for pages of 4 KiB or of 2 MiB, or nothing.
#[test]
fn alignments_above_that_of_pages_are_kept() {
    let large = "-Wl,-z,max-page-size=0x200000";
    for (case, flags, cut) in [
        ("little", &[][..], 0..1),
        ("much", &["-DCODE=0x18000"], 0x20000..0x40000),
        ("large", &["-DCODE=0x18000", large], 0x20000..0x40000),
    ] {
        let path = aligned(case, flags);
        let before = std::fs::read(&path).unwrap();
        let after = transformed(&support::fixtures::content(&path));
        let removed = (before.len() as u64).saturating_sub(after.len() as u64) & !0xfff;
        assert!(cut.contains(&removed), "{case}: {removed:#x}");
        let data = loads(&after).last().unwrap().3;
        assert_eq!(data, 0x10000, "{case}");
        let library = path.with_file_name("transformed.so");
        std::fs::write(&library, after).unwrap();
        assert_eq!((missed(&path), missed(&library)), ("0".into(), "0".into()), "{case}");
    }
}
