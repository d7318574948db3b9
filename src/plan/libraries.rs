//! Which libraries a host file is and needs, from its dynamic section.
//!
//! Only x86-64 programs and libraries are read; what has no dynamic section (objects, static
//! programs, debug files) needs nothing. Read through program headers: a library without sections
//! loads all the same.

use object::elf;

use crate::content::Content;
use crate::error::Result;
use crate::formats::elf::{Dynamic, ElfFile};

/// The libraries that a file is and needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Libraries {
    pub soname: Option<String>,
    pub needed: Vec<String>,
}

/// Reads the dynamic section of `content`; `None` if it is no dynamically linked x86-64 file.
pub(super) fn libraries(content: &Content) -> Result<Option<Libraries>> {
    let Some(file) = ElfFile::read(content, elf::EM_X86_64)? else {
        return Ok(None);
    };
    if !matches!(file.header.e_type(), elf::ET_DYN | elf::ET_EXEC) {
        return Ok(None);
    }
    let Some(dynamic) = Dynamic::read(&file)? else {
        return Ok(None);
    };
    let soname = dynamic.strings(&file, elf::DT_SONAME)?.into_iter().next();
    Ok(Some(Libraries { soname, needed: dynamic.strings(&file, elf::DT_NEEDED)? }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::Command;

    /// A library made by the system's linker, and what readelf says of it.
    fn library() -> Option<(tempfile::TempDir, Content)> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("libx.so");
        let made = Command::new("cc")
            .args(["-shared", "-nostdlib", "-x", "c", "/dev/null", "-Wl,-soname,libx.so.7"])
            .args(["-Wl,--no-as-needed", "-l:libc.so.6", "-o"])
            .arg(&file)
            .status();
        if !made.is_ok_and(|status| status.success()) {
            assert!(std::env::var_os("ROCKPACK_INTEROP").is_none(), "cc is missing");
            eprintln!("skipped: no C compiler");
            return None;
        }
        let content = Content::open(&file).unwrap();
        Some((folder, content))
    }

    #[test]
    fn names_are_those_that_the_linker_wrote() {
        let Some((_folder, content)) = library() else {
            return;
        };
        let found = libraries(&content).unwrap().unwrap();
        assert_eq!(found.soname.as_deref(), Some("libx.so.7"));
        assert_eq!(found.needed, ["libc.so.6"]);
    }

    #[test]
    fn a_file_cut_anywhere_is_an_error_or_nothing() {
        let Some((_folder, content)) = library() else {
            return;
        };
        let whole = libraries(&content).unwrap();
        for end in 0..content.len() {
            let cut = content.slice(0..end).unwrap();
            if let Ok(found) = libraries(&cut) {
                assert!(found.is_none() || found == whole, "{end}");
            }
        }
    }

    #[test]
    fn other_files_need_nothing() {
        for bytes in [b"".to_vec(), b"\x7fELF".to_vec(), vec![0; 100], b"#!/bin/sh\n".repeat(9)] {
            assert_eq!(libraries(&Content::of_bytes(bytes)).unwrap(), None);
        }
        let own = std::env::current_exe().unwrap();
        let found = libraries(&Content::open(Path::new(&own)).unwrap()).unwrap();
        assert!(found.is_some_and(|found| found.soname.is_none()));
    }
}
