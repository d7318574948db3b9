//! What a host binary tells the dynamic linker, looked up by its section headers: the plan, which
//! decided the dependencies that are in question here, goes by program headers.

use object::LittleEndian;
use object::elf::{self, FileHeader64, SectionHeader64};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable};

use super::host_elf::Cache;

type Header = FileHeader64<LittleEndian>;

/// Entries of a dynamic section.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Linked {
    /// Whether it names an interpreter.
    pub(super) is_program: bool,
    /// `DT_SONAME`.
    pub(super) soname: Option<String>,
    /// `DT_NEEDED`.
    pub(super) needed: Vec<String>,
    /// `DT_RUNPATH`, else `DT_RPATH`.
    pub(super) search: String,
}

/// Most dynamic sections that are read; files have one.
pub(super) const MOST_SECTIONS: usize = 4;

/// What the names of all needed libraries may take: many entries may have one name, or the ends of one.
pub(super) const MOST_NAMES: usize = 256 << 10;

/// What a name counts for that does not end within so many bytes, which `object` looks at.
const NO_NAME: usize = 4096;

/// Reads the dynamic section; a file without one, or with one that has no content, says nothing. None
/// where there are more than [`MOST_SECTIONS`], or more names of needed libraries than [`MOST_NAMES`].
pub(super) fn read<'a>(
    header: &'a Header,
    sections: &SectionTable<'a, Header, &'a Cache>,
    cache: &'a Cache,
) -> object::Result<Option<Linked>> {
    let headers = header.program_headers(LittleEndian, cache)?;
    let is_program = headers.iter().any(|header| header.p_type(LittleEndian) == elf::PT_INTERP);
    let mut linked = Linked { is_program, ..Linked::default() };
    let (mut rpath, mut runpath) = (None, None);
    let mut names = 0;
    let is_dynamic = |section: &&SectionHeader64<LittleEndian>| {
        section.sh_type(LittleEndian) == elf::SHT_DYNAMIC
    };
    if sections.iter().filter(is_dynamic).count() > MOST_SECTIONS {
        return Ok(None);
    }
    for section in sections.iter().filter(is_dynamic) {
        let Some((entries, strings)) = section.dynamic(LittleEndian, cache)? else {
            continue;
        };
        let strings = sections.strings(LittleEndian, cache, strings)?;
        let text = |at: u64| {
            let bytes = strings.get(u32::try_from(at).ok()?).ok()?;
            Some(String::from_utf8_lossy(bytes).into_owned())
        };
        let (mut soname_at, mut rpath_at, mut runpath_at) = (None, None, None);
        let end = entries.iter().position(|entry| entry.d_tag.get(LittleEndian) == elf::DT_NULL);
        for entry in entries.iter().take(end.unwrap_or(entries.len())) {
            let at = entry.d_val.get(LittleEndian);
            match entry.d_tag.get(LittleEndian) {
                elf::DT_NEEDED => {
                    let needed = text(at);
                    names += needed.as_ref().map_or(NO_NAME, String::len);
                    if names > MOST_NAMES {
                        return Ok(None);
                    }
                    linked.needed.extend(needed);
                }
                elf::DT_SONAME => soname_at = Some(at),
                elf::DT_RPATH => rpath_at = Some(at),
                elf::DT_RUNPATH => runpath_at = Some(at),
                _ => {}
            }
        }
        // Of several the last one holds, and no other is read.
        for (at, name) in
            [(soname_at, &mut linked.soname), (rpath_at, &mut rpath), (runpath_at, &mut runpath)]
        {
            if let Some(at) = at {
                *name = text(at);
            }
        }
    }
    linked.search = runpath.or(rpath).unwrap_or_default();
    Ok(Some(linked))
}
