//! Which libraries a host file is and needs, from its dynamic section.
//!
//! | entry | meaning |
//! |---|---|
//! | `DT_STRTAB` 5, `DT_STRSZ` 10 | where the names stand, as an address, and their length |
//! | `DT_SONAME` 14 | the name by which others need this library |
//! | `DT_NEEDED` 1 | a name that this file needs |
//!
//! Source: the System V ABI, "Dynamic Section". Only x86-64 programs and libraries are read; what
//! has no dynamic section (objects, static programs, debug files) needs nothing. Read through
//! program headers: a library without sections loads all the same.

use object::LittleEndian;
use object::elf::{
    DT_NEEDED, DT_NULL, DT_SONAME, DT_STRSZ, DT_STRTAB, Dyn64, DynamicTag, EM_X86_64, ET_DYN,
    ET_EXEC, FileHeader64, PT_DYNAMIC, PT_LOAD, ProgramHeader64,
};
use object::pod::{Pod, slice_from_bytes};

use crate::content::Content;
use crate::error::{Error, Result};

/// The magic, class 64 and little-endian data.
const IDENT: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];

/// Longest program header table that is read: the 65,535 entries that its count can express.
const HEADERS_LIMIT: u64 = 65_535 * 56;

/// Longest dynamic section that is read. Linkers write a few dozen entries of 16 bytes.
const DYNAMIC_LIMIT: u64 = 1 << 20;

/// Longest string table that is read. The largest C++ libraries stay below 100 MiB.
const STRINGS_LIMIT: u64 = 256 << 20;

/// The libraries that a file is and needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Libraries {
    pub soname: Option<String>,
    pub needed: Vec<String>,
}

/// Reads the dynamic section of `content`; `None` if it is no dynamically linked x86-64 file.
pub(super) fn libraries(content: &Content) -> Result<Option<Libraries>> {
    let header_len = size_of::<FileHeader64<LittleEndian>>() as u64;
    if content.len() < header_len || content.read_array(0)? != IDENT {
        return Ok(None);
    }
    let header: FileHeader64<LittleEndian> = one(content, 0)?;
    let kind = header.e_type.get(LittleEndian);
    let loadable = kind == ET_DYN || kind == ET_EXEC;
    if !loadable || header.e_machine.get(LittleEndian) != EM_X86_64 {
        return Ok(None);
    }
    let segments = segments(content, &header)?;
    let dynamic = segments.iter().find(|s| s.p_type.get(LittleEndian) == PT_DYNAMIC);
    match dynamic {
        Some(dynamic) => from_dynamic(content, &segments, dynamic).map(Some),
        None => Ok(None),
    }
}

type Segment = ProgramHeader64<LittleEndian>;

fn segments(content: &Content, header: &FileHeader64<LittleEndian>) -> Result<Vec<Segment>> {
    let start = header.e_phoff.get(LittleEndian);
    let count = u64::from(header.e_phnum.get(LittleEndian));
    let len = count.saturating_mul(size_of::<Segment>() as u64);
    records(content, (start, len), HEADERS_LIMIT, "program header table")
}

fn from_dynamic(content: &Content, segments: &[Segment], dynamic: &Segment) -> Result<Libraries> {
    let start = dynamic.p_offset.get(LittleEndian);
    let len = dynamic.p_filesz.get(LittleEndian) & !0xf;
    let entries: Vec<Dyn64<LittleEndian>> =
        records(content, (start, len), DYNAMIC_LIMIT, "dynamic section")?;
    let tag = |entry: &Dyn64<LittleEndian>| entry.d_tag.get(LittleEndian);
    let entries: Vec<_> = entries.into_iter().take_while(|e| tag(e) != DT_NULL).collect();
    let values = |wanted: DynamicTag| {
        let entries = entries.iter().filter(move |entry| tag(entry) == wanted);
        entries.map(|entry| entry.d_val.get(LittleEndian))
    };
    let first = |wanted| values(wanted).next();
    let mut found = Libraries::default();
    if first(DT_NEEDED).is_none() && first(DT_SONAME).is_none() {
        return Ok(found);
    }
    let (Some(address), Some(len)) = (first(DT_STRTAB), first(DT_STRSZ)) else {
        let error = Error::malformed("names libraries but has no string table");
        return Err(error.structure("dynamic section").at(&content.place(start)));
    };
    let names = strings(content, segments, (address, len))?;
    let name = |at: u64| name_at(&names, at).map_err(|e| e.at(&content.place(start)));
    found.soname = first(DT_SONAME).map(name).transpose()?;
    found.needed = values(DT_NEEDED).map(name).collect::<Result<_>>()?;
    Ok(found)
}

/// The string table at `address`, through the segment that loads it.
fn strings(content: &Content, segments: &[Segment], (address, len): (u64, u64)) -> Result<Vec<u8>> {
    let offset = segments.iter().find_map(|segment| {
        let start = segment.p_vaddr.get(LittleEndian);
        let skip = address.checked_sub(start)?;
        let inside = skip.checked_add(len)? <= segment.p_filesz.get(LittleEndian);
        let loads = segment.p_type.get(LittleEndian) == PT_LOAD;
        let offset = segment.p_offset.get(LittleEndian).checked_add(skip)?;
        (loads && inside).then_some(offset)
    });
    let offset = offset.ok_or_else(|| {
        let message = format!("the string table at address {address:#x} is not loaded");
        Error::malformed(message).structure("dynamic section").at(&content.place(0))
    })?;
    let end = offset.saturating_add(len);
    content.read_vec(offset..end, STRINGS_LIMIT, "dynamic string table")
}

fn name_at(names: &[u8], at: u64) -> Result<String> {
    let rest = usize::try_from(at).ok().and_then(|at| names.get(at..));
    let name = rest.and_then(|rest| rest.split(|byte| *byte == 0).next());
    let name = name.and_then(|name| std::str::from_utf8(name).ok());
    name.map(str::to_owned).ok_or_else(|| {
        let message = format!("the library name at {at:#x} of the string table is no text");
        Error::malformed(message).structure("dynamic section")
    })
}

fn one<T: Pod>(content: &Content, at: u64) -> Result<T> {
    let len = size_of::<T>() as u64;
    let found = records(content, (at, len), len, "ELF header")?;
    found.into_iter().next().ok_or_else(|| Error::bug("no record was read"))
}

fn records<T: Pod>(
    content: &Content,
    (start, len): (u64, u64),
    limit: u64,
    what: &str,
) -> Result<Vec<T>> {
    let bytes = content
        .read_vec(start..start.saturating_add(len), limit, what)
        .map_err(|error| error.structure(what))?;
    let (records, _) = slice_from_bytes::<T>(&bytes, bytes.len() / size_of::<T>())
        .map_err(|()| Error::bug("records are longer than their bytes"))?;
    Ok(records.to_vec())
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
