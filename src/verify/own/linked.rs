//! The entries of a host binary for the dynamic linker, found by section headers. The plan, whose
//! dependencies are checked here, goes by program headers.

use object::LittleEndian;
use object::elf::{self, Dyn64, SectionHeader64};
use object::read::StringTable;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use rockpack_base::content::Content;
use rockpack_base::error::{Error, Kind, Result};

use super::elf_file::{ElfCache, HostElfFile, fault};

/// The entries of a binary's dynamic section, and its interpreter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::verify) struct Linked {
    /// Whether it names an interpreter.
    pub(in crate::verify) is_program: bool,
    /// `DT_SONAME`.
    pub(in crate::verify) soname: Option<String>,
    /// `DT_NEEDED`.
    pub(in crate::verify) needed: Vec<String>,
    /// `DT_RUNPATH` and `DT_RPATH`; the first counts.
    pub(in crate::verify) search_paths: Vec<SearchPath>,
}

/// A library search path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::verify) struct SearchPath {
    /// The offset in the file.
    pub(in crate::verify) offset: u64,
    pub(in crate::verify) text: String,
}

impl Linked {
    /// The search path that counts; empty if there is none.
    pub(in crate::verify) fn search(&self) -> &str {
        self.search_paths.first().map_or("", |path| path.text.as_str())
    }
}

/// Most dynamic sections that are read; files have one.
const MOST_SECTIONS: usize = 4;

/// Most bytes of the names of all needed libraries. Many entries may refer to one name or to its end.
const MOST_NAMES: usize = 256 << 10;

/// Bytes that an unterminated name counts for: `object` searches this far for the end.
const NO_NAME: usize = 4096;

/// The longest search path. Bazel writes some of many kilobytes; each file's is remembered.
const LONGEST_SEARCH: usize = 1 << 20;

/// Bytes of a search path that are read at once.
const WINDOW: u64 = 4096;

/// A string by the place of its table in the file, and its offset in that.
type StringAt = ((u64, u64), u64);

/// Reads the dynamic section; a file without one, or with one that has no content, says nothing.
pub(in crate::verify) fn read(file: &HostElfFile<'_>) -> Result<Linked> {
    let headers = file
        .header
        .program_headers(LittleEndian, file.cache)
        .map_err(|error| fault(file.content, error))?;
    let is_program = headers.iter().any(|header| header.p_type(LittleEndian) == elf::PT_INTERP);
    let mut linked = Linked { is_program, ..Linked::default() };
    let (mut rpath, mut runpath) = (None, None);
    let mut names = 0;
    if file.sections.iter().filter(is_dynamic).count() > MOST_SECTIONS {
        return Err(refused(file.content, format!("more than {MOST_SECTIONS} dynamic sections")));
    }
    for section in file.sections.iter().filter(is_dynamic) {
        let dynamic = dynamic(file, section).map_err(|error| fault(file.content, error))?;
        let Some(Dynamic { entries, strings, place }) = dynamic else { continue };
        let mut soname_at = None;
        let end = entries.iter().position(|entry| entry.d_tag.get(LittleEndian) == elf::DT_NULL);
        for entry in entries.iter().take(end.unwrap_or(entries.len())) {
            let at = entry.d_val.get(LittleEndian);
            match entry.d_tag.get(LittleEndian) {
                elf::DT_NEEDED => {
                    let needed = text_at(&strings, at);
                    names += needed.as_ref().map_or(NO_NAME, String::len);
                    if names > MOST_NAMES {
                        let what =
                            format!("names of needed libraries of more than {MOST_NAMES} bytes");
                        return Err(refused(file.content, what));
                    }
                    linked.needed.extend(needed);
                }
                // Of several the last one holds, and no other is read.
                elf::DT_SONAME => soname_at = Some(at),
                elf::DT_RPATH => rpath = place.zip(Some(at)),
                elf::DT_RUNPATH => runpath = place.zip(Some(at)),
                _ => {}
            }
        }
        if let Some(at) = soname_at {
            linked.soname = text_at(&strings, at);
        }
    }
    for at in [runpath, rpath].into_iter().flatten() {
        linked.search_paths.extend(search_path(file.content, at)?);
    }
    Ok(linked)
}

fn is_dynamic(section: &&SectionHeader64<LittleEndian>) -> bool {
    section.sh_type(LittleEndian) == elf::SHT_DYNAMIC
}

/// A dynamic section.
struct Dynamic<'a> {
    entries: &'a [Dyn64<LittleEndian>],
    strings: Strings<'a>,
    /// Offset and size of the strings in the file.
    place: Option<(u64, u64)>,
}

/// The strings that entries refer to.
type Strings<'a> = StringTable<'a, &'a ElfCache>;

/// Reads a dynamic section; none if it has no content.
fn dynamic<'a>(
    file: &HostElfFile<'a>,
    section: &SectionHeader64<LittleEndian>,
) -> object::Result<Option<Dynamic<'a>>> {
    let Some((entries, table)) = section.dynamic(LittleEndian, file.cache)? else {
        return Ok(None);
    };
    let strings = file.sections.strings(LittleEndian, file.cache, table)?;
    let place = file.sections.section(table)?.file_range(LittleEndian);
    Ok(Some(Dynamic { entries, strings, place }))
}

pub(super) fn text_at(strings: &Strings<'_>, at: u64) -> Option<String> {
    let bytes = strings.get(u32::try_from(at).ok()?).ok()?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// A search path; none where it does not end within its table. `object` looks at 4096 bytes of a
/// string, which it may be longer than.
fn search_path(content: &Content, ((table, size), at): StringAt) -> Result<Option<SearchPath>> {
    let end = table.saturating_add(size).min(content.len());
    let offset = table.saturating_add(at);
    let mut from = offset;
    let mut bytes = Vec::new();
    while from < end {
        let window = content.read_vec(from..end.min(from + WINDOW), WINDOW, "search path")?;
        let zero = window.iter().position(|byte| *byte == 0);
        bytes.extend(window.iter().take(zero.unwrap_or(window.len())));
        if bytes.len() > LONGEST_SEARCH {
            let what = format!("a search path of more than {LONGEST_SEARCH} bytes");
            return Err(refused(content, what));
        }
        if zero.is_some() {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            return Ok(Some(SearchPath { offset, text }));
        }
        from += window.len() as u64;
    }
    Ok(None)
}

fn refused(content: &Content, what: String) -> Error {
    let hint = "the file is damaged: build it or copy it again";
    let error = Error::new(Kind::Limit, format!("has {what}")).structure("dynamic section");
    error.at(&content.place(0)).hint(hint)
}
