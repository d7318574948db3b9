//! What a code object does on a GPU, apart from its names and debug information.
//!
//! ```text
//! header 64 bytes: … | e_shoff u64 at 40 | … | e_shentsize u16 at 58 | e_shnum u16 at 60 | …
//! section 64 bytes: sh_name u32 | sh_type u32 | sh_flags u64 | sh_addr u64 | sh_offset u64
//!                   | sh_size u64 | …
//! ```
//!
//! Sections that are allocated and PROGBITS (code, kernel descriptors, constants, data) or NOBITS
//! (zeroed data) are what kernels run on. Notes, symbol and hash tables, strings and everything
//! that is not allocated only describe it, and differ between translation units whose code is the
//! same: in Debian 13's librocblas, 17 of 65 code objects per arch share their kernels and, byte
//! for byte, their `.text` and `.rodata` with another one, and differ in debug information.
//!
//! Source: the ELF specification (gABI). What is no ELF file (SPIR-V) counts as a whole.

use object::LittleEndian;
use object::elf::{FileHeader64, SHF_ALLOC, SHT_NOBITS, SHT_PROGBITS, SectionHeader64};
use object::pod::{Pod, slice_from_bytes};
use sha2::{Digest, Sha256};

use crate::content::{Content, WINDOW};
use crate::error::{Error, Result};

/// Longest section table that is read: the 65,279 sections that a header can count. Code objects
/// have about twenty.
const TABLE_LIMIT: u64 = 65_279 * 64;

/// The magic, class 64 and little-endian data.
const IDENT: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];

/// The SHA-256 of all code and data that loading `content` puts before its kernels.
pub fn digest(content: &Content) -> Result<[u8; 32]> {
    let mut digest = Sha256::new();
    let header_len = size_of::<FileHeader64<LittleEndian>>() as u64;
    if content.len() < header_len || content.read_array(0)? != IDENT {
        add(&mut digest, content)?;
        return Ok(digest.finalize().into());
    }
    for section in sections(content)? {
        let kind = section.sh_type.get(LittleEndian);
        let flags: u64 = section.sh_flags.get(LittleEndian).0;
        let size = section.sh_size.get(LittleEndian);
        let runs = kind == SHT_PROGBITS || kind == SHT_NOBITS;
        if !runs || flags & SHF_ALLOC.0 == 0 {
            continue;
        }
        // Size and flags first, so that sections cannot be taken for one another.
        digest.update(flags.to_le_bytes());
        digest.update(size.to_le_bytes());
        if kind == SHT_PROGBITS {
            let start = section.sh_offset.get(LittleEndian);
            add(&mut digest, &content.slice(start..start.saturating_add(size))?)?;
        }
    }
    Ok(digest.finalize().into())
}

fn sections(content: &Content) -> Result<Vec<SectionHeader64<LittleEndian>>> {
    let headers: Vec<FileHeader64<LittleEndian>> = records(content, 0, 1)?;
    let Some(header) = headers.first() else {
        return Err(Error::bug("no file header was read"));
    };
    let (start, count) = (header.e_shoff.get(LittleEndian), header.e_shnum.get(LittleEndian));
    if start == 0 || count == 0 {
        let error = Error::unsupported("has no section table, so its code cannot be told apart");
        return Err(error.structure("code object").at(&content.place(0)));
    }
    records(content, start, count.into())
}

fn records<T: Pod>(content: &Content, start: u64, count: u64) -> Result<Vec<T>> {
    let len = count.saturating_mul(size_of::<T>() as u64);
    let bytes = content
        .read_vec(start..start.saturating_add(len), TABLE_LIMIT, "section table")
        .map_err(|error| error.structure("code object section table"))?;
    let (records, _) = slice_from_bytes::<T>(&bytes, bytes.len() / size_of::<T>())
        .map_err(|()| Error::bug("records are longer than their bytes"))?;
    Ok(records.to_vec())
}

fn add(digest: &mut Sha256, content: &Content) -> Result<()> {
    let mut reader = content.reader();
    let mut window = vec![0; WINDOW];
    loop {
        match reader.read_window(&mut window)? {
            0 => return Ok(()),
            len => digest.update(&window[..len]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// An object file of `source`, or `None` without a C compiler.
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

    #[test]
    fn other_code_counts_as_a_whole() {
        let one = digest(&Content::of_bytes(*b"spirv 1")).unwrap();
        assert_ne!(one, digest(&Content::of_bytes(*b"spirv 2")).unwrap());
    }
}
