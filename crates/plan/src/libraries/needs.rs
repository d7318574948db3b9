//! Reads the needs of a host file: the dynamic section of a program or library, the first line of an
//! executable script.
//!
//! Only x86-64 programs and libraries are read; files without a dynamic section (objects, static programs)
//! need nothing.

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_elf::{ElfFile, Linking};

use crate::placed::file_mode;
use rockpack_package::dependencies::script::FirstLine;

/// Magics of an ELF file and a static archive, whose content is for one processor.
const NATIVE_MAGIC: [&[u8]; 2] = [b"\x7fELF", b"!<arch>\n"];

/// The needs that a file states.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// Libraries and search path of a program or library.
    pub linking: Option<Linking>,
    /// First line of an executable script.
    pub script: Option<FirstLine>,
    /// Whether the file is executable.
    pub is_executable: bool,
}

/// Whether `content` is for one processor.
pub(super) fn is_native(content: &Content) -> Result<bool> {
    let start = content.read_vec(0..content.len().min(8), 8, "start of a file")?;
    Ok(NATIVE_MAGIC.iter().any(|magic| start.starts_with(magic)))
}

/// Reads the needs of a file of the input with `mode`.
pub(super) fn needs(content: &Content, mode: u32) -> Result<Needs> {
    let is_executable = file_mode(mode) & 0o111 != 0;
    let script = if is_executable { FirstLine::read(content)? } else { None };
    Ok(Needs { linking: linking(content)?, script, is_executable })
}

fn linking(content: &Content) -> Result<Option<Linking>> {
    match ElfFile::read(content, elf::EM_X86_64)? {
        Some(file) => Linking::read(&file),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use rockpack_core::run::Budget;

    use super::*;

    #[test]
    fn other_files_need_nothing() {
        for bytes in [b"".to_vec(), b"\x7fELF".to_vec(), vec![0; 100], b"#!/bin/sh\n".repeat(9)] {
            assert_eq!(needs(&Content::of_bytes(bytes), 0o644).unwrap(), Needs::default());
        }
        let script = needs(&Content::of_bytes(*b"#!/bin/sh"), 0o755).unwrap();
        assert_eq!(script.script.unwrap().interpreter, "/bin/sh");
        let own = std::env::current_exe().unwrap();
        let found = linking(&Content::open(own, &Budget::unlimited()).unwrap()).unwrap();
        assert!(found.is_some_and(|found| found.soname.is_none() && found.interpreter.is_some()));
    }
}
