//! The form of a host binary: everything that the removal of device code does not change.
//!
//! A binary with device code and the binary without it must have the same form. Two binaries with the same form are the
//! same program.
//!
//! | part | in the form |
//! |---|---|
//! | ELF header | without the offset of the section headers and the number of program headers |
//! | load segments | each separately, since device code may be in the middle of one |
//! | other program headers | the index of their section instead of its address, and whether they are loaded |
//! | sections | bytes and header without offset; without address if the section may move |
//! | `.dynamic`, symbols | references to a section that may move: its index instead of its address |
//! | `.hip_fatbin`, or the marker in its place | the address; other checks read the marker |
//! | wrappers, their relocations, symbols of device code | changed to refer to the marker |
//! | bytes outside sections | gaps with bytes other than zeros and fillers |
//! | references to the shim | see [`shim_form`](super::shim_form) |
//!
//! Refused: more load segments than linkers write, and sections whose total size exceeds twice the file.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};
use object::{LittleEndian as LE, elf, pod};
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};
use sha2::{Digest, Sha256};

use crate::readers::Sha;
use crate::readers::elf_file::{
    self, HostElfFile, SectionRow, Segment, addresses_of, bytes_of, has, word,
};
use crate::readers::host_elf::{HIPF, HIPK, WRAPPER_LEN, WRAPPER_SECTION_LIMIT, tag};
use crate::readers::shim_form::ShimPlaces;

const FATBIN: &[u8] = b".hip_fatbin";
const MARKER: &[u8] = b".rocm_kpack_ref";
const WRAPPERS: &[u8] = b".hipFatBinSegment";

/// Zeros, and the bytes that tools write over sections that they moved.
const FILLERS: &[u8] = b"\0XZ";
const LOADS_MAX: usize = 256;

/// Sections that, like notes, may move to make room for program headers: code and data do not refer to them.
const MOVABLE: &str =
    ".dynstr .dynsym .gnu.hash .gnu.version .gnu.version_d .gnu.version_r .hash .interp";

/// The form of a host binary that has or had device code.
#[derive(Debug)]
pub(crate) struct HostForm {
    /// The ELF header, the program headers and the sections: name for messages and digest.
    pub(crate) parts: Vec<(String, Sha)>,
    /// Load segments. Offset and physical address are relative to the address; the offset is modulo the alignment.
    pub(crate) loads: Vec<Segment>,
    /// The address of the device code, or of the marker.
    pub(crate) code: u64,
    /// Digests of the bytes between sections and headers.
    pub(crate) gaps: BTreeSet<Sha>,
    /// Whether `.dynamic` has `DT_RELACOUNT`; `None` if the binary does not register its wrappers with the shim.
    shim: Option<bool>,
}

impl HostForm {
    /// Reads the linked host ELF file `content`. For a build, `installed` is the form of the installed binary: if that
    /// registers its wrappers with the shim, the build's form is adapted to it.
    pub(crate) fn read(content: &Content, installed: Option<&Self>) -> Result<Self> {
        let file = elf_file::open(content)?
            .ok_or_else(|| Error::malformed("is not a linked program or library for x86-64"))?;
        Reader::of(&file, installed.and_then(|it| it.shim))?.form()
    }
}

struct Reader<'a> {
    file: &'a HostElfFile<'a>,
    /// The index and address of the section with device code or the marker.
    code: (usize, u64),
    /// Whether the section has device code.
    has_code: bool,
    movable: Vec<bool>,
    /// Address of a loaded section → its index.
    starts: BTreeMap<u64, usize>,
    /// References to the shim, or their places in a build.
    shim: Option<ShimPlaces>,
}

impl<'a> Reader<'a> {
    fn of(file: &'a HostElfFile<'a>, shim: Option<bool>) -> Result<Self> {
        let sections = &file.sections;
        let named = |name: &[u8]| sections.iter().position(|it| file.name(it) == name);
        let marker = named(MARKER);
        let code = marker.or_else(|| named(FATBIN));
        let code = code.ok_or_else(|| Error::malformed("has no section of device code"))?;
        let is_movable = |it: &SectionRow| {
            let mut named = MOVABLE.split(' ').map(str::as_bytes);
            let is_note = it.sh_type(LE) == elf::SHT_NOTE;
            has(it, elf::SHF_ALLOC) && (is_note || named.any(|name| name == file.name(it)))
        };
        let loaded = sections.iter().enumerate().rev().filter(|(_, it)| takes_addresses(it));
        let reader = Self {
            file,
            code: (code, sections[code].sh_addr(LE)),
            has_code: marker.is_none(),
            movable: sections.iter().map(is_movable).collect(),
            starts: loaded.map(|(index, it)| (it.sh_addr(LE), index)).collect(),
            shim: ShimPlaces::read(file, shim)?,
        };
        if reader.loads().count() > LOADS_MAX {
            return Err(Error::malformed(format!("has more than {LOADS_MAX} load segments")));
        }
        Ok(reader)
    }

    fn form(&self) -> Result<HostForm> {
        let mut header = self.file.header;
        header.e_shoff.set(LE, 0);
        header.e_phnum.set(LE, 0);
        let mut parts: Vec<(String, Sha)> = vec![
            ("the ELF header".to_owned(), Sha256::digest(pod::bytes_of(&header)).into()),
            ("the program headers".to_owned(), Sha256::digest(self.other_segments()).into()),
        ];
        let mut left = self.file.content.len().saturating_mul(2);
        for (index, section) in self.file.sections.iter().enumerate() {
            let Range { start, end } = bytes_of(section);
            self.file.take(&mut left, end - start, "sections")?;
            parts.push(self.section(index, section)?);
        }
        let loads = self.loads().map(|load| {
            let (mut row, address) = (*load, load.p_vaddr(LE));
            let distance = load.p_offset(LE).wrapping_sub(address);
            row.p_offset.set(LE, distance % load.p_align(LE).max(1));
            row.p_paddr.set(LE, load.p_paddr(LE).wrapping_sub(address));
            row
        });
        let gaps = self.gaps()?;
        let (loads, shim) = (loads.collect(), self.shim.as_ref().map(|it| it.has_count));
        Ok(HostForm { parts, loads, code: self.code.1, gaps, shim })
    }

    fn loads(&self) -> impl Iterator<Item = &'a Segment> {
        self.file.segments.iter().filter(|segment| segment.p_type(LE) == elf::PT_LOAD)
    }

    /// The program headers except load segments. `PT_PHDR`, if valid, is included without its size, and only for
    /// programs.
    fn other_segments(&self) -> Vec<u8> {
        let (own, segments, mut bytes) = (self.own_table(), &self.file.segments, Vec::new());
        let is_program = segments.iter().any(|it| it.p_type(LE) == elf::PT_INTERP);
        for segment in segments.iter().filter(|it| it.p_type(LE) != elf::PT_LOAD) {
            let (address, size) = (segment.p_vaddr(LE), segment.p_filesz(LE));
            let is_loaded = self.is_loaded(address, size, Some(segment.p_offset(LE)), false);
            let is_own = segment.p_offset(LE) == own.start
                && [size, segment.p_memsz(LE)].iter().all(|it| *it == own.end - own.start);
            let mut row = *segment;
            if segment.p_type(LE) == elf::PT_PHDR && is_loaded && is_own {
                if !is_program {
                    continue;
                }
                row.p_filesz.set(LE, 0);
                row.p_memsz.set(LE, 0);
            }
            row.p_offset.set(LE, u64::from(is_loaded));
            row.p_paddr.set(LE, segment.p_paddr(LE).wrapping_sub(address));
            if let Some(index) = self.starts.get(&address).filter(|_| size > 0) {
                row.p_vaddr.set(LE, !(*index as u64));
            }
            bytes.extend_from_slice(pod::bytes_of(&row));
        }
        bytes
    }

    fn own_table(&self) -> Range<u64> {
        let start = self.file.header.e_phoff(LE);
        start..start.saturating_add(size_of_val(&*self.file.segments) as u64)
    }

    /// Whether one load segment contains `size` bytes at `address`, loaded from `offset` of the file if there is one.
    fn is_loaded(&self, address: u64, size: u64, offset: Option<u64>, is_code: bool) -> bool {
        self.loads().any(|load| {
            let skip = address.wrapping_sub(load.p_vaddr(LE));
            let room = if offset.is_some() { load.p_filesz(LE) } else { load.p_memsz(LE) };
            room.checked_sub(skip).is_some_and(|room| size <= room)
                && offset.is_none_or(|at| at == load.p_offset(LE).wrapping_add(skip))
                && (!is_code || load.p_flags(LE).0 & elf::PF_X.0 != 0)
        })
    }

    fn section(&self, index: usize, section: &SectionRow) -> Result<(String, Sha)> {
        let cut = self.shim.as_ref().map_or(*section, |shim| shim.section(index, section));
        let (mut row, mut hash) = (cut, Sha256::new());
        let is_names = index == self.file.names_index();
        let is_code = index == self.code.0;
        let name = if is_code { MARKER } else { self.file.name(section) };
        let (address, size) = (section.sh_addr(LE), section.sh_size(LE));
        let offset = section.file_range(LE).map(|(offset, _)| offset);
        let is_loaded = !takes_addresses(section)
            || self.is_loaded(address, size, offset, has(section, elf::SHF_EXECINSTR));
        row.sh_name.set(LE, 0);
        row.sh_offset.set(LE, u64::from(is_loaded));
        if self.movable[index] {
            row.sh_addr.set(LE, 0);
        }
        if is_names || is_code {
            row.sh_size.set(LE, 0);
        }
        if is_code && self.has_code {
            row.sh_flags.set(LE, elf::SHF_ALLOC);
            row.sh_addralign.set(LE, 1);
        }
        hash.update(pod::bytes_of(&row));
        hash.update(name);
        if !is_names && !is_code {
            self.hash_content(&cut, name, &mut hash)?;
        }
        Ok((String::from_utf8_lossy(name).into_owned(), hash.finalize().into()))
    }

    fn hash_content(&self, section: &SectionRow, name: &[u8], hash: &mut Sha256) -> Result<()> {
        let (file, target, shim) = (self.file, self.code.1, self.shim.as_ref());
        let mut add = |bytes: &[u8]| hash.update(bytes);
        match section.sh_type(LE) {
            _ if self.has_code && name == WRAPPERS => {
                let range = bytes_of(section);
                let mut bytes = file.content.read_vec(range, WRAPPER_SECTION_LIMIT, "wrappers")?;
                normalize_wrappers(&mut bytes, target);
                add(&bytes);
                Ok(())
            }
            elf::SHT_RELA if self.has_code && has(section, elf::SHF_ALLOC) => {
                let all = file.sections.iter().filter(|it| takes_addresses(it));
                let wrappers = all.filter(|it| file.name(it) == WRAPPERS);
                let wrappers = wrappers.map(addresses_of).next().unwrap_or_default();
                let mut normalize = |_, entry: &mut [u8; 24]| {
                    if wrappers.contains(&word(entry, 0)) {
                        put(entry, 8, elf::R_X86_64_RELATIVE.0.into());
                        put(entry, 16, target);
                    }
                };
                file.each_record(section, &mut normalize, &mut add)
            }
            elf::SHT_DYNAMIC => {
                let mut ended = false;
                let mut normalize = |number, entry: &mut [u8; 16]| {
                    ended |= tag(entry) == elf::DT_NULL;
                    let is_reference = !ended && leads_to_section(tag(entry));
                    let leads_to = self.starts.get(&word(entry, 8)).filter(|_| is_reference);
                    if let Some(index) = leads_to {
                        put(entry, 8, !(*index as u64));
                    }
                    shim.iter().for_each(|shim| shim.normalize_entry(number, entry));
                };
                file.each_record(section, &mut normalize, &mut add)
            }
            kind @ (elf::SHT_SYMTAB | elf::SHT_DYNSYM) => {
                let shim = shim.filter(|_| kind == elf::SHT_DYNSYM);
                let mut normalize = |number, symbol: &mut [u8; 24]| {
                    self.normalize_symbol(symbol);
                    shim.iter().for_each(|shim| shim.normalize_symbol(number, symbol));
                };
                file.each_record(section, &mut normalize, &mut add)
            }
            elf::SHT_GNU_VERSYM => {
                let mut normalize = |number, version: &mut [u8; 2]| {
                    shim.iter().for_each(|shim| shim.normalize_version(number, version));
                };
                file.each_record(section, &mut normalize, &mut add)
            }
            _ => file.content.slice(bytes_of(section))?.each_window(add),
        }
    }

    /// Normalizes a symbol of the marker or of a section that may move.
    fn normalize_symbol(&self, symbol: &mut [u8; 24]) {
        let index = usize::from(u16::from_le_bytes([symbol[6], symbol[7]]));
        let value = word(symbol, 8);
        let (code, target) = self.code;
        let own = self.file.sections.get(index).map(addresses_of).unwrap_or_default();
        if index == code {
            put(symbol, 8, if self.has_code { target } else { value });
            put(symbol, 16, 0);
        } else if self.movable.get(index) == Some(&true) && (own.start..=own.end).contains(&value) {
            put(symbol, 8, value - own.start);
        }
    }

    /// Digests the bytes between sections and header tables. The tables of section names and headers may move; old ones
    /// that are loaded stay in the file.
    fn gaps(&self) -> Result<BTreeSet<Sha>> {
        let (header, content) = (&self.file.header, self.file.content);
        let table = header.e_shoff(LE);
        let table = table..table.saturating_add(size_of_val(&self.file.sections[..]) as u64);
        let names = self.file.sections.get(self.file.names_index());
        let names = names.map(bytes_of).unwrap_or_default();
        let mut taken = vec![0..size_of_val(header) as u64, self.own_table()];
        taken.push(content.len()..content.len());
        let sections = self.file.sections.iter().enumerate();
        let others = sections.filter(|(index, _)| *index != self.file.names_index());
        taken.extend(others.map(|(_, section)| bytes_of(section)));
        for table in [names, table] {
            let loads = self.loads().map(|load| load.file_range(LE));
            let loads = loads.map(|(start, size)| start..start.saturating_add(size));
            let meeting = loads.filter(|load| {
                !load.is_empty() && load.start < table.end && table.start < load.end
            });
            let start = meeting.map(|load| load.end).fold(table.start, u64::max);
            taken.push(start..table.end.max(start));
        }
        taken.sort_by_key(|range| range.start);
        let (mut gaps, mut at) = (BTreeSet::new(), 0);
        for range in taken {
            if at < range.start {
                gaps.extend(gap(&content.slice(at..range.start)?)?);
            }
            at = at.max(range.end);
        }
        Ok(gaps)
    }
}

/// Whether the value of a dynamic tag is the address of a section that may move.
fn leads_to_section(tag: elf::DynamicTag) -> bool {
    matches!(
        tag,
        elf::DT_HASH
            | elf::DT_GNU_HASH
            | elf::DT_STRTAB
            | elf::DT_SYMTAB
            | elf::DT_VERSYM
            | elf::DT_VERNEED
            | elf::DT_VERDEF
    )
}

/// The digest of a gap without leading and trailing zeros; `None` if it has only fillers.
fn gap(content: &Content) -> Result<Option<Sha>> {
    let (mut hash, mut zeros, mut begun, mut counts) = (Sha256::new(), 0_u64, false, false);
    content.each_window(|bytes| {
        for run in bytes.chunk_by(|one, next| (*one == 0) == (*next == 0)) {
            if run.starts_with(&[0]) {
                zeros += run.len() as u64;
                continue;
            }
            if begun && zeros > 0 {
                hash.update(zeros.to_le_bytes());
            }
            hash.update(run);
            (zeros, begun) = (0, true);
            counts |= run.iter().any(|byte| !FILLERS.contains(byte));
        }
    })?;
    Ok(counts.then(|| hash.finalize().into()))
}

/// Changes wrappers of device code to those of a marker at `target`: non-zero pointers refer to it, and each wrapper
/// has its number.
fn normalize_wrappers(bytes: &mut [u8], target: u64) {
    let (mut rest, mut number) = (bytes, 0_u32);
    while rest.len() >= WRAPPER_LEN {
        // Sanitizers pad wrappers.
        let is_wrapper = rest.starts_with(&HIPF.to_le_bytes());
        let len = if is_wrapper { WRAPPER_LEN } else { 8 };
        let (record, behind) = std::mem::take(&mut rest).split_at_mut(len);
        rest = behind;
        if is_wrapper {
            record[..4].copy_from_slice(&HIPK.to_le_bytes());
            if word(record, 8) != 0 {
                put(record, 8, target);
            }
            record[16..20].copy_from_slice(&number.to_le_bytes());
            number += 1;
        }
    }
}

/// The address after the end of a segment.
pub(crate) fn end_of(load: &Segment) -> u64 {
    load.p_vaddr(LE).saturating_add(load.p_memsz(LE))
}

/// Whether a section occupies addresses: a thread-local template without bytes does not.
fn takes_addresses(section: &SectionRow) -> bool {
    let template = section.sh_type(LE) == elf::SHT_NOBITS && has(section, elf::SHF_TLS);
    has(section, elf::SHF_ALLOC) && section.sh_size(LE) > 0 && !template
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}
