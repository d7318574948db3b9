//! The entries of a host binary for the dynamic linker, found by section headers. The plan, whose
//! dependencies are checked here, goes by program headers.

use std::ops::Range;

use object::LittleEndian as LE;
use object::elf;
use object::read::elf::{ProgramHeader as _, SectionHeader as _};
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};

use super::elf_file::{HostElfFile, bytes_of, word};

/// The entries of a binary's dynamic section, and its interpreter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Linked {
    /// Whether it names an interpreter.
    pub(crate) is_program: bool,
    /// `DT_SONAME`.
    pub(crate) soname: Option<String>,
    /// `DT_NEEDED`.
    pub(crate) needed: Vec<String>,
    /// `DT_RUNPATH` and `DT_RPATH`; the first counts.
    pub(crate) search_paths: Vec<SearchPath>,
}

/// A library search path, or another string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SearchPath {
    /// The offset in the file.
    pub(crate) offset: u64,
    pub(crate) text: String,
}

impl Linked {
    /// The search path that counts; empty if there is none.
    pub(crate) fn search(&self) -> &str {
        self.search_paths.first().map_or("", |path| path.text.as_str())
    }
}

/// Most bytes of the names of all needed libraries. Many entries may refer to one name or to its end.
const MOST_NAMES: usize = 256 << 10;

/// The longest string. Bazel writes search paths of many kilobytes; each file's is remembered.
const LONGEST: usize = 1 << 20;

/// Bytes of a string that are read at once.
const WINDOW: u64 = 4096;

/// Reads the dynamic section; a file without one says nothing.
pub(super) fn read(file: &HostElfFile<'_>) -> Result<Linked> {
    let content = file.content;
    let is_program = file.segments.iter().any(|header| header.p_type(LE) == elf::PT_INTERP);
    let mut linked = Linked { is_program, ..Linked::default() };
    let mut sections = file.of_type(elf::SHT_DYNAMIC);
    let Some(section) = sections.next() else { return Ok(linked) };
    if sections.next().is_some() {
        return Err(refused(content, "more than one dynamic section".to_owned()));
    }
    let strings = usize::try_from(section.sh_link(LE)).ok().and_then(|at| file.sections.get(at));
    let strings = strings.map(bytes_of).unwrap_or_default();
    let (mut needed, mut ended) = (Vec::new(), false);
    let [mut soname, mut rpath, mut runpath] = [None; 3];
    let mut add = |entry: &mut [u8; 16]| {
        let (tag, at) = (elf::DynamicTag(word(entry, 0).cast_signed()), word(entry, 8));
        ended |= tag == elf::DT_NULL;
        match tag {
            _ if ended => {}
            // More of them are refused below.
            elf::DT_NEEDED if needed.len() <= MOST_NAMES => needed.push(at),
            // Of several the last one holds, and no other is read.
            elf::DT_SONAME => soname = Some(at),
            elf::DT_RPATH => rpath = Some(at),
            elf::DT_RUNPATH => runpath = Some(at),
            _ => {}
        }
    };
    file.each_record(section, &mut add, &mut |_| ())?;
    let mut names = 0;
    for at in needed {
        // A string without an end was searched to the end of the table.
        let name = string(content, &strings, at)?;
        names += name.as_ref().map_or(MOST_NAMES, |name| name.text.len()) + 1;
        if names > MOST_NAMES {
            let what = format!("names of needed libraries of more than {MOST_NAMES} bytes");
            return Err(refused(content, what));
        }
        linked.needed.extend(name.map(|name| name.text));
    }
    if let Some(at) = soname {
        linked.soname = string(content, &strings, at)?.map(|name| name.text);
    }
    for at in [runpath, rpath].into_iter().flatten() {
        linked.search_paths.extend(string(content, &strings, at)?);
    }
    Ok(linked)
}

/// The string at `at` of a table; none where it does not end within the table.
fn string(content: &Content, table: &Range<u64>, at: u64) -> Result<Option<SearchPath>> {
    let offset = table.start.saturating_add(at);
    let (end, mut from, mut bytes) = (table.end.min(content.len()), offset, Vec::new());
    while from < end {
        let window = content.read_vec(from..end.min(from + WINDOW), WINDOW, "string")?;
        let zero = window.iter().position(|byte| *byte == 0);
        bytes.extend(window.iter().take(zero.unwrap_or(window.len())));
        if bytes.len() > LONGEST {
            let what = format!("a name or search path of more than {LONGEST} bytes");
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
