use std::process::Command;

use super::*;

/// Length of a symbol: u32 name | u8 info | u8 other | u16 section | u64 value | u64 size.
const SYMBOL_LEN: usize = 24;

/// An AMDGPU ELF with a section table of null, .dynsym with `symbols` (name, section), and its names.
fn code_object(abi_version: u8, flags: u32, symbols: &[(&str, u16)]) -> Vec<u8> {
    let (mut names, mut table) = (vec![0_u8], vec![0_u8; SYMBOL_LEN]);
    for (name, section) in symbols {
        let at = u32::try_from(names.len()).unwrap();
        names.extend(name.as_bytes());
        names.push(0);
        let mut symbol = [0_u8; SYMBOL_LEN];
        symbol[..4].copy_from_slice(&at.to_le_bytes());
        symbol[6..8].copy_from_slice(&section.to_le_bytes());
        table.extend(symbol);
    }
    let mut file = vec![0_u8; 64];
    file[..9].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, OS_ABI_HSA.0, abi_version]);
    file[16] = 3;
    file[18..20].copy_from_slice(&elf::EM_AMDGPU.0.to_le_bytes());
    file[48..52].copy_from_slice(&flags.to_le_bytes());
    let table_at = file.len() as u64;
    file.extend(&table);
    let names_at = file.len() as u64;
    file.extend(&names);
    let sections_at = file.len() as u64;
    file[40..48].copy_from_slice(&sections_at.to_le_bytes());
    // e_shentsize and e_shnum.
    (file[58], file[60]) = (64, 3);
    add_section(&mut file, 0, 0, 0, 0);
    add_section(&mut file, elf::SHT_DYNSYM.0, table_at, table.len(), 2);
    add_section(&mut file, 3, names_at, names.len(), 0);
    file
}

fn add_section(file: &mut Vec<u8>, kind: u32, offset: u64, size: usize, link: u32) {
    let mut bytes = [0_u8; 64];
    bytes[4..8].copy_from_slice(&kind.to_le_bytes());
    bytes[24..32].copy_from_slice(&offset.to_le_bytes());
    bytes[32..40].copy_from_slice(&(size as u64).to_le_bytes());
    bytes[40..44].copy_from_slice(&link.to_le_bytes());
    file.extend(bytes);
}

fn target(abi_version: u8, flags: u32) -> Option<String> {
    let content = Content::of_bytes(code_object(abi_version, flags, &[]));
    Some(read_header(&content).unwrap().target?.to_string())
}

#[test]
fn headers_that_loaders_refuse_are_refused() {
    for version in 0..=ABI_VERSION_MAX {
        read_whole(&Content::of_bytes(code_object(version, 0x53f, &[]))).unwrap();
    }
    // EI_OSABI, EI_ABIVERSION and e_type.
    for (at, value, expected) in [
        (7, 0, "has ABI 0 (EI_OSABI)"),
        (7, 65, "has ABI 65"),
        (8, ABI_VERSION_MAX + 1, "has ABI version 5 (EI_ABIVERSION)"),
        (8, 9, "has ABI version 9"),
        (8, 255, "has ABI version 255"),
        (16, 0, "has type 0 (e_type)"),
        (16, 1, "has type 1"),
        (16, 2, "has type 2"),
        (17, 1, "has type 259"),
    ] {
        let mut bytes = code_object(2, 0x53f, &[]);
        bytes[at] = value;
        let error = read_whole(&Content::of_bytes(bytes.clone())).unwrap_err();
        assert!(error.hint_text().is_some() && error.to_string().contains(expected), "{error}");
        // Displaying a header refuses nothing.
        read_header(&Content::of_bytes(bytes)).unwrap();
    }
}

#[test]
fn flags_name_processor_and_features() {
    for (version, flags, expected) in [
        (2, 0x2a, Some("gfx803")),
        (2, 0x53f, Some("gfx90a")),
        (2, 0x73f, Some("gfx90a:xnack+")),
        (2, 0x63f, Some("gfx90a:xnack-")),
        (3, 0xe4c, Some("gfx942:sramecc+:xnack-")),
        (4, 0x0100_0054, Some("gfx11-generic")),
        (1, 0x32f, Some("gfx906:sramecc+:xnack+")),
        (1, 0x2f, Some("gfx906")),
        (0, 0x2f, None),
        (2, 0xff, None),
    ] {
        assert_eq!(target(version, flags).as_deref(), expected, "{flags:#x}");
    }
}

#[test]
fn kernels_are_the_defined_descriptors() {
    let symbols = [("b.kd", 1), ("a.kd", 2), ("b", 1), ("undefined.kd", 0), ("a.kd", 2)];
    let content = Content::of_bytes(code_object(2, 0x2a, &symbols));
    let names: Vec<_> = kernel_names(&content).unwrap().into_iter().collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn a_code_object_cut_anywhere_is_an_error() {
    let bytes = code_object(2, 0x2a, &[("a.kd", 1)]);
    for len in 0..bytes.len() {
        assert!(kernel_names(&Content::of_bytes(&bytes[..len])).is_err(), "cut to {len}");
    }
}

#[test]
fn invalid_code_objects_are_refused() {
    let mut host = code_object(2, 0x2a, &[]);
    host[18] = 62;
    assert!(read_header(&Content::of_bytes(host)).is_err());
    assert!(read_header(&Content::of_bytes(*b"BC\xc0\xde")).is_err());
}

/// Compiles `source` into a shared library.
fn object_file(source: &str, flags: &[&str]) -> Content {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("x.c"), folder.path().join("x.so"));
    std::fs::write(&input, source).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-nostdlib", "-fno-asynchronous-unwind-tables"]);
    compiler.args(["-Wl,--build-id=none"]).args(flags);
    let status = compiler.arg("-o").args([&output, &input]).status();
    assert!(status.unwrap().success());
    Content::of_bytes(std::fs::read(output).unwrap())
}

#[test]
fn debug_information_does_not_count_and_code_does() {
    let source = "int f(int x) { return x + 1; }";
    let plain = object_file(source, &[]);
    let debug = object_file(source, &["-g"]);
    assert_ne!(plain.len(), debug.len());
    assert_eq!(loaded_digest(&plain).unwrap(), loaded_digest(&debug).unwrap());
    let other = object_file("int f(int x) { return x + 2; }", &[]);
    assert_ne!(loaded_digest(&plain).unwrap(), loaded_digest(&other).unwrap());
    let larger = object_file("int f(int x) { return x + 1; } int y[99];", &[]);
    assert_ne!(loaded_digest(&plain).unwrap(), loaded_digest(&larger).unwrap());
}

#[test]
fn a_code_object_cut_anywhere_is_an_error_or_differs() {
    let whole = object_file("int f(int x) { return x + 1; }", &[]);
    let expected = loaded_digest(&whole).unwrap();
    for end in (0..whole.len()).step_by(7) {
        if let Ok(found) = loaded_digest(&whole.slice(0..end).unwrap()) {
            assert_ne!(found, expected, "{end}");
        }
    }
}

/// Every section of code is made to name the same bytes.
#[test]
fn sections_that_share_bytes_are_refused() {
    let whole = object_file("int f(int x) { return x + 1; }", &[]);
    let file = ElfFile::with_header(&whole, FileHeader::read(&whole).unwrap().unwrap()).unwrap();
    let mut shared = whole.clone();
    for index in 1..file.sections.len() as u64 {
        let header = file.header.e_shoff + 64 * index;
        shared = shared.patched(header + 4, elf::SHT_PROGBITS.0.to_le_bytes()).unwrap();
        shared = shared.patched(header + 8, elf::SHF_ALLOC.0.to_le_bytes()).unwrap();
        shared = shared.patched(header + 24, 0_u64.to_le_bytes()).unwrap();
        shared = shared.patched(header + 32, (whole.len() / 2).to_le_bytes()).unwrap();
    }
    assert_eq!(loaded_digest(&shared).unwrap_err().kind(), Kind::Malformed);
}

#[test]
fn other_code_counts_as_a_whole() {
    let one = loaded_digest(&Content::of_bytes(*b"spirv 1")).unwrap();
    assert_ne!(one, loaded_digest(&Content::of_bytes(*b"spirv 2")).unwrap());
}
