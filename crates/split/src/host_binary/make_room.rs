//! Room for more program headers directly after the ELF header.
//!
//! The table cannot be elsewhere: GNU `strip` and `objcopy` always write it after the ELF header, and break files where
//! it was elsewhere (`eu-strip` of elfutils 0.188 to 0.196 keeps it where it is). So room is made after the table, in
//! the least intrusive way that suffices:
//!
//! 1. the linker's padding after the table;
//! 2. in a library, the `PT_PHDR` entry, which only executables need;
//! 3. one section of the loader's tables moves into the space of the device code, and the sections before it
//!    move up as far as needed. Only tables that nothing but dynamic tags point to are moved, and
//!    notes and the interpreter's name stay in the first page, where kernels and debuggers look for them.
//!    Relocations never move.
//!
//! Refused: bytes outside of sections after the table, or between and after the sections that move, and
//! dynamic tags that point into moving sections elsewhere than to their start.

use std::ops::Range;

use object::elf;
use rockpack_core::error::{Error, Kind, Result, ResultExt};
use rockpack_elf::{Dynamic, ElfFile, FILE_HEADER_SIZE, PROGRAM_HEADER_SIZE, SectionHeader};

use super::{PAGE, align_up, is_filled_with};

/// Bytes outside of sections: zeros, and the letters that `patchelf` writes over sections that it moved
/// elsewhere (0.14 `X`, 0.18 `Z`).
pub(super) const FILLERS: [u8; 3] = [0, b'X', b'Z'];

/// Maximum number of sections after the table that are considered for moving: real files have a dozen of the loader's
/// tables, and every symbol and segment is compared with those that move.
const MOST_MOVED: usize = 64;

/// The way in which the table gets its room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeaderRoom {
    pub extra: usize,
    pub drop_program_headers_entry: bool,
    /// Indexes of the sections that move up, in file order.
    pub shifted: Vec<usize>,
    /// The distance that they move, in bytes.
    pub shift: u64,
    /// Index of the section that goes elsewhere: the one after `shifted`.
    pub displaced: Option<usize>,
}

impl HeaderRoom {
    /// The bytes of the headers and of the sections that make room for them, before and after.
    pub fn front(&self, file: &ElfFile) -> Range<u64> {
        let before = file.program_headers.len();
        let after = before + self.extra - usize::from(self.drop_program_headers_entry);
        let sections = &file.sections;
        let shifted = self.shifted.iter().map(|index| sections[*index].file_end() + self.shift);
        let displaced = self.displaced.iter().map(|index| sections[*index].file_end());
        0..shifted.chain(displaced).fold(table_end(before.max(after)), u64::max)
    }

    /// The sections that move: those that move up, then the one that goes elsewhere.
    pub fn moving(&self) -> impl Iterator<Item = usize> {
        self.shifted.iter().copied().chain(self.displaced)
    }
}

/// The ways in which a section after the table may move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mobility {
    /// Move up or go elsewhere.
    Displaceable,
    /// Move up within the first page.
    Shiftable,
    Fixed,
}

pub fn find(file: &ElfFile, extra: usize) -> Result<HeaderRoom> {
    let search = Search::new(file)?;
    let mut room = HeaderRoom { extra, ..HeaderRoom::default() };
    let mut entries = file.program_headers.len() + extra;
    if search.fits(entries) {
        return Ok(room);
    }
    if is_library(file)? && file.segment(elf::PT_PHDR).is_some() {
        room.drop_program_headers_entry = true;
        entries -= 1;
        if search.fits(entries) {
            return Ok(room);
        }
    }
    let (count, shift) = search.displace(entries)?;
    for (position, (_, section)) in search.following.iter().enumerate().take(count + 1) {
        search.refuse_unknown_content(section.file_end(), position + 1)?;
    }
    room.displaced = search.following.get(count).map(|(index, _)| *index);
    room.shifted = search.following.iter().take(count).map(|(index, _)| *index).collect();
    room.shift = shift;
    Ok(room)
}

fn is_library(file: &ElfFile) -> Result<bool> {
    let dynamic = Dynamic::read(file).if_readable()?.flatten();
    let flags = dynamic.and_then(|dynamic| dynamic.value(elf::DT_FLAGS_1));
    let pie = flags.unwrap_or_default() & elf::DF_1_PIE.0 != 0;
    Ok(file.header.e_type == elf::ET_DYN && file.segment(elf::PT_INTERP).is_none() && !pie)
}

struct Search<'a> {
    file: &'a ElfFile,
    /// The sections after the table, by offset.
    following: Vec<(usize, SectionHeader)>,
    /// End of the load segment that holds the table, in the file.
    segment_end: u64,
}

impl<'a> Search<'a> {
    fn new(file: &'a ElfFile) -> Result<Self> {
        let table_end = table_end(file.program_headers.len());
        let segment = file
            .loads()
            .find(|(_, load)| load.p_offset <= FILE_HEADER_SIZE && table_end <= load.file_end());
        let Some((_, segment)) = segment else {
            let message = "are in no load segment";
            let place = FILE_HEADER_SIZE;
            return Err(file.refuse(Kind::Unsupported, "program headers", place, message));
        };
        let all = file.sections.iter().copied().enumerate();
        let mut following: Vec<_> = all
            .filter(|(_, section)| section.is_in_file() && section.sh_offset < segment.file_end())
            .collect();
        following.sort_by_key(|(_, section)| section.sh_offset);
        let search = Self { file, following, segment_end: segment.file_end() };
        search.refuse_unknown_content(table_end, 0)?;
        Ok(search)
    }

    /// Refuses bytes outside of sections from `start` to the section with `position`: their use is unknown.
    fn refuse_unknown_content(&self, start: u64, position: usize) -> Result<()> {
        let end = self.start_of(position);
        if end >= start && is_filled_with(self.file, start..end, &FILLERS)? {
            return Ok(());
        }
        let message = "are followed by bytes that belong to no section";
        let file = self.file;
        Err(file.refuse(Kind::Unsupported, "program headers", start, message))
    }

    /// Offset of the section with `position` after the table, or the end of the segment.
    fn start_of(&self, position: usize) -> u64 {
        let section = self.following.get(position);
        section.map_or(self.segment_end, |(_, section)| section.sh_offset.min(self.segment_end))
    }

    fn fits(&self, entries: usize) -> bool {
        table_end(entries) <= self.start_of(0)
    }

    /// The number of sections that move up, and the distance, to make room for a table of `entries`. Chosen
    /// so that the section after them, which goes elsewhere, is as small as possible.
    fn displace(&self, entries: usize) -> Result<(usize, u64)> {
        let all = self.candidates(entries);
        // `patchelf` may add entries. It moves sections out of their way in the order of the section table and stops at
        // the first one that is far enough. A displaced section is, so those after it must be far enough too.
        let sections = self.file.sections.iter();
        let notes = sections.filter(|section| section.sh_type == elf::SHT_NOTE).count();
        let patchable = table_end(entries + 1 + notes);
        let size = |(position, _): &&(usize, u64)| self.following[*position].1.sh_size;
        let far = all.iter().filter(|(position, _)| self.start_of(position + 1) > patchable);
        let best = far.min_by_key(size).or_else(|| all.iter().min_by_key(size));
        best.copied().ok_or_else(|| self.no_room(entries))
    }

    /// The positions of the sections that make enough room by going elsewhere, with the distances in bytes that
    /// those before them move up.
    fn candidates(&self, entries: usize) -> Vec<(usize, u64)> {
        let following = self.following.iter().take(MOST_MOVED);
        let movable = following
            .map(|(_, section)| mobility(self.file, section))
            .take_while(|mobility| *mobility != Mobility::Fixed)
            .enumerate();
        movable
            .filter(|(_, mobility)| *mobility == Mobility::Displaceable)
            .filter_map(|(position, _)| Some((position, self.shift_before(position, entries)?)))
            .collect()
    }

    /// The bytes by which the sections before `position` move up if that one goes elsewhere; `None` if that
    /// does not make enough room.
    fn shift_before(&self, position: usize, entries: usize) -> Option<u64> {
        let limit = self.start_of(position + 1);
        let moving = &self.following[..position];
        let needed = table_end(entries) - self.start_of(0).min(table_end(entries));
        let Some((_, last)) = moving.last() else {
            return (table_end(entries) <= limit).then_some(0);
        };
        let align = moving.iter().map(|(_, section)| section.sh_addralign.max(1)).max()?;
        let shift = align_up(needed, align);
        let leaves_first_page = moving.iter().any(|(_, section)| {
            let end = section.file_end();
            mobility(self.file, section) == Mobility::Shiftable && end <= PAGE && end + shift > PAGE
        });
        (last.file_end() + shift <= limit && !leaves_first_page).then_some(shift)
    }

    fn no_room(&self, entries: usize) -> Error {
        let first = self.following.first().map(|(_, section)| self.file.name(section));
        let message = format!(
            "no room for {entries} program headers: {} is in the way",
            first.as_deref().unwrap_or("an unknown part")
        );
        let file = self.file;
        let error = file.refuse(Kind::Unsupported, "program headers", FILE_HEADER_SIZE, message);
        error.hint("a section that only the dynamic loader reads must follow the program headers")
    }
}

pub(super) fn table_end(entries: usize) -> u64 {
    FILE_HEADER_SIZE + PROGRAM_HEADER_SIZE * entries as u64
}

fn mobility(file: &ElfFile, section: &SectionHeader) -> Mobility {
    if !section.is_allocated() {
        return Mobility::Fixed;
    }
    match section.sh_type {
        elf::SHT_GNU_VERNEED
        | elf::SHT_GNU_VERSYM
        | elf::SHT_GNU_VERDEF
        | elf::SHT_GNU_HASH
        | elf::SHT_HASH
        | elf::SHT_STRTAB
        | elf::SHT_DYNSYM => Mobility::Displaceable,
        elf::SHT_NOTE => Mobility::Shiftable,
        _ if file.name_bytes(section) == b".interp" => Mobility::Shiftable,
        _ => Mobility::Fixed,
    }
}
