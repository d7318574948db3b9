//! An account of every byte of a host binary: unchanged from its build, or changed by what taking the
//! device code out implies.
//!
//! The check must not trust the builder's transform, so it uses none of it. It reads the moved and removed
//! parts off the header tables of both files ([`removal`]). These, the build and the reference
//! to kernel archives determine the whole file. A file with another digest has a byte that
//! nothing accounts for.
//!
//! | part | may differ from the build |
//! |---|---|
//! | ELF header | number of program headers, place of the section headers |
//! | program headers | the cut: two segments in place of one, offsets behind it; what moved for the entry |
//! | tables of the loader | at another address, if they make room; tags and symbols that lead to them |
//! | wrappers and their relocations | magic, number, address of the marker |
//! | device code | the marker, a table that made room, zeros |
//! | symbols of device code | address and size of the marker |
//! | names of sections and section headers | one name more, at the end of the file |
//! | search path | where the receipt says that it was written anew: as the rules for that give it |

mod edits;
mod headers;
mod patches;
mod removal;
mod search;

use object::elf;
use object::pod;
use object::read::elf::{ProgramHeader as _, SectionHeader as _};
use rockpack_base::content::Content;
use rockpack_base::error::{Error, Result};
use rockpack_base::tree::TreePath;

use super::split_inputs::BinaryBuild;
use crate::verify::own::digest::Sha;
use crate::verify::own::facts::{Class, FileFacts};
use crate::verify::own::tables::{FILE_HEADER, LE, SECTION, SectionRow, Shape, Tables, bytes_of};
use edits::Edits;
use headers::Tail;
use removal::Removal;

/// The name of the section with device code.
const FATBIN: &str = ".hip_fatbin";
/// The name of the section with the reference to kernel archives.
const MARKER: &str = ".rocm_kpack_ref";
/// The bytes that tools write in place of sections that they moved.
const FILLERS: [u8; 3] = [0, b'X', b'Z'];
/// Most bytes that are looked at between the program headers and the sections behind them.
const GAP_LIMIT: u64 = 1 << 20;

/// Most parts of a file that a message names.
const MOST_NAMED: usize = 4;

/// The place of a file, for which its search paths may have been written anew.
#[derive(Debug, Clone, Copy)]
pub(in crate::verify) struct SearchRewrite<'a> {
    /// Install-relative path of the file.
    pub(in crate::verify) path: &'a TreePath,
    /// The install prefix, absolute.
    pub(in crate::verify) prefix: &'a str,
    /// Whether a finding says that its search paths were written anew.
    pub(in crate::verify) rewritten: bool,
}

impl SearchRewrite<'_> {
    /// The possible changes of the file for its search paths.
    fn changes(&self, content: &Content, tables: &Tables) -> Result<Vec<Edits>> {
        if self.rewritten {
            search::rewritten(content, tables, self.path, self.prefix)
        } else {
            Ok(vec![Edits::default()])
        }
    }
}

/// Whether `sha256` is the digest of the plain file `content` with its search paths written anew.
pub(in crate::verify) fn is_plain(
    content: &Content,
    sha256: &Sha,
    place: SearchRewrite<'_>,
) -> Result<bool> {
    for edits in place.changes(content, &Tables::read(content)?)? {
        if edits.apply(content)?.sha256()? == *sha256 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The names of the parts of the installed file that nothing accounts for, if it was made of `build`;
/// empty if all is accounted for.
pub(in crate::verify) fn unaccounted(
    build: &BinaryBuild,
    facts: &FileFacts,
    place: SearchRewrite<'_>,
) -> Result<Vec<String>> {
    let found = accounted(build, facts, place);
    match found {
        Err(error) if !error.is_of_reading() => Ok(vec![error.message().to_owned()]),
        found => found,
    }
}

fn accounted(
    build: &BinaryBuild,
    facts: &FileFacts,
    place: SearchRewrite<'_>,
) -> Result<Vec<String>> {
    let content = &build.content;
    if !place.rewritten && content.sha256()? == facts.sha256 {
        return Ok(Vec::new());
    }
    let _open = content.pin()?;
    let before = Tables::read(content)?;
    let shape = match &facts.class {
        Class::Host(host) => host.shape.as_deref(),
        _ => None,
    };
    let mut last = None;
    for edits in place.changes(content, &before)? {
        if place.rewritten && edits.apply(content)?.sha256()? == facts.sha256 {
            return Ok(Vec::new());
        }
        let Some(shape) = shape else { continue };
        let expected = expected(content, &before, shape, edits)?;
        if expected.len() == facts.size && expected.sha256()? == facts.sha256 {
            return Ok(Vec::new());
        }
        last = Some((expected, shape));
    }
    match last {
        Some((expected, shape)) => differing(&expected, shape, facts.size),
        None => Ok(vec!["all of it".to_owned()]),
    }
}

/// The names of the parts of the installed file that are not as `expected`.
fn differing(expected: &Content, shape: &Shape, size: u64) -> Result<Vec<String>> {
    let mut named = Vec::new();
    if expected.len() != size {
        named.push(format!("its length, {size} and not {} bytes", expected.len()));
    }
    for part in &shape.parts {
        let there = part.range.end <= expected.len();
        if !there || expected.slice(part.range.clone())?.sha256()? != part.sha256 {
            named.push(part.name.clone());
        }
    }
    if named.is_empty() {
        named.push("bytes of no section".to_owned());
    }
    if named.len() > MOST_NAMED {
        let more = named.len() - MOST_NAMED;
        named.truncate(MOST_NAMED);
        named.push(format!("{more} more"));
    }
    Ok(named)
}

/// The file that the build makes of itself, with the marker and the moves of the installed one.
fn expected(content: &Content, before: &Tables, shape: &Shape, edits: Edits) -> Result<Content> {
    let names = before.names(content)?;
    if let Some(marker) = before.index_of(MARKER, &names) {
        return with_marker(content, before, marker, shape, edits);
    }
    let fatbin = before
        .index_of(FATBIN, &names)
        .ok_or_else(|| Error::malformed("its build has no section of device code"))?;
    let removal = Removal::read(before, &shape.tables, fatbin)?;
    without_code(content, &removal, &names, shape, edits)
}

fn without_code(
    content: &Content,
    removal: &Removal<'_>,
    names: &[u8],
    shape: &Shape,
    mut edits: Edits,
) -> Result<Content> {
    let marker = shape.marker.len() as u64;
    removal.patch(content, names, marker, &mut edits)?;
    let patched = edits.apply(content)?;
    let tail = removal.tail(content, names)?;
    let sections = removal.sections(&tail, marker);
    let mut moves = Edits::default();
    moves.put(removal.front(), front(content, &patched, removal, &tail, names)?)?;
    let code = bytes_of(removal.code());
    moves.put(code.clone(), head(&patched, removal, &shape.marker)?)?;
    for table in removal.old_tables() {
        let end = table.end.min(tail.keep_end);
        if table.start < tail.keep_end && !is_loaded(removal.before, &table) {
            moves.put(table.start..end, Content::zeros(end - table.start))?;
        }
    }
    moves.put(tail.keep_end..content.len(), end_of(&tail, &sections))?;
    moves.apply(&patched)
}

/// Headers, and what moved up behind them.
fn front(
    content: &Content,
    patched: &Content,
    removal: &Removal<'_>,
    tail: &Tail,
    names: &[u8],
) -> Result<Content> {
    let segments = removal.segments(content, names)?;
    let mut header = removal.before.header;
    header.e_phnum.set(LE, u16::try_from(segments.len()).unwrap_or(u16::MAX));
    header.e_shoff.set(LE, tail.table_at);
    let headers = [pod::bytes_of(&header), pod::bytes_of_slice(&segments)].concat();
    let mut parts = vec![Content::of_bytes(headers)];
    check_overwritten(content, removal)?;
    if let Some(bytes) = removal.shifted_bytes() {
        pad(&mut parts, bytes.start.saturating_add(removal.shift))?;
        parts.push(patched.slice(bytes)?);
    }
    pad(&mut parts, removal.front().end)?;
    Ok(Content::concat(&parts))
}

/// Nothing is lost where the program headers get room: between what moves lie fillers alone.
fn check_overwritten(content: &Content, removal: &Removal<'_>) -> Result<()> {
    let mut at = FILE_HEADER.max(removal.before.segments_in_file().end);
    let displaced = removal.displaced.map(|(index, _)| bytes_of(&removal.before.sections[index]));
    let end = removal.front().end;
    let moved = removal.shifted_bytes().into_iter().chain(displaced);
    for range in moved.chain(std::iter::once(end..end)) {
        if at < range.start {
            let gap = content.read_vec(at..range.start, GAP_LIMIT, "bytes behind the headers")?;
            if gap.iter().any(|byte| !FILLERS.contains(byte)) {
                return Err(Error::malformed("lacks bytes that stood behind its program headers"));
            }
        }
        at = at.max(range.end);
    }
    Ok(())
}

/// The marker, what made room, and zeros.
fn head(patched: &Content, removal: &Removal<'_>, marker: &[u8]) -> Result<Content> {
    let code = bytes_of(removal.code());
    let mut parts = vec![Content::of_bytes(marker)];
    if let Some((index, address)) = removal.displaced {
        pad(&mut parts, address.saturating_sub(removal.code().sh_addr(LE)))?;
        parts.push(patched.slice(bytes_of(&removal.before.sections[index]))?);
    }
    pad(&mut parts, (code.end - code.start).saturating_sub(removal.removed()))?;
    Ok(Content::concat(&parts))
}

/// Names and headers of sections.
fn end_of(tail: &Tail, sections: &[SectionRow]) -> Content {
    let mut bytes = tail.names.clone();
    let padding = tail.table_at - tail.names_at - bytes.len() as u64;
    bytes.extend((0..padding).map(|_| 0));
    bytes.extend_from_slice(pod::bytes_of_slice(sections));
    Content::of_bytes(bytes)
}

fn is_loaded(tables: &Tables, range: &std::ops::Range<u64>) -> bool {
    let loads = tables.segments.iter().filter(|s| s.p_type(LE) == elf::PT_LOAD);
    let mut ranges = loads
        .filter(|s| s.p_filesz(LE) > 0)
        .map(|load| load.p_offset(LE)..load.p_offset(LE).saturating_add(load.p_filesz(LE)));
    ranges.any(|load| load.start < range.end && range.start < load.end)
}

/// Adds zeros up to `len` bytes in all.
fn pad(parts: &mut Vec<Content>, len: u64) -> Result<()> {
    let there: u64 = parts.iter().map(Content::len).sum();
    let missing =
        len.checked_sub(there).ok_or_else(|| Error::malformed("has parts that overlap"))?;
    parts.push(Content::zeros(missing));
    Ok(())
}

/// A build whose device code was taken out before, with the marker of the installed file.
fn with_marker(
    content: &Content,
    before: &Tables,
    index: usize,
    shape: &Shape,
    mut edits: Edits,
) -> Result<Content> {
    let section = &before.sections[index];
    let old = section.sh_size(LE);
    let mut marker = shape.marker.clone();
    let len = marker.len() as u64;
    marker.resize(marker.len().max(usize::try_from(old).unwrap_or_default()), 0);
    // The marker may grow into zeros that no section has.
    let grown = section.sh_offset(LE)..section.sh_offset(LE).saturating_add(marker.len() as u64);
    let behind = bytes_of(section).end..grown.end;
    let taken = before
        .sections
        .iter()
        .filter(|other| other.sh_type(LE) != elf::SHT_NOBITS)
        .map(bytes_of)
        .any(|other| other.start < behind.end && behind.start < other.end);
    if taken || !content.slice(behind)?.is_zero()? {
        return Err(Error::malformed("has a marker over other bytes"));
    }
    edits.write(grown.start, &marker)?;
    let mut row = *section;
    row.sh_size.set(LE, len);
    let at = before.sections_in_file().start + index as u64 * SECTION;
    edits.write(at, pod::bytes_of(&row))?;
    patches::resize_symbols(content, before, (index, old), len, &mut edits)?;
    edits.apply(content)
}
