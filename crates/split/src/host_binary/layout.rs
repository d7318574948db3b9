//! The layout of a transformed file, host-only or with fewer bundles.
//!
//! ```text
//! segment S before  ... | other sections | .hip_fatbin                            | other sections
//!                                          fs                                   fe
//! afterwards        ... | other sections | kept, displaced, zeros   |   (hole)   | other sections
//!                       S ────────────────────────────────────────► H            T ◄── segment B
//! ```
//!
//! H and T are page boundaries. The file loses the bytes from H to T, and nothing else moves in memory. B
//! begins with the first section after T, in that page. The addresses between are in no segment, like
//! those between the text and the data of a library that is linked for large pages. The alternative, a zero-filled
//! tail of S, would need a segment of its own if S is executable, would count as memory of the process if
//! S is writable, and would make `eu-elflint` assign a large `.bss` to it. If nothing follows in S, there is no B.
//! If only zeroed memory follows, it stays the tail of S, from H on: in a segment of its own, `eu-elflint`
//! would find no section, and `strip` would leave it without one. Device code without a whole page after the
//! marker is cleared in place.
//!
//! If a section asks for more than page alignment, the loader aligns the whole file by its load segment. The
//! segment may keep that alignment as long as its offset is congruent to its address. So the cut is a
//! multiple of the largest such alignment: it is smaller, or nothing is cut, where that requires it.

use std::ops::Range;

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_elf::{ElfFile, ProgramHeader, SectionHeader};

use super::make_room::{self, HeaderRoom};
use super::{LEAST_MARKER_AREA, MARKER_AREA, MAX_FAULTS, PAGE, align_up, is_zero};

/// The layout of the transformed file. Addresses are relative to the load address; offsets are of the
/// original file.
#[derive(Debug, Clone)]
pub struct Layout {
    pub fatbin: usize,
    /// First address of `.hip_fatbin`, where the marker goes.
    pub start: u64,
    /// First address after `.hip_fatbin`.
    pub end: u64,
    /// Offset of `.hip_fatbin`.
    pub file_start: u64,
    /// Index of the load segment that holds `.hip_fatbin`, among the program headers.
    pub segment: usize,
    pub replacement: Replacement,
    /// Bytes reserved for it.
    pub area: u64,
    /// How the program header table gets its room.
    pub room: HeaderRoom,
    /// The sections that go after the marker, in this order.
    pub displaced: Vec<Displaced>,
    /// The removed range; `None` if the device code is cleared in place.
    pub split: Option<SegmentCut>,
}

/// What replaces the device code.
#[derive(Debug, Clone)]
pub enum Replacement {
    /// A reference to kernel archives.
    Marker,
    /// Bundles, in the order of their offsets.
    Bundles(Vec<MovedBundle>),
}

/// A bundle that moves towards the start of the device code, with offsets from there.
#[derive(Debug, Clone)]
pub struct MovedBundle {
    /// Its place in the original.
    pub from: Range<u64>,
    /// Its new offset.
    pub to: u64,
    pub content: Content,
}

/// A section that moves into the space of the device code.
#[derive(Debug, Clone)]
pub struct Displaced {
    pub section: usize,
    pub address: u64,
    pub size: u64,
}

#[derive(Debug, Clone)]
pub struct SegmentCut {
    /// First address of the removed range, page-aligned.
    pub head_end: u64,
    /// The content after the device code in the same segment.
    pub segment_tail: SegmentTail,
    /// The bytes that the file loses: whole pages.
    pub cut: Range<u64>,
}

/// The content after the device code in its segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentTail {
    Nothing,
    /// Memory that is zero when the program starts, and no bytes of the file.
    Zeroed,
    /// Other content, kept from this address on, the start of the page where the device code ends.
    Content(u64),
}

impl Layout {
    /// Plans the layout of `file`, whose device code is in section `fatbin`. A section that grows, with its new
    /// size, goes after the replacement of the device code.
    pub fn plan(
        file: &ElfFile,
        fatbin: usize,
        replacement: Replacement,
        grown: Option<(usize, u64)>,
    ) -> Result<Self> {
        let section = file.sections[fatbin];
        let segment = file.loads().find(|(_, load)| holds(load, &section));
        let (segment, _) = segment.ok_or_else(|| {
            let message = "is not in one load segment as a whole";
            file.refuse_section(Kind::Unsupported, fatbin, message)
        })?;
        refuse_overlaps(file, fatbin, segment)?;
        let mut layout = Self {
            fatbin,
            start: section.sh_addr,
            end: section.memory_end(),
            file_start: section.sh_offset,
            segment,
            area: match &replacement {
                Replacement::Marker => MARKER_AREA.min(section.sh_size),
                // A smaller area would be refused when the file is read again.
                Replacement::Bundles(_) => replacement.len().max(LEAST_MARKER_AREA),
            },
            replacement,
            room: HeaderRoom::default(),
            displaced: Vec::new(),
            split: None,
        };
        if let Some((grown, size)) = grown {
            layout.displace(file, grown, size);
            if layout.head_end() > layout.end {
                let message =
                    "is too small for the names of dynamic symbols, which must move there";
                let error = file.refuse_section(Kind::Unsupported, fatbin, message);
                return Err(error.hint(super::registration::KEEP_FAT_HINT));
            }
        }
        let segment_tail = layout.segment_tail(file)?;
        match layout.split(file, segment_tail, layout.head_end()) {
            None => Ok(layout),
            Some(split) => layout.with_room(file, split),
        }
    }

    /// Finds the room that `split` needs, and splits again around a section that it displaces.
    fn with_room(self, file: &ElfFile, split: SegmentCut) -> Result<Self> {
        let segment_tail = split.segment_tail;
        let extra = usize::from(matches!(segment_tail, SegmentTail::Content(_)));
        let room = make_room::find(file, extra)?;
        let mut layout = Self { room, ..self.clone() };
        if let Some(section) =
            layout.room.displaced.filter(|it| layout.moved_into_head(*it).is_none())
        {
            layout.displace(file, section, file.sections[section].sh_size);
        }
        match layout.split(file, segment_tail, layout.head_end()) {
            Some(split) => Ok(Self { split: Some(split), ..layout }),
            // The rest to cut could not even hold the displaced section.
            None => Ok(self),
        }
    }

    /// Moves a section after the marker and the sections displaced before it.
    fn displace(&mut self, file: &ElfFile, section: usize, size: u64) {
        let address = align_up(self.head_end(), file.sections[section].sh_addralign.max(1));
        self.displaced.push(Displaced { section, address, size });
    }

    /// The address after the marker's area and the displaced sections.
    fn head_end(&self) -> u64 {
        let last = self.displaced.last();
        last.map_or(self.start + self.area, |last| last.address.saturating_add(last.size))
    }

    /// The section's place after the marker, if it goes there.
    pub fn moved_into_head(&self, section: usize) -> Option<&Displaced> {
        self.displaced.iter().find(|displaced| displaced.section == section)
    }

    /// Indexes of the sections that move.
    pub fn moving(&self) -> impl Iterator<Item = usize> {
        let shifted = self.room.shifted.iter().copied();
        let shifted = shifted.filter(|section| self.moved_into_head(*section).is_none());
        shifted.chain(self.displaced.iter().map(|displaced| displaced.section))
    }

    /// Finds the content after the device code in its segment.
    fn segment_tail(&self, file: &ElfFile) -> Result<SegmentTail> {
        let segment = &file.program_headers[self.segment];
        let mut sections = file.sections.iter().filter(|section| {
            section.takes_addresses() && (self.end..segment.memory_end()).contains(&section.sh_addr)
        });
        // Zeros outside of sections are still memory of the program.
        let nothing = segment.memory_end() == self.end;
        let tail = self.fatbin_in_file().end..segment.file_end();
        if sections.any(SectionHeader::is_in_file) || is_named(file, &tail) || !is_zero(file, tail)?
        {
            return Ok(SegmentTail::Content(self.end / PAGE * PAGE));
        }
        Ok(if nothing { SegmentTail::Nothing } else { SegmentTail::Zeroed })
    }

    /// The cut after a head that ends at `head_end` or later; `None` if there is no whole page to cut, or
    /// none that preserves all alignments.
    fn split(
        &self,
        file: &ElfFile,
        segment_tail: SegmentTail,
        head_end: u64,
    ) -> Option<SegmentCut> {
        let step = largest_alignment(file, self.fatbin);
        let cut_end = self.end / PAGE * PAGE;
        let removed = cut_end.checked_sub(align_up(head_end, PAGE))? / step * step;
        if removed == 0 {
            return None;
        }
        let head_end = cut_end - removed;
        let cut_start = self.file_start + (head_end - self.start);
        Some(SegmentCut { head_end, segment_tail, cut: cut_start..cut_start + removed })
    }

    /// The range of `.hip_fatbin` in the original file.
    pub fn fatbin_in_file(&self) -> Range<u64> {
        self.file_start..self.file_start + (self.end - self.start)
    }

    pub fn removed(&self) -> u64 {
        self.split.as_ref().map_or(0, |split| split.cut.end - split.cut.start)
    }

    /// The offset in the new file for `offset` of the original. Only segments and sections without bytes are
    /// in the cut. Such segments stay congruent, by pages and by the alignment that the cut is a multiple of.
    pub fn new_offset(&self, offset: u64) -> u64 {
        match &self.split {
            Some(split) if offset >= split.cut.end => offset - self.removed(),
            Some(split) if offset > split.cut.start => {
                let step = 1 << self.removed().trailing_zeros();
                split.cut.start + (offset - split.cut.start) % step
            }
            _ => offset,
        }
    }

    /// The offset in the new file of an address within the head.
    pub fn head_offset(&self, address: u64) -> u64 {
        self.file_start + (address - self.start)
    }

    /// The new address of the byte at `address` of the device code; `None` inside of a bundle that changes.
    pub fn code_address(&self, address: u64) -> Option<u64> {
        let Replacement::Bundles(bundles) = &self.replacement else { return Some(self.start) };
        let offset = address.checked_sub(self.start)?;
        let at = bundles.partition_point(|bundle| bundle.from.start <= offset);
        // Only padding precedes the first bundle.
        let Some(bundle) = at.checked_sub(1).and_then(|at| bundles.get(at)) else {
            return (offset == 0).then_some(address);
        };
        let new = self.start + bundle.to;
        if offset == bundle.from.start {
            return Some(new);
        }
        (offset >= bundle.from.end).then(|| new + bundle.content.len())
    }

    /// The addresses of the sections that move.
    pub fn moved(&self, file: &ElfFile) -> Vec<Range<u64>> {
        let moving = self.moving().filter(|index| self.moved_to(file, *index).is_some());
        let sections = moving.map(|index| &file.sections[index]);
        sections.map(|section| section.sh_addr..section.memory_end()).collect()
    }

    /// The new address of section `index`, if it moves.
    pub fn moved_to(&self, file: &ElfFile, index: usize) -> Option<u64> {
        if let Some(displaced) = self.moved_into_head(index) {
            return Some(displaced.address);
        }
        let shifted = self.room.shifted.contains(&index) && self.room.shift > 0;
        shifted.then(|| file.sections[index].sh_addr + self.room.shift)
    }
}

impl Replacement {
    /// The bytes of the remaining bundles.
    pub fn len(&self) -> u64 {
        let Self::Bundles(bundles) = self else { return 0 };
        bundles.last().map_or(0, |last| last.to + last.content.len())
    }
}

/// The largest alignment of loaded sections, apart from the device code, and of load segments: the page size,
/// or a greater one.
pub fn largest_alignment(file: &ElfFile, fatbin: usize) -> u64 {
    let sections = file.sections.iter().enumerate();
    let others = sections.filter(|(index, section)| *index != fatbin && section.takes_addresses());
    let asked = others.map(|(_, section)| section.sh_addralign).fold(PAGE, u64::max);
    let given = file.loads().map(|(_, load)| load.p_align).fold(PAGE, u64::max);
    asked.min(given)
}

/// Whether a program header other than a load segment covers bytes of `range`: these must stay in the file,
/// even if they are zeros.
pub fn is_named(file: &ElfFile, range: &Range<u64>) -> bool {
    let others = file.program_headers.iter().filter(|header| !header.is_load());
    others
        .filter(|header| header.p_filesz > 0)
        .any(|header| header.p_offset < range.end && range.start < header.file_end())
}

fn holds(load: &ProgramHeader, section: &SectionHeader) -> bool {
    load.p_vaddr <= section.sh_addr
        && section.memory_end() <= load.p_vaddr + load.p_filesz
        && load.p_offset <= section.sh_offset
        && section.sh_offset - load.p_offset == section.sh_addr - load.p_vaddr
}

/// Refuses anything else in the address range of the device code.
fn refuse_overlaps(file: &ElfFile, fatbin: usize, segment: usize) -> Result<()> {
    let own = file.sections[fatbin];
    let memory = own.sh_addr..own.memory_end();
    let bytes = own.sh_offset..own.file_end();
    let segments = file
        .program_headers
        .iter()
        .enumerate()
        .filter(|(index, header)| *index != segment && segment_covers(header, &memory, &bytes))
        .map(|(index, _)| {
            let message = format!("covers device code at {:#x}", own.sh_addr);
            file.refuse_segment(Kind::Unsupported, index, message)
        });
    let sections = file
        .sections
        .iter()
        .enumerate()
        .skip(1)
        .filter(|(index, section)| *index != fatbin && section_overlaps(section, &memory, &bytes))
        .map(|(index, _)| {
            let message = format!("overlaps device code at {:#x}", own.sh_addr);
            file.refuse_section(Kind::Unsupported, index, message)
        });
    let faults = segments.chain(sections).take(MAX_FAULTS).collect();
    Error::gather(faults).map_or(Ok(()), Err)
}

fn segment_covers(header: &ProgramHeader, memory: &Range<u64>, bytes: &Range<u64>) -> bool {
    let in_file = header.p_filesz > 0 && intersects(bytes, header.p_offset, header.file_end());
    // Other headers take addresses only for their bytes in the file: a thread-local template, and the
    // stack, whose header has its size.
    let in_memory = header.is_load() || header.p_type == elf::PT_GNU_RELRO;
    let size = if in_memory { header.p_memsz } else { header.p_filesz };
    let in_memory = size > 0 && intersects(memory, header.p_vaddr, header.p_vaddr + size);
    in_file || in_memory
}

fn section_overlaps(section: &SectionHeader, memory: &Range<u64>, bytes: &Range<u64>) -> bool {
    let in_file = section.is_in_file() && intersects(bytes, section.sh_offset, section.file_end());
    let in_memory =
        section.takes_addresses() && intersects(memory, section.sh_addr, section.memory_end());
    in_file || in_memory
}

fn intersects(range: &Range<u64>, start: u64, end: u64) -> bool {
    start < range.end && range.start < end
}
