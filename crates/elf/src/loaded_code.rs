//! The loaded part of a code object: everything but names and debug information.
//!
//! Kernels run on allocated sections of type PROGBITS (code, kernel descriptors, constants, data) and NOBITS
//! (zeroed data). Notes, symbol and hash tables, strings and everything that is not allocated only describe
//! them, and differ between translation units with the same code: in Debian 13's librocblas, 17 of 65 code
//! objects per arch share their kernels and, byte for byte, their `.text` and `.rodata` with another one, and
//! differ in debug information.
//!
//! Source: the ELF specification (gABI). Other device code than ELF (SPIR-V) counts as a whole.
//!
//! Refused: sections that together have more bytes than the file, because they must overlap.

use object::elf;
use sha2::{Digest, Sha256};

use crate::{ElfFile, FileHeader, SectionHeader};
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};

/// The SHA-256 of all code and data that loading `content` gives to its kernels.
pub fn digest(content: &Content) -> Result<[u8; 32]> {
    let Some(header) = FileHeader::read(content)? else {
        return content.sha256();
    };
    let file = ElfFile::with_header(content, header)?;
    if file.sections.is_empty() {
        let error = Error::unsupported("has no section table, so its code cannot be told apart");
        return Err(error.structure("code object").at(&content.place(0)));
    }
    let mut digest = Sha256::new();
    let mut left = content.len();
    for (index, section) in file.sections.iter().enumerate() {
        if section.is_allocated() && matches!(section.sh_type, elf::SHT_PROGBITS | elf::SHT_NOBITS)
        {
            if section.sh_type == elf::SHT_PROGBITS {
                left = left.checked_sub(section.sh_size).ok_or_else(|| {
                    let message = "shares bytes with other sections, or ends outside of the file";
                    let error = file.refuse_section(Kind::Malformed, index, message);
                    error.hint("the file is damaged: build it or copy it again")
                })?;
            }
            add(&mut digest, &file, index, section)?;
        }
    }
    Ok(digest.finalize().into())
}

fn add(digest: &mut Sha256, file: &ElfFile, index: usize, section: &SectionHeader) -> Result<()> {
    // Flags and size come first, so that different sections cannot give the same bytes.
    digest.update(section.sh_flags.0.to_le_bytes());
    digest.update(section.sh_size.to_le_bytes());
    if section.sh_type == elf::SHT_NOBITS {
        return Ok(());
    }
    let bytes = file.content().slice(file.file_range(index, section)?)?;
    bytes.each_window(|window| digest.update(window))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

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
        assert_eq!(digest(&plain).unwrap(), digest(&debug).unwrap());
        let other = object_file("int f(int x) { return x + 2; }", &[]);
        assert_ne!(digest(&plain).unwrap(), digest(&other).unwrap());
        let larger = object_file("int f(int x) { return x + 1; } int y[99];", &[]);
        assert_ne!(digest(&plain).unwrap(), digest(&larger).unwrap());
    }

    #[test]
    fn a_code_object_cut_anywhere_is_an_error_or_differs() {
        let whole = object_file("int f(int x) { return x + 1; }", &[]);
        let expected = digest(&whole).unwrap();
        for end in (0..whole.len()).step_by(7) {
            if let Ok(found) = digest(&whole.slice(0..end).unwrap()) {
                assert_ne!(found, expected, "{end}");
            }
        }
    }

    /// Every section of code is made to name the same bytes.
    #[test]
    fn sections_that_share_bytes_are_refused() {
        let whole = object_file("int f(int x) { return x + 1; }", &[]);
        let file =
            ElfFile::with_header(&whole, FileHeader::read(&whole).unwrap().unwrap()).unwrap();
        let mut shared = whole.clone();
        for index in 1..file.sections.len() as u64 {
            let header = file.header.e_shoff() + 64 * index;
            shared = shared.patched(header + 4, elf::SHT_PROGBITS.0.to_le_bytes()).unwrap();
            shared = shared.patched(header + 8, elf::SHF_ALLOC.0.to_le_bytes()).unwrap();
            shared = shared.patched(header + 24, 0_u64.to_le_bytes()).unwrap();
            shared = shared.patched(header + 32, (whole.len() / 2).to_le_bytes()).unwrap();
        }
        assert_eq!(digest(&shared).unwrap_err().kind(), Kind::Malformed);
    }

    #[test]
    fn other_code_counts_as_a_whole() {
        let one = digest(&Content::of_bytes(*b"spirv 1")).unwrap();
        assert_ne!(one, digest(&Content::of_bytes(*b"spirv 2")).unwrap());
    }
}
