//! The input of the dynamic linker: a file's own name, the libraries it needs, the search paths for them, and
//! the symbols that it imports and exports.
//!
//! This module reads through program headers, as the loader does, because a file without sections still
//! loads. No entry states the number of symbols. It is that of the `SHT_DYNSYM` section, or else the number
//! of chains of `DT_HASH`, or else the first symbol that `DT_GNU_HASH` covers, which follows all undefined
//! symbols; the defined ones are not read then.
//!
//! A program that is not position independent has copies of the library variables it uses; their symbols
//! count as undefined, though the copies have addresses.
//!
//! A search path is a string of `DT_STRTAB`, whose bytes other entries may share: linkers let a string be the
//! end of another. Overwriting a shared string would rename a library or a symbol; see [`SearchPath::is_shared`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::{Kind, Result};

use super::dynamic::{Dynamic, DynamicEntry};
use super::file::{ElfFile, FILE_HEADER_SIZE};
use super::record::{Dyn, PROGRAM_HEADER_SIZE, Record, Symbol};
use super::relocation::for_each_relocation;
use super::table::{RecordTable, StringTable};
use super::versions::Versions;

/// Longest path of an interpreter, in bytes: the loader's limit.
const MAX_INTERPRETER: u64 = 4096;

/// Maximum number of dynamic symbols that are read; the largest known library has some hundred thousand.
const MAX_SYMBOLS: u64 = 1 << 26;

/// The values that the dynamic linker reads from a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Linking {
    /// Whether the file is position independent (`ET_DYN`): a library, or such a program.
    pub is_shared_object: bool,
    /// `PT_INTERP`; programs have it.
    pub interpreter: Option<String>,
    pub soname: Option<String>,
    /// `DT_NEEDED`, in table order.
    pub needed: Vec<String>,
    /// `DT_RPATH`, unparsed; the loader ignores it if there is a `DT_RUNPATH`.
    pub rpath: Option<String>,
    /// `DT_RUNPATH`, unparsed.
    pub runpath: Option<String>,
    pub has_hash: bool,
    pub has_gnu_hash: bool,
    /// Whether the file has `DT_DEBUG`, which linkers give to programs.
    pub has_debug: bool,
    pub versions: Versions,
    /// Symbols that others define, in table order.
    pub undefined: Vec<LinkedSymbol>,
    /// Symbols that the file defines for others, in table order.
    pub defined: Vec<LinkedSymbol>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedSymbol {
    pub name: String,
    /// The version that the symbol is bound to, shared between symbols; `None` without a version.
    pub version: Option<Arc<str>>,
    /// The library that must define this version; empty for a version of the file itself.
    pub library: Option<Arc<str>>,
    pub is_undefined: bool,
    /// Whether the symbol may stay undefined (`STB_WEAK`).
    pub is_weak: bool,
}

impl LinkedSymbol {
    /// `name@version`, or `name` without a version.
    pub fn text(&self) -> String {
        match &self.version {
            Some(version) => format!("{}@{version}", self.name),
            None => self.name.clone(),
        }
    }
}

impl Linking {
    /// Reads `file`; `None` if it is neither a program nor a library, or has no dynamic section.
    pub fn read(file: &ElfFile) -> Result<Option<Self>> {
        if !matches!(file.header.e_type, elf::ET_DYN | elf::ET_EXEC) {
            return Ok(None);
        }
        let Some(dynamic) = Dynamic::read(file)? else {
            return Ok(None);
        };
        // Debug files keep the program header of the dynamic section, but not its bytes.
        if dynamic.entries.is_empty() {
            return Ok(None);
        }
        let strings = dynamic.string_table(file)?;
        let versions = Versions::read(file, &dynamic, &strings)?;
        let symbols = symbols(file, &dynamic, &strings, &versions)?.into_iter();
        let (undefined, defined) = symbols.partition(|symbol| symbol.is_undefined);
        Ok(Some(Self {
            is_shared_object: file.header.e_type == elf::ET_DYN,
            interpreter: interpreter(file)?,
            soname: dynamic.last_string(file, elf::DT_SONAME)?,
            needed: dynamic.names(file, elf::DT_NEEDED)?,
            rpath: dynamic.last_string(file, elf::DT_RPATH)?,
            runpath: dynamic.last_string(file, elf::DT_RUNPATH)?,
            has_hash: dynamic.value(elf::DT_HASH).is_some(),
            has_gnu_hash: dynamic.value(elf::DT_GNU_HASH).is_some(),
            has_debug: dynamic.value(elf::DT_DEBUG).is_some(),
            undefined,
            defined,
            versions,
        }))
    }
}

fn interpreter(file: &ElfFile) -> Result<Option<String>> {
    let Some(segment) = file.segment(elf::PT_INTERP) else {
        return Ok(None);
    };
    let range = segment.p_offset..segment.file_end();
    let bytes = file.content().read_vec(range, MAX_INTERPRETER, "interpreter")?;
    let path = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(Some(String::from_utf8_lossy(path).into_owned()))
}

fn symbols(
    file: &ElfFile,
    dynamic: &Dynamic,
    strings: &[u8],
    versions: &Versions,
) -> Result<Vec<LinkedSymbol>> {
    let count = symbol_count(file, dynamic)?;
    let Some(symbols) = dynamic_symbols(file, dynamic, count)? else {
        return Ok(Vec::new());
    };
    let indexes = version_indexes(file, dynamic, count)?;
    let copied = copied(file, dynamic)?;
    let bindings = bindings(versions);
    let mut names = StringTable::new(file, strings, symbols.len());
    let mut found = Vec::new();
    for (at, item) in symbols.iter().enumerate() {
        let (place, symbol) = item?;
        let is_copied = u32::try_from(at).is_ok_and(|at| copied.contains(&at));
        let is_undefined = symbol.st_shndx == elf::SHN_UNDEF || is_copied;
        let name = names.text(symbol.st_name, place)?;
        if name.is_empty() {
            continue;
        }
        let pair = indexes.chunks_exact(2).nth(at).and_then(|pair| pair.try_into().ok());
        let index = pair.map_or(0, u16::from_le_bytes) & elf::VERSYM_VERSION;
        let (version, library) = bindings.get(&index).filter(|_| index > 1).cloned().unzip();
        let is_weak = symbol.st_info.st_bind() == elf::STB_WEAK;
        found.push(LinkedSymbol { name, version, library, is_undefined, is_weak });
    }
    Ok(found)
}

/// The needed and own versions by index, each with the library that defines it, empty for the file itself; of
/// several with one index, the first.
fn bindings(versions: &Versions) -> BTreeMap<u16, (Arc<str>, Arc<str>)> {
    let mut found = BTreeMap::new();
    for need in &versions.needed {
        let library: Arc<str> = need.file.as_str().into();
        for version in &need.versions {
            let binding = || (version.name.as_str().into(), library.clone());
            found.entry(version.index).or_insert_with(binding);
        }
    }
    for own in versions.defined.iter().filter(|own| !own.is_base) {
        let version = own.names.first().map_or("", String::as_str);
        found.entry(own.index).or_insert_with(|| (version.into(), "".into()));
    }
    found
}

fn dynamic_symbols(
    file: &ElfFile,
    dynamic: &Dynamic,
    count: u64,
) -> Result<Option<RecordTable<Symbol>>> {
    let size = count.saturating_mul(Symbol::SIZE);
    let start = dynamic.value(elf::DT_SYMTAB).and_then(|address| file.offset_of(address, size));
    start.map(|start| RecordTable::new(file.content(), start, size)).transpose()
}

/// The indexes of symbols that a program has copies of.
fn copied(file: &ElfFile, dynamic: &Dynamic) -> Result<BTreeSet<u32>> {
    let mut found = BTreeSet::new();
    if file.segment(elf::PT_INTERP).is_some() {
        for_each_relocation(file, dynamic, &mut |relocation| {
            if relocation.kind == elf::R_X86_64_COPY {
                found.insert(relocation.symbol);
            }
            Ok(())
        })?;
    }
    Ok(found)
}

/// The version indexes of the symbols, two bytes each; empty without versions.
fn version_indexes(file: &ElfFile, dynamic: &Dynamic, count: u64) -> Result<Vec<u8>> {
    let size = count.saturating_mul(2);
    let start = dynamic.value(elf::DT_VERSYM).and_then(|address| file.offset_of(address, size));
    match start {
        Some(start) => file.content().read_vec(start..start + size, 2 * MAX_SYMBOLS, "DT_VERSYM"),
        None => Ok(Vec::new()),
    }
}

fn symbol_count(file: &ElfFile, dynamic: &Dynamic) -> Result<u64> {
    let section = file.sections.iter().find(|section| section.sh_type == elf::SHT_DYNSYM);
    if let Some(section) = section {
        return Ok((section.sh_size / Symbol::SIZE).min(MAX_SYMBOLS));
    }
    // The second word of either table is the number.
    let table = dynamic.value(elf::DT_HASH).or_else(|| dynamic.value(elf::DT_GNU_HASH));
    let start = table.and_then(|address| file.offset_of(address, 8));
    let Some(start) = start else { return Ok(0) };
    let word: [u8; 4] = file.content().read_array(start + 4)?;
    Ok(u64::from(u32::from_le_bytes(word)))
}

/// The tags whose value is a string, except those of search paths.
const STRINGS: [elf::DynamicTag; 6] = [
    elf::DT_NEEDED,
    elf::DT_SONAME,
    elf::DT_AUXILIARY,
    elf::DT_FILTER,
    elf::DT_CONFIG,
    elf::DT_DEPAUDIT,
];

/// Maximum number of search paths that are read; linkers write at most one of each tag.
const MAX_PATHS: usize = 16;

/// Maximum size in bytes of all search paths, in lengths of the string table: both tags may refer to one string.
const SHARED: usize = 2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPath {
    /// `DT_RPATH` or `DT_RUNPATH`.
    pub tag: elf::DynamicTag,
    /// Offset of the string in the file.
    pub offset: u64,
    pub text: String,
    /// Whether another name shares bytes of the string.
    pub is_shared: bool,
}

impl SearchPath {
    /// Reads the search paths of `file`, in table order.
    pub fn read(file: &ElfFile) -> Result<Vec<Self>> {
        let Some(dynamic) = Dynamic::read(file)? else {
            return Ok(Vec::new());
        };
        let paths = path_entries(file, &dynamic)?;
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let strings = dynamic.string_table(file)?;
        let table = dynamic.value(elf::DT_STRTAB).unwrap_or_default();
        let start = file.offset_of(table, strings.len() as u64).unwrap_or_default();
        let texts = texts(file, &strings, &paths)?;
        let names = names(file, &dynamic)?;
        let is_shared = |at: u64, text: &[u8]| {
            let end = at.saturating_add(text.len() as u64);
            let (offset, behind) = (start.saturating_add(at), start.saturating_add(end));
            // Unless the byte before is zero, the path is the end of a longer string.
            let before = usize::try_from(at).ok().and_then(|at| strings.get(at.checked_sub(1)?));
            before.is_some_and(|byte| *byte != 0)
                || names.iter().any(|name| (at..end).contains(name))
                || std::str::from_utf8(text).is_err()
                || is_in_table(file, &dynamic, offset..behind)
                // Both tags may name the same string, but a path that begins inside another one shares bytes.
                || texts.iter().any(|(other, _)| *other != at && (at..end).contains(other))
        };
        let found = paths.iter().zip(&texts).map(|(item, (at, text))| Self {
            tag: item.entry.d_tag,
            offset: start.saturating_add(*at),
            text: String::from_utf8_lossy(text).into_owned(),
            is_shared: is_shared(*at, text),
        });
        Ok(found.collect())
    }
}

/// `file` with its `DT_RUNPATH` turned into a `DT_RPATH`, which also applies to the libraries that the file needs;
/// `None` without a `DT_RUNPATH`. An existing `DT_RPATH`, which the loader ignores next to a `DT_RUNPATH`, gets the
/// same string. Only bytes of these entries change.
pub fn with_rpath(file: &ElfFile) -> Result<Option<Content>> {
    // The program header of a debug file refers to unrelated bytes.
    let mut sections = file.sections.iter();
    if !file.sections.is_empty() && !sections.any(|it| it.sh_type == elf::SHT_DYNAMIC) {
        return Ok(None);
    }
    let Some(dynamic) = Dynamic::read(file)? else { return Ok(None) };
    let Some(string) = dynamic.value(elf::DT_RUNPATH) else { return Ok(None) };
    let entry = [elf::DT_RPATH.0.cast_unsigned(), string].map(u64::to_le_bytes).concat();
    let mut patched = file.content().clone();
    for item in path_entries(file, &dynamic)? {
        patched = patched.patched(item.offset, entry.clone())?;
    }
    Ok(Some(patched))
}

/// The entries of search paths, in table order.
fn path_entries<'d>(file: &ElfFile, dynamic: &'d Dynamic) -> Result<Vec<&'d DynamicEntry>> {
    let is_path =
        |item: &&DynamicEntry| matches!(item.entry.d_tag, elf::DT_RPATH | elf::DT_RUNPATH);
    let paths: Vec<_> = dynamic.entries.iter().filter(is_path).collect();
    if let Some(beyond) = paths.get(MAX_PATHS) {
        let message = format!("there are more than {MAX_PATHS} search paths");
        let error = file.refuse(Kind::Limit, "dynamic section", beyond.offset, message);
        return Err(error.hint("the file is damaged: build it or copy it again"));
    }
    Ok(paths)
}

/// The search paths of `paths` with their offsets in the table. Refused: paths that together have more bytes
/// than [`SHARED`] times the table.
fn texts<'t>(
    file: &ElfFile,
    strings: &'t [u8],
    paths: &[&DynamicEntry],
) -> Result<Vec<(u64, &'t [u8])>> {
    let mut left = strings.len().saturating_mul(SHARED);
    let mut texts = Vec::new();
    for item in paths {
        let at = item.entry.d_val;
        let rest = usize::try_from(at).ok().and_then(|at| strings.get(at..)).unwrap_or_default();
        let Some(len) = rest.iter().position(|byte| *byte == 0) else {
            let message = format!("the search path at {at:#x} does not end within DT_STRTAB");
            return Err(file.refuse(Kind::Malformed, "dynamic section", item.offset, message));
        };
        let Some(remaining) = left.checked_sub(len) else {
            let size = strings.len();
            let message =
                format!("the search paths together are far longer than DT_STRTAB ({size} bytes)");
            let error = file.refuse(Kind::Limit, "dynamic section", item.offset, message);
            return Err(error.hint("the file is damaged: build it or copy it again"));
        };
        left = remaining;
        texts.push((at, rest.get(..len).unwrap_or_default()));
    }
    Ok(texts)
}

/// Whether bytes of the file belong to its header tables, as they may in a damaged file.
fn is_in_table(file: &ElfFile, dynamic: &Dynamic, bytes: Range<u64>) -> bool {
    let count = u64::from(file.header.e_phnum);
    overlaps(&bytes, 0, FILE_HEADER_SIZE)
        || overlaps(&bytes, file.header.e_phoff.min(u64::MAX >> 1), count * PROGRAM_HEADER_SIZE)
        || dynamic.entries.iter().any(|item| overlaps(&bytes, item.offset, Dyn::SIZE))
}

fn overlaps(bytes: &Range<u64>, start: u64, size: u64) -> bool {
    start < bytes.end && bytes.start < start + size
}

/// The offsets of all names in the string table, except search paths.
fn names(file: &ElfFile, dynamic: &Dynamic) -> Result<Vec<u64>> {
    let entries = dynamic.entries.iter().filter(|item| STRINGS.contains(&item.entry.d_tag));
    let mut names: Vec<u64> = entries.map(|item| item.entry.d_val).collect();
    if let Some(symbols) = dynamic_symbols(file, dynamic, symbol_count(file, dynamic)?)? {
        for item in symbols.iter() {
            names.push(u64::from(item?.1.st_name));
        }
    }
    names.extend(Versions::name_offsets(file, dynamic)?.into_iter().map(u64::from));
    Ok(names)
}
