//! The header tables that a binary has to have without its device code, by those that it had.

use object::elf;
use object::read::elf::{ProgramHeader as _, SectionHeader as _};
use rockpack_base::content::Content;
use rockpack_base::error::Result;

use super::removal::{Cut, PAGE, Removal, other};
use crate::verify::own::tables::{
    LE, SEGMENT, SectionRow, Segment, addresses_of, bytes_of, has, is_in_file, name_of,
    takes_addresses,
};

/// The name of the section that stands where the device code was.
const MARKER: &[u8] = b".rocm_kpack_ref\0";

/// The places of the section names and the section table after the transform.
#[derive(Debug)]
pub(super) struct Tail {
    /// The file is kept up to here.
    pub(super) keep_end: u64,
    /// Offset of the names.
    pub(super) names_at: u64,
    /// The names.
    pub(super) names: Vec<u8>,
    /// Offset of the table.
    pub(super) table_at: u64,
}

impl Removal<'_> {
    /// The program headers.
    pub(super) fn segments(&self, content: &Content, names: &[u8]) -> Result<Vec<Segment>> {
        let mut table = Vec::with_capacity(self.segments_after());
        for (index, segment) in self.before.segments.iter().enumerate() {
            match &self.cut {
                _ if self.drops_own_entry && segment.p_type(LE) == elf::PT_PHDR => {}
                Some(cut) if index == self.load => table.extend(self.parts(cut, content, names)?),
                _ => table.push(self.relocated(segment)),
            }
        }
        let size = table.len() as u64 * SEGMENT;
        let least = self.least_alignment();
        for segment in &mut table {
            if segment.p_type(LE) == elf::PT_PHDR {
                segment.p_filesz.set(LE, size);
                segment.p_memsz.set(LE, size);
            }
            let align = segment.p_align(LE).max(1);
            let apart = segment.p_vaddr(LE) % align != segment.p_offset(LE) % align;
            if segment.p_type(LE) == elf::PT_LOAD && apart {
                segment.p_align.set(LE, align.min(least));
            }
        }
        Ok(table)
    }

    /// The remaining parts of the segment that held the device code.
    fn parts(&self, cut: &Cut, content: &Content, names: &[u8]) -> Result<Vec<Segment>> {
        let own = self.segment();
        let end = own.p_vaddr(LE).saturating_add(own.p_memsz(LE));
        let kept = cut.head_end - own.p_vaddr(LE);
        let mut first = *own;
        first.p_filesz.set(LE, kept);
        // What is zeroed behind the device code stays the tail of the segment.
        let zeroed = cut.second.is_none() && end != addresses_of(self.code()).end;
        first.p_memsz.set(LE, if zeroed { own.p_memsz(LE) } else { kept });
        let mut parts = vec![first];
        self.check_between(cut, content)?;
        if let Some(found) = cut.second {
            let start = found.p_vaddr(LE);
            let skip = start.saturating_sub(own.p_vaddr(LE));
            let mut second = *own;
            second.p_offset.set(LE, self.new_offset(own.p_offset(LE).saturating_add(skip)));
            second.p_vaddr.set(LE, start);
            second.p_paddr.set(LE, own.p_paddr(LE).wrapping_add(skip));
            second.p_filesz.set(LE, own.p_filesz(LE).saturating_sub(skip));
            second.p_memsz.set(LE, own.p_memsz(LE).saturating_sub(skip));
            parts.push(second);
        }
        self.drop_execution(cut, &mut parts, names);
        Ok(parts)
    }

    /// Nothing but zeros of no section lies between the device code and what is loaded behind it.
    fn check_between(&self, cut: &Cut, content: &Content) -> Result<()> {
        let (own, code) = (self.segment(), addresses_of(self.code()));
        let (behind, end) = (bytes_of(self.code()).end, own.p_vaddr(LE) + own.p_filesz(LE));
        let start = cut.second.as_ref().map_or(end, |second| second.p_vaddr(LE));
        let page = code.end / PAGE * PAGE;
        if cut.second.is_some() && !(page..page + PAGE).contains(&start) {
            return Err(other("has a segment that does not begin where the device code ends"));
        }
        let passes_section = self.before.sections.iter().any(|section| {
            takes_addresses(section)
                && is_in_file(section)
                && (code.end..start).contains(&section.sh_addr(LE))
        });
        let zeros = behind..behind.saturating_add(start.saturating_sub(code.end));
        if passes_section || !content.slice(zeros)?.is_zero()? {
            return Err(other("does not load what lies behind the device code"));
        }
        Ok(())
    }

    /// A part without code may be loaded without leave to execute it, where another part has the code.
    fn drop_execution(&self, cut: &Cut, parts: &mut [Segment], names: &[u8]) {
        let some_have_code = parts
            .iter()
            .any(|part| self.sections_in(part).iter().any(|s| has(s, elf::SHF_EXECINSTR)));
        let found = std::iter::once(cut.first).chain(cut.second);
        for (part, found) in parts.iter_mut().zip(found) {
            let without = elf::ProgramFlags(part.p_flags(LE).0 & !elf::PF_X.0);
            let is_data = self.sections_in(part).iter().all(|section| is_data(section, names));
            if some_have_code && is_data && found.p_flags(LE) == without {
                part.p_flags.set(LE, without);
            }
        }
    }

    /// The sections whose addresses lie in a part.
    fn sections_in(&self, part: &Segment) -> Vec<&SectionRow> {
        let range = part.p_vaddr(LE)..part.p_vaddr(LE).saturating_add(part.p_memsz(LE));
        let all = self.before.sections.iter().filter(|section| takes_addresses(section));
        all.filter(|section| range.contains(&section.sh_addr(LE))).collect()
    }

    /// A segment that held no device code: it follows the bytes that it names.
    fn relocated(&self, segment: &Segment) -> Segment {
        let mut moved = *segment;
        let (start, size) = (segment.p_offset(LE), segment.p_filesz(LE));
        moved.p_offset.set(LE, self.new_offset(start));
        let kind = segment.p_type(LE);
        if kind == elf::PT_LOAD || kind == elf::PT_PHDR || size == 0 {
            return moved;
        }
        let shifted = self
            .shifted_bytes()
            .filter(|bytes| bytes.start <= start && start.saturating_add(size) <= bytes.end);
        let covers_moved = shifted.is_some()
            && self.moved().any(|index| {
                let bytes = bytes_of(&self.before.sections[index]);
                bytes.start < start.saturating_add(size) && start < bytes.end
            });
        if covers_moved {
            moved.p_offset.set(LE, start.saturating_add(self.shift));
            moved.p_vaddr.set(LE, segment.p_vaddr(LE).saturating_add(self.shift));
            moved.p_paddr.set(LE, segment.p_paddr(LE).wrapping_add(self.shift));
        }
        moved
    }

    /// The alignment that a segment keeps whose offset and address are no longer those of larger pages:
    /// the largest that a section asks for and a segment gives.
    fn least_alignment(&self) -> u64 {
        let sections = self.before.sections.iter().enumerate();
        let others = sections.filter(|(index, s)| *index != self.fatbin && takes_addresses(s));
        let asked = others.map(|(_, section)| section.sh_addralign(LE)).fold(PAGE, u64::max);
        let loads = self.before.segments.iter().filter(|s| s.p_type(LE) == elf::PT_LOAD);
        loads.map(|load| load.p_align(LE)).fold(PAGE, u64::max).min(asked)
    }

    /// The section headers.
    pub(super) fn sections(&self, tail: &Tail, marker: u64) -> Vec<SectionRow> {
        let mut table = self.before.sections.clone();
        for (index, row) in table.iter_mut().enumerate() {
            let offset = row.sh_offset(LE);
            row.sh_offset.set(LE, self.new_offset(offset));
            if let Some(address) = self.moved_to(index) {
                row.sh_addr.set(LE, address);
                row.sh_offset.set(LE, self.moved_offset(index, address));
            }
        }
        if let Some(row) = table.get_mut(self.fatbin) {
            row.sh_name.set(LE, u32::try_from(tail.names.len() - MARKER.len()).unwrap_or(u32::MAX));
            row.sh_flags.set(LE, elf::SHF_ALLOC);
            row.sh_offset.set(LE, self.code().sh_offset(LE));
            row.sh_size.set(LE, marker);
            row.sh_addralign.set(LE, 1);
        }
        if let Some(row) = table.get_mut(self.before.names_index()) {
            row.sh_offset.set(LE, tail.names_at);
            row.sh_size.set(LE, tail.names.len() as u64);
        }
        table
    }

    /// The offset of a section that moved to `address`.
    fn moved_offset(&self, index: usize, address: u64) -> u64 {
        let (own, code) = (self.before.sections[index].sh_offset(LE), self.code());
        match self.displaced {
            Some((displaced, _)) if displaced == index => {
                code.sh_offset(LE).saturating_add(address.saturating_sub(code.sh_addr(LE)))
            }
            _ => own.saturating_add(self.shift),
        }
    }

    /// The end of the file.
    pub(super) fn tail(&self, content: &Content, names: &[u8]) -> Result<Tail> {
        let end = self.content_end();
        let clear = self.is_clear_behind(content, end)?;
        let keep_end = if clear { end } else { content.len() };
        let names = [names, MARKER].concat();
        let names_at = self.new_offset(keep_end);
        let names_end = names_at.saturating_add(names.len() as u64);
        let table_at = names_end.next_multiple_of(8);
        Ok(Tail { keep_end, names_at, names, table_at })
    }

    /// The end of everything except the section names and their table.
    fn content_end(&self) -> u64 {
        let rows = self.before.sections.iter().enumerate();
        let kept =
            rows.filter(|(index, row)| *index != self.before.names_index() && is_in_file(row));
        let sections = kept.map(|(_, row)| bytes_of(row).end);
        let segments = self
            .before
            .segments
            .iter()
            .filter(|segment| segment.p_filesz(LE) > 0)
            .map(|s| s.p_offset(LE).saturating_add(s.p_filesz(LE)));
        sections.chain(segments).max().unwrap_or_default()
    }

    /// The old names of sections and their old table.
    pub(super) fn old_tables(&self) -> [std::ops::Range<u64>; 2] {
        let names = self.before.sections.get(self.before.names_index()).map(bytes_of);
        let mut tables = [names.unwrap_or_default(), self.before.sections_in_file()];
        tables.sort_by_key(|range| range.start);
        tables
    }

    /// Whether nothing but zeros and the old tables lies behind `start`.
    fn is_clear_behind(&self, content: &Content, start: u64) -> Result<bool> {
        let mut at = start;
        for table in self.old_tables() {
            if at < table.start && !content.slice(at..table.start)?.is_zero()? {
                return Ok(false);
            }
            at = at.max(table.end);
        }
        Ok(at >= content.len() || content.slice(at..content.len())?.is_zero()?)
    }
}

/// Whether a section is a table that linkers make, or constants by its name.
fn is_data(section: &SectionRow, names: &[u8]) -> bool {
    let constants: [&[u8]; 6] = [
        b".interp",
        b".rodata",
        b".eh_frame",
        b".eh_frame_hdr",
        b".gcc_except_table",
        b".hip_fatbin",
    ];
    let is_table =
        section.sh_type(LE) != elf::SHT_PROGBITS && section.sh_type(LE) != elf::SHT_NOBITS;
    !has(section, elf::SHF_EXECINSTR) && (is_table || constants.contains(&name_of(section, names)))
}
