//! Reads the device code sections and the dynamic section of a host binary.
//!
//! No code is shared with the transform: sections and relocations are found by section headers, whereas the transform
//! uses the dynamic table, and the plan program headers.
//!
//! Refused: executable or relocation sections whose total size exceeds the file, and more dynamic sections or library
//! names than any real file has ([`read_linked`]).

use std::collections::BTreeMap;
use std::ops::Range;

use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};
use object::{LittleEndian as LE, elf};
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_split::host_binary::{SHIM, is_shim};

use crate::readers::Sha;
use crate::readers::elf_file::{
    self, HostElfFile, SectionRow, Segment, addresses_of, bytes_of, has, word,
};

/// Wrapper magic of a fat binary: "HIPF".
pub(crate) const HIPF: u32 = 0x4849_5046;
/// Wrapper magic of a transformed binary: "HIPK".
pub(crate) const HIPK: u32 = 0x4B50_4948;
/// Bytes of one wrapper: magic, version, pointer, reserved.
pub(crate) const WRAPPER_LEN: usize = 24;
/// Maximum number of bytes that `.hipFatBinSegment` may have; the largest ROCm library has a few thousand wrappers.
pub(super) const WRAPPER_SECTION_LIMIT: u64 = 64 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrapperRecord {
    pub(crate) magic: u32,
    pub(crate) version: u32,
    /// The address that it points to if the file is loaded at its own addresses.
    pub(crate) pointer: u64,
    /// Whether the dynamic loader relocates the pointer. It must, unless the file is loaded at its own addresses.
    pub(crate) moves: bool,
    /// Low half of `reserved`: the co_index of a transformed wrapper.
    pub(crate) co_index: u32,
}

/// The sections of a host ELF file that concern device code.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostElf {
    pub(crate) fatbin: Option<SectionRow>,
    pub(crate) marker: Option<SectionRow>,
    pub(crate) wrappers: Vec<WrapperRecord>,
    /// Whether it is loaded at its own addresses (`ET_EXEC`).
    pub(crate) fixed: bool,
    /// SHA-256 of the machine code: the content of all executable sections.
    pub(crate) code: Sha,
    pub(crate) linked: DynamicInfo,
    loads: Vec<Segment>,
}

impl HostElf {
    /// The file offset of the bytes loaded at `addresses`, if one segment loads all of them.
    pub(crate) fn loaded_at(&self, addresses: &Range<u64>) -> Option<u64> {
        self.loads.iter().find_map(|load| {
            let start = load.p_vaddr(LE);
            let (from, end) = (addresses.start.checked_sub(start)?, addresses.end - start);
            (end <= load.p_filesz(LE)).then(|| load.p_offset(LE).checked_add(from)).flatten()
        })
    }
}

/// Reads the linked host ELF `content`; `None` for other machines than x86-64, and for object files.
pub(crate) fn read(content: &Content) -> Result<Option<HostElf>> {
    let Some(file) = elf_file::open(content)? else { return Ok(None) };
    let loads = file.segments.iter().filter(|header| header.p_type(LE) == elf::PT_LOAD);
    Ok(Some(HostElf {
        fatbin: file.section(".hip_fatbin")?,
        marker: file.section(".rocm_kpack_ref")?,
        wrappers: file.wrappers()?,
        fixed: file.header.e_type(LE) == elf::ET_EXEC,
        code: file.code()?,
        linked: read_linked(&file)?,
        loads: loads.copied().collect(),
    }))
}

impl HostElfFile<'_> {
    fn code(&self) -> Result<Sha> {
        let mut parts = Vec::new();
        let mut left = self.content.len();
        for section in self.sections.iter().filter(|it| has(it, elf::SHF_EXECINSTR)) {
            let range = bytes_of(section);
            self.take(&mut left, range.end - range.start, "executable sections")?;
            parts.push(self.content.slice(range)?);
        }
        Content::concat(&parts).sha256()
    }

    /// Finds wrappers by magic at 8-byte steps, since sanitizers pad them with redzones.
    fn wrappers(&self) -> Result<Vec<WrapperRecord>> {
        let Some(section) = self.section(".hipFatBinSegment")? else { return Ok(Vec::new()) };
        let range = bytes_of(&section);
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let bytes = self.content.read_vec(range, WRAPPER_SECTION_LIMIT, ".hipFatBinSegment")?;
        let relocated = self.relocated(&addresses_of(&section))?;
        let mut found = Vec::new();
        let mut rest = bytes.as_slice();
        while let Some((record, _)) = rest.split_first_chunk::<WRAPPER_LEN>() {
            let [magic, version, low, high, co_index, _] = words(record);
            if magic != HIPF && magic != HIPK {
                rest = &rest[8..];
                continue;
            }
            let at = section.sh_addr(LE).wrapping_add((bytes.len() - rest.len()) as u64 + 8);
            let (stored, loaded) = (u64::from(high) << 32 | u64::from(low), relocated.get(&at));
            let (moves, pointer) = (loaded.is_some(), loaded.copied().flatten().unwrap_or(stored));
            found.push(WrapperRecord { magic, version, pointer, moves, co_index });
            rest = &rest[WRAPPER_LEN..];
        }
        Ok(found)
    }

    /// The words at `addresses` that the dynamic loader relocates, by address, with the value that it stores; `None` if
    /// it adds the load address to the stored value (RELR).
    fn relocated(&self, addresses: &Range<u64>) -> Result<BTreeMap<u64, Option<u64>>> {
        let mut values = BTreeMap::new();
        let mut left = self.content.len();
        // Relocations that are not loaded (`--emit-relocs`) are for linkers.
        for section in self.sections.iter().filter(|section| has(section, elf::SHF_ALLOC)) {
            let kind = section.sh_type(LE);
            if ![elf::SHT_RELR, elf::SHT_RELA].contains(&kind) {
                continue;
            }
            self.take(&mut left, section.sh_size(LE), "sections of relocations")?;
            if kind == elf::SHT_RELA {
                let mut own: Vec<[u8; 24]> = Vec::new();
                let mut add = |_, entry: &mut [u8; 24]| {
                    if addresses.contains(&word(entry, 0)) {
                        own.push(*entry);
                    }
                };
                self.each_record(section, &mut add, &mut |_| ())?;
                for entry in own {
                    if let Some(value) = self.value(&entry)? {
                        values.insert(word(&entry, 0), Some(value));
                    }
                }
                continue;
            }
            let mut base = 0_u64;
            let mut add = |_, bytes: &mut [u8; 8]| {
                let entry = u64::from_le_bytes(*bytes);
                // An address, or a bit for each of the 63 words after the last one.
                let bits = if entry & 1 == 0 { 1 } else { entry >> 1 };
                let start = if entry & 1 == 0 { entry } else { base };
                let words = (0..63).filter(|bit| bits >> bit & 1 == 1);
                let own = words.map(|bit| start.wrapping_add(bit * 8));
                values.extend(own.filter(|at| addresses.contains(at)).map(|at| (at, None)));
                base = start.wrapping_add(if entry & 1 == 0 { 8 } else { 63 * 8 });
            };
            self.each_record(section, &mut add, &mut |_| ())?;
        }
        Ok(values)
    }

    /// Calls `each` with the number, tag and value of every entry of a dynamic section before `DT_NULL`. Returns
    /// whether there is a `DT_NULL`.
    pub(super) fn each_entry(
        &self,
        section: &SectionRow,
        each: &mut dyn FnMut(usize, elf::DynamicTag, u64),
    ) -> Result<bool> {
        let mut ended = false;
        let mut look = |number, entry: &mut [u8; 16]| {
            let tag = tag(entry);
            ended |= tag == elf::DT_NULL;
            if !ended {
                each(number, tag, word(entry, 8));
            }
        };
        self.each_record(section, &mut look, &mut |_| ())?;
        Ok(ended)
    }

    /// The value that a relocation stores, for the relocation types found in wrappers.
    fn value(&self, entry: &[u8; 24]) -> Result<Option<u64>> {
        let (info, addend) = (word(entry, 8), word(entry, 16));
        let (symbol, kind) = (info >> 32, info & u64::from(u32::MAX));
        if kind == u64::from(elf::R_X86_64_RELATIVE.0) {
            return Ok(Some(addend));
        }
        let symbols = self.of_type(elf::SHT_DYNSYM).next().map(bytes_of).unwrap_or_default();
        let at = symbols.start.saturating_add(symbol * 24 + 8);
        if kind != u64::from(elf::R_X86_64_64.0) || at.saturating_add(8) > symbols.end {
            return Ok(None);
        }
        let value = u64::from_le_bytes(self.content.read_array(at)?);
        Ok(Some(value.wrapping_add(addend)))
    }
}

pub(super) fn tag(entry: &[u8; 16]) -> elf::DynamicTag {
    elf::DynamicTag(word(entry, 0).cast_signed())
}

fn words(record: &[u8; WRAPPER_LEN]) -> [u32; WRAPPER_LEN / 4] {
    let (words, _) = record.as_chunks::<4>();
    std::array::from_fn(|at| u32::from_le_bytes(words[at]))
}

/// Facts from the dynamic section and the interpreter of a binary.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DynamicInfo {
    /// Whether it names an interpreter.
    pub(crate) is_program: bool,
    pub(crate) soname: Option<String>,
    pub(crate) needed: Vec<String>,
    /// `DT_RUNPATH`, then `DT_RPATH`; loaders use the first.
    pub(crate) search_paths: Vec<DynamicString>,
}

/// A dynamic string with its file offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DynamicString {
    pub(crate) offset: u64,
    pub(crate) text: String,
}

impl DynamicInfo {
    /// The `DT_NEEDED` name of the shim.
    pub(crate) fn shim(&self) -> Option<&str> {
        self.needed.iter().map(String::as_str).find(|name| is_shim(name))
    }

    pub(crate) fn is_shim(&self) -> bool {
        self.soname.as_deref() == Some(SHIM)
    }
}

/// Total bytes of the names of needed libraries. Many entries may refer to one name or to its suffixes.
const MOST_NAMES: usize = 256 << 10;

/// The longest string in bytes. Bazel writes search paths of many kilobytes; one is kept for each file.
const LONGEST: usize = 1 << 20;

/// Search path entries of a file; linkers write one.
const MOST_PATHS: usize = 16;

/// Bytes of a string that are read at a time.
const STRING_WINDOW: u64 = 4096;

/// Reads the dynamic section, if the file has one.
pub(super) fn read_linked(file: &HostElfFile<'_>) -> Result<DynamicInfo> {
    let content = file.content;
    let is_program = file.segments.iter().any(|header| header.p_type(LE) == elf::PT_INTERP);
    let mut linked = DynamicInfo { is_program, ..DynamicInfo::default() };
    let mut sections = file.of_type(elf::SHT_DYNAMIC);
    let Some(section) = sections.next() else { return Ok(linked) };
    if sections.next().is_some() {
        return Err(limit_error(content, "more than one dynamic section".to_owned()));
    }
    let strings = usize::try_from(section.sh_link(LE)).ok().and_then(|at| file.sections.get(at));
    let strings = strings.map(bytes_of).unwrap_or_default();
    let mut needed = Vec::new();
    let [mut soname, mut rpath, mut runpath] = [None; 3];
    file.each_entry(section, &mut |_, tag, at| match tag {
        // A larger number is refused below.
        elf::DT_NEEDED if needed.len() <= MOST_NAMES => needed.push(at),
        // Loaders use the last of several entries.
        elf::DT_SONAME => soname = Some(at),
        elf::DT_RPATH => rpath = Some(at),
        elf::DT_RUNPATH => runpath = Some(at),
        _ => {}
    })?;
    let mut names = 0;
    for at in needed {
        // An unterminated string costs a read to the end of the table, so it counts as the maximum.
        let name = string(content, &strings, at)?;
        names += name.as_ref().map_or(MOST_NAMES, |name| name.text.len()) + 1;
        if names > MOST_NAMES {
            let what = format!("names of needed libraries of more than {MOST_NAMES} bytes");
            return Err(limit_error(content, what));
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

/// `content` with `DT_RPATH` instead of `DT_RUNPATH`: all entries of either tag refer to the string that loaders use.
pub(crate) fn with_rpath(content: &Content) -> Result<Content> {
    let Some(file) = elf_file::open(content)? else { return Ok(content.clone()) };
    let Some(section) = file.of_type(elf::SHT_DYNAMIC).next() else { return Ok(content.clone()) };
    let (mut paths, mut runpath) = (Vec::new(), None);
    file.each_entry(section, &mut |number, tag, at| {
        if [elf::DT_RPATH, elf::DT_RUNPATH].contains(&tag) && paths.len() <= MOST_PATHS {
            paths.push(number as u64);
        }
        runpath = if tag == elf::DT_RUNPATH { Some(at) } else { runpath };
    })?;
    let Some(at) = runpath.filter(|_| paths.len() <= MOST_PATHS) else {
        return Ok(content.clone());
    };
    let entry = [elf::DT_RPATH.0.cast_unsigned(), at].map(u64::to_le_bytes).concat();
    let mut changed = content.clone();
    for number in paths {
        let offset = bytes_of(section).start.saturating_add(number.saturating_mul(16));
        changed = changed.patched(offset, entry.clone())?;
    }
    Ok(changed)
}

/// The string at offset `at` of a table; `None` if it is not terminated within the table.
pub(super) fn string(
    content: &Content,
    table: &Range<u64>,
    at: u64,
) -> Result<Option<DynamicString>> {
    let offset = table.start.saturating_add(at);
    let (end, mut from, mut bytes) = (table.end.min(content.len()), offset, Vec::new());
    while from < end {
        let window =
            content.read_vec(from..end.min(from + STRING_WINDOW), STRING_WINDOW, "string")?;
        let zero = window.iter().position(|byte| *byte == 0);
        bytes.extend(window.iter().take(zero.unwrap_or(window.len())));
        if bytes.len() > LONGEST {
            let what = format!("a name or search path of more than {LONGEST} bytes");
            return Err(limit_error(content, what));
        }
        if zero.is_some() {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            return Ok(Some(DynamicString { offset, text }));
        }
        from += window.len() as u64;
    }
    Ok(None)
}

fn limit_error(content: &Content, what: String) -> Error {
    let hint = "the file is damaged: build it or copy it again";
    let error = Error::new(Kind::Limit, format!("has {what}")).structure("dynamic section");
    error.at(&content.place(0)).hint(hint)
}
