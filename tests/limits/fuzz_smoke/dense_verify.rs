//! Host binaries in which many records lead to one thing, for verification, which reads them through a crate
//! that keeps everything it has read. See also `dense_elf`.

#![allow(clippy::cast_possible_truncation, reason = "counts of these files fit")]

use object::elf;

use super::dense::LEN;
use super::dense_elf::{File, HEADERS, one_string, symbols, words};

/// The inputs of a target that verifies host binaries.
pub fn inputs(target: &str) -> Vec<Vec<u8>> {
    match target {
        "verify_file" => vec![
            one_symbol_table(LEN / 2 / (HEADERS[2] + 24)),
            names_of_the_library(LEN / 2 / 16, LEN / 2),
            names_of_sections(LEN / 2 / HEADERS[2], LEN / 2),
            bundles(LEN / 2400, 2400),
        ],
        _ => Vec::new(),
    }
}

/// Starts a library with one wrapper; also returns the wrapper's offset and length. The next data put into
/// the file is what its relocations refer to.
fn wrapped() -> (File, (u64, u64)) {
    let mut file = File::new(elf::EM_X86_64, 1);
    let names = file.put(b"\0.hipFatBinSegment\0");
    let wrapper = file.put(&words(&[0x1_4849_5046, 0, 0]));
    file.segment(elf::PT_LOAD, (0, wrapper.0 + wrapper.1));
    file.section(0, (elf::SHT_STRTAB, 0), names, 0);
    file.section(1, (elf::SHT_PROGBITS, 3), wrapper, 0);
    (file, wrapper)
}

/// A relocation of the wrapper's pointer, with symbol 0.
fn relocation(wrapper: (u64, u64)) -> Vec<u8> {
    words(&[wrapper.0 + 8, elf::R_X86_64_64.0.into(), 0])
}

/// Sections of one relocation each, all with the same symbol table.
pub fn one_symbol_table(count: usize) -> Vec<u8> {
    let (mut file, wrapper) = wrapped();
    let table = file.put(&symbols(1, 0, 1));
    file.section(0, (elf::SHT_DYNSYM, 2), table, 1);
    for _ in 0..count {
        let one = file.put(&relocation(wrapper));
        file.section(0, (elf::SHT_RELA, 2), one, 3);
    }
    file.finish(1)
}

/// A wrapper whose pointer to its bundle is a relocation with a symbol.
#[allow(dead_code, reason = "not much of an input for the smoke test")]
pub fn wrapper_by_symbol() -> Vec<u8> {
    const ADDEND: u64 = 16;
    let mut file = File::new(elf::EM_X86_64, 1);
    let names = file.put(b"\0.hip_fatbin\0.hipFatBinSegment\0");
    let bundle = file.put(&super::dense::bundle(1));
    let wrapper = file.put(&words(&[0x1_4849_5046, 0, 0]));
    let symbol = [[0; 24], [0; 24]].concat();
    let symbol = [&symbol[..32], &words(&[bundle.0 - ADDEND]), &symbol[40..]].concat();
    let table = file.put(&symbol);
    let by_symbol = u64::from(elf::R_X86_64_64.0) | 1 << 32;
    let one = file.put(&words(&[wrapper.0 + 8, by_symbol, ADDEND]));
    file.segment(elf::PT_LOAD, (0, one.0 + one.1));
    file.section(0, (elf::SHT_STRTAB, 0), names, 0);
    file.section(1, (elf::SHT_PROGBITS, 2), bundle, 0);
    file.section(13, (elf::SHT_PROGBITS, 3), wrapper, 0);
    file.section(0, (elf::SHT_DYNSYM, 2), table, 1);
    file.section(0, (elf::SHT_RELA, 2), one, 4);
    file.finish(1)
}

/// Strings of 4094 bytes each, `size` bytes in total.
fn strings(size: usize) -> Vec<u8> {
    one_string(4094, "").repeat(size / 4096)
}

/// A library with `count` names for itself, all ends of long strings.
pub fn names_of_the_library(count: usize, size: usize) -> Vec<u8> {
    let mut file = File::new(elf::EM_X86_64, 1);
    let strings = file.put(&strings(size));
    let tags = [elf::DT_SONAME, elf::DT_RPATH, elf::DT_RUNPATH];
    let entry = |n: usize| [tags[n % 3].0.cast_unsigned(), (n * size / count) as u64];
    let entries = file.put(&words(&(0..count).flat_map(entry).collect::<Vec<u64>>()));
    file.segment(elf::PT_LOAD, (0, entries.0 + entries.1));
    file.section(0, (elf::SHT_STRTAB, 0), strings, 0);
    file.section(0, (elf::SHT_DYNAMIC, 2), entries, 1);
    file.finish(1)
}

/// Empty sections whose names are ends of long strings.
pub fn names_of_sections(count: usize, size: usize) -> Vec<u8> {
    let mut file = File::new(elf::EM_X86_64, 1);
    let names = file.put(&strings(size));
    file.segment(elf::PT_LOAD, (0, names.0 + names.1));
    file.section(0, (elf::SHT_STRTAB, 0), names, 0);
    for n in 0..count {
        let name = (n * size / count) as u32;
        file.section(name, (elf::SHT_PROGBITS, 2), (0, 0), 0);
    }
    file.finish(1)
}

/// Consecutive bundles of `step` bytes each. All entries of a bundle claim its second half; their number is
/// the largest whose total does not exceed the rest of the file.
pub fn bundles(count: usize, step: usize) -> Vec<u8> {
    const ID: &[u8] = b"hip-x--gfx906";
    let mut all = Vec::new();
    for n in (1..=count).rev() {
        let entries = (step / 2 / (24 + ID.len()) - 1).min(2 * n);
        let mut bundle = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
        bundle.extend(words(&[entries as u64]));
        for _ in 0..entries {
            bundle.extend(words(&[step as u64 / 2, step as u64 / 2, ID.len() as u64]));
            bundle.extend(ID);
        }
        bundle.resize(step, 1);
        all.extend(bundle);
    }
    let mut file = File::new(elf::EM_X86_64, 1);
    let names = file.put(b"\0.hip_fatbin\0");
    let device = file.put(&all);
    file.segment(elf::PT_LOAD, (0, device.0 + device.1));
    file.section(0, (elf::SHT_STRTAB, 0), names, 0);
    file.section(1, (elf::SHT_PROGBITS, 2), device, 0);
    file.finish(1)
}
