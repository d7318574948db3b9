//! How device code was taken out of a binary, as its header tables before and after show it.
//!
//! ```text
//! before   header, table │ tables of the loader │ ... │ device code              │ rest of the segment
//! after    header, table, one entry more │ those, moved up │ ... │ marker, one of them, zeros │ rest
//! ```
//!
//! Where the device code ends on another page than the marker, the whole pages between are not in the
//! file any more, and the rest of the segment is a segment of its own. The entry for that takes room
//! behind the table: sections make it that nothing but headers and tags of the dynamic section lead to.

use std::ops::Range;

use object::elf;
use object::read::elf::{ProgramHeader as _, SectionHeader as _};
use rockpack_base::error::{Error, Result};

use crate::verify::own::tables::{
    FILE_HEADER, LE, SEGMENT, SectionRow, Segment, Tables, addresses_of, bytes_of, has, is_in_file,
};

/// Most sections that make room: those between the program headers and the first that stays.
const MOST_MOVED: usize = 64;

/// Bytes of a page.
pub(super) const PAGE: u64 = 4096;

/// The parts of a binary that were taken out, and those that moved.
#[derive(Debug)]
pub(super) struct Removal<'a> {
    pub(super) before: &'a Tables,
    pub(super) after: &'a Tables,
    /// The index of the section with device code.
    pub(super) fatbin: usize,
    /// The index before of the load segment that held it.
    pub(super) load: usize,
    /// The place where bytes were cut out; `None` if none were.
    pub(super) cut: Option<Cut>,
    /// Whether the entry for the program headers themselves is gone.
    pub(super) drops_own_entry: bool,
    /// The sections that moved up, by their offsets.
    pub(super) shifted: Vec<usize>,
    /// The distance in bytes.
    pub(super) shift: u64,
    /// The section that went to the place of the device code, and its address there.
    pub(super) displaced: Option<(usize, u64)>,
}

/// Whole pages that are not in the file any more.
#[derive(Debug, Clone)]
pub(super) struct Cut {
    /// The first address of them.
    pub(super) head_end: u64,
    /// The bytes of the pages in the file before.
    pub(super) bytes: Range<u64>,
    /// The segment behind them, where there is one.
    pub(super) second: Option<Segment>,
    /// The segment that remains before the cut.
    pub(super) first: Segment,
}

impl<'a> Removal<'a> {
    /// Reads it off the tables of both files; fails where they cannot be those of one binary.
    pub(super) fn read(before: &'a Tables, after: &'a Tables, fatbin: usize) -> Result<Self> {
        let code = section(before, fatbin)?;
        if before.sections.len() != after.sections.len() {
            return Err(other("has another number of sections"));
        }
        let load = before
            .segments
            .iter()
            .position(|load| holds(load, code))
            .ok_or_else(|| other("has device code outside of any load segment"))?;
        let drops_own_entry = has_own_entry(before) && !has_own_entry(after);
        let mut removal = Self {
            before,
            after,
            fatbin,
            load,
            cut: None,
            drops_own_entry,
            shifted: Vec::new(),
            shift: 0,
            displaced: None,
        };
        removal.cut = removal.find_cut()?;
        removal.find_moved()?;
        removal.check_own_entry()?;
        Ok(removal)
    }

    /// The section with device code.
    pub(super) fn code(&self) -> &'a SectionRow {
        &self.before.sections[self.fatbin]
    }

    /// The load segment that held it.
    pub(super) fn segment(&self) -> &'a Segment {
        &self.before.segments[self.load]
    }

    fn find_cut(&self) -> Result<Option<Cut>> {
        let (own, code) = (self.segment(), addresses_of(self.code()));
        let at = self
            .after
            .segments
            .iter()
            .position(|s| s.p_type(LE) == elf::PT_LOAD && s.p_vaddr(LE) == own.p_vaddr(LE))
            .ok_or_else(|| other("lacks the segment that held the device code"))?;
        let first = self.after.segments[at];
        if first.p_filesz(LE) == own.p_filesz(LE) {
            return Ok(None);
        }
        let head_end = first.p_vaddr(LE).saturating_add(first.p_filesz(LE));
        let (start, cut_end) = (code.start, code.end / PAGE * PAGE);
        let marker_end = start.saturating_add(self.after.sections[self.fatbin].sh_size(LE));
        let whole = head_end.is_multiple_of(PAGE) && head_end >= marker_end;
        let removed = cut_end
            .checked_sub(head_end)
            .filter(|removed| whole && *removed > 0)
            .ok_or_else(|| other("has no whole pages cut out"))?;
        let cut_start = self.code().sh_offset(LE) + (head_end - start);
        let had = self.before.segments.len() - usize::from(self.drops_own_entry);
        let second = match self.after.segments.len().checked_sub(had) {
            Some(0) => None,
            Some(1) => self.after.segments.get(at + 1).copied(),
            _ => return Err(other("has another number of segments")),
        };
        Ok(Some(Cut { head_end, bytes: cut_start..cut_start + removed, second, first }))
    }

    /// Whether the table of program headers has an entry more.
    pub(super) fn adds_entry(&self) -> bool {
        self.cut.as_ref().is_some_and(|cut| cut.second.is_some())
    }

    fn find_moved(&mut self) -> Result<()> {
        let rows = self.before.sections.iter().zip(&self.after.sections).enumerate();
        let moved = rows.filter(|(index, (before, after))| {
            *index != self.fatbin && before.sh_addr(LE) != after.sh_addr(LE)
        });
        for (index, (before, after)) in moved {
            let (from, to) = (before.sh_addr(LE), after.sh_addr(LE));
            let head = self.cut.as_ref().map(|cut| self.code().sh_addr(LE)..cut.head_end);
            if !self.adds_entry() || !is_movable(self.before, before) {
                return Err(other("has a section at another address that has no cause to move"));
            }
            if head.is_some_and(|head| head.contains(&to)) {
                if self.displaced.replace((index, to)).is_some() {
                    return Err(other("has two sections where the device code was"));
                }
                continue;
            }
            let shift = to.checked_sub(from).filter(|by| self.shift == 0 || *by == self.shift);
            self.shift = shift.ok_or_else(|| other("has sections that moved apart"))?;
            self.shifted.push(index);
        }
        self.shifted.sort_by_key(|index| self.before.sections[*index].sh_offset(LE));
        self.check_moved()
    }

    /// Sections that moved up lie behind one another, and there are a few of them.
    fn check_moved(&self) -> Result<()> {
        let Some(bytes) = self.shifted_bytes() else { return Ok(()) };
        let rows = self.before.sections.iter().filter(|section| is_in_file(section));
        let between = rows.filter(|section| bytes.contains(&section.sh_offset(LE))).count();
        if between != self.shifted.len() || between > MOST_MOVED {
            return Err(other("has sections that moved past others"));
        }
        Ok(())
    }

    /// Only a library can do without the entry for its own program headers, and only for room.
    fn check_own_entry(&self) -> Result<()> {
        let is_program = self.before.segments.iter().any(|s| s.p_type(LE) == elf::PT_INTERP);
        if self.drops_own_entry && (is_program || !self.adds_entry()) {
            return Err(other("lacks the entry for its program headers"));
        }
        Ok(())
    }

    /// Number of bytes that the file lost.
    pub(super) fn removed(&self) -> u64 {
        self.cut.as_ref().map_or(0, |cut| cut.bytes.end - cut.bytes.start)
    }

    /// The new offset of the bytes at `offset`. Only segments and sections without bytes may lie inside of the
    /// cut: they stay congruent.
    pub(super) fn new_offset(&self, offset: u64) -> u64 {
        let Some(Cut { bytes, .. }) = &self.cut else { return offset };
        if offset >= bytes.end {
            offset - self.removed()
        } else if offset > bytes.start {
            bytes.start + (offset - bytes.start) % (1 << self.removed().trailing_zeros())
        } else {
            offset
        }
    }

    /// The new address of a section, if it moved.
    pub(super) fn moved_to(&self, index: usize) -> Option<u64> {
        match self.displaced {
            Some((displaced, address)) if displaced == index => Some(address),
            _ => {
                let shifted = self.shifted.contains(&index);
                shifted.then(|| self.before.sections[index].sh_addr(LE).saturating_add(self.shift))
            }
        }
    }

    /// The sections that moved.
    pub(super) fn moved(&self) -> impl Iterator<Item = usize> {
        self.shifted.iter().copied().chain(self.displaced.map(|(index, _)| index))
    }

    /// The bytes before of the sections that moved up, from the first to the last.
    pub(super) fn shifted_bytes(&self) -> Option<Range<u64>> {
        let ends = [*self.shifted.first()?, *self.shifted.last()?];
        let [first, last] = ends.map(|index| bytes_of(&self.before.sections[index]));
        Some(first.start..last.end)
    }

    /// The bytes that the headers take and what made room for them, before and after.
    pub(super) fn front(&self) -> Range<u64> {
        let tables = [self.before.segments.len(), self.segments_after()]
            .map(|count| FILE_HEADER + SEGMENT * count as u64);
        let shifted = self.shifted_bytes().map(|bytes| bytes.end.saturating_add(self.shift));
        let displaced = self.displaced.map(|(index, _)| bytes_of(&self.before.sections[index]).end);
        0..tables.into_iter().chain(shifted).chain(displaced).fold(0, u64::max)
    }

    /// How many program headers there are afterwards.
    pub(super) fn segments_after(&self) -> usize {
        let added = self.before.segments.len() + usize::from(self.adds_entry());
        added - usize::from(self.drops_own_entry)
    }
}

fn section(tables: &Tables, index: usize) -> Result<&SectionRow> {
    let section = tables.sections.get(index).filter(|section| is_in_file(section));
    section.ok_or_else(|| other("has no section of device code"))
}

fn has_own_entry(tables: &Tables) -> bool {
    tables.segments.iter().any(|segment| segment.p_type(LE) == elf::PT_PHDR)
}

/// Whether the load segment has all of the section.
fn holds(load: &Segment, section: &SectionRow) -> bool {
    let (addresses, bytes) = (addresses_of(section), bytes_of(section));
    let end = load.p_vaddr(LE).saturating_add(load.p_filesz(LE));
    load.p_type(LE) == elf::PT_LOAD
        && load.p_vaddr(LE) <= addresses.start
        && addresses.end <= end
        && load.p_offset(LE) <= bytes.start
        && bytes.start - load.p_offset(LE) == addresses.start - load.p_vaddr(LE)
}

/// Whether nothing but headers and tags of the dynamic section leads to the section.
fn is_movable(tables: &Tables, section: &SectionRow) -> bool {
    let kinds = [
        elf::SHT_GNU_VERNEED,
        elf::SHT_GNU_VERSYM,
        elf::SHT_GNU_VERDEF,
        elf::SHT_GNU_HASH,
        elf::SHT_HASH,
        elf::SHT_STRTAB,
        elf::SHT_DYNSYM,
        elf::SHT_NOTE,
    ];
    let movable = kinds.contains(&section.sh_type(LE))
        || tables.segments.iter().any(|segment| {
            segment.p_type(LE) == elf::PT_INTERP && segment.p_offset(LE) == section.sh_offset(LE)
        });
    has(section, elf::SHF_ALLOC) && movable
}

/// The two files are not one binary before and after.
pub(super) fn other(message: &str) -> Error {
    Error::malformed(message)
}
