//! Writes the transformed file: original ranges, patches and one cut.

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result, ResultExt};
use rockpack_elf::hip_wrapper::{self, Magic, Wrapper};
use rockpack_elf::{Dyn, DynamicEntry, Record, Rela};

use super::analysis::Analysis;
use super::check_result;
use super::references::MOVABLE;
use super::sections;
use super::splices::Splices;
use super::wrappers::Binding;

impl Analysis {
    /// The transformed file with `marker` as the reference to kernel archives. No bytes of the original are
    /// copied.
    pub fn apply(&self, marker: &[u8]) -> Result<Content> {
        let marker_len = marker.len() as u64;
        if marker_len == 0 || marker_len > self.layout.area {
            let message = format!(
                "a marker of {marker_len} bytes does not fit into {} bytes",
                self.layout.area
            );
            let error = self.file.refuse_section(Kind::Limit, self.layout.fatbin, message);
            return Err(error.hint("a shorter install path makes a shorter marker"));
        }
        let _open = self.original().pin()?;
        let tail = &self.tail;
        let headers = sections::rebuild(&self.file, &self.layout, tail, marker_len)?;
        let patched = self.patch_tables(marker_len)?;
        let mut splices = Splices::default();
        splices.replace(self.layout.room.front(&self.file), self.front(&patched)?)?;
        splices.replace(self.layout.fatbin_in_file(), self.head(&patched, marker)?)?;
        self.clear_stale(&mut splices)?;
        let behind = tail.keep_end..self.original().len();
        splices.replace(behind, tail.content(&self.file, &headers))?;
        let result = splices.apply(&patched)?;
        check_result::check(self, &result, marker)
            .context(|| "checking the transformed file".into())?;
        Ok(result)
    }

    /// Patches that change no offset: wrappers, their relocations, dynamic tags, symbols.
    fn patch_tables(&self, marker_len: u64) -> Result<Content> {
        let mut patches = Splices::default();
        self.patch_wrappers(&mut patches)?;
        for (item, value) in self.moved_tags() {
            let entry = Dyn { d_val: value, ..item.entry };
            patches.overwrite(item.offset, entry.to_bytes())?;
        }
        for edit in &self.symbol_edits {
            let mut symbol = edit.symbol;
            if edit.is_marker {
                symbol.st_size = marker_len;
            }
            patches.overwrite(edit.offset, symbol.to_bytes())?;
        }
        patches.apply(self.original())
    }

    fn patch_wrappers(&self, patches: &mut Splices) -> Result<()> {
        let target = self.layout.start;
        for (index, bound) in (0u64..).zip(&self.bound) {
            let in_place = bound.binding == Binding::InPlace || bound.wrapper.pointer != 0;
            let wrapper = Wrapper {
                magic: Magic::Kpack,
                pointer: if in_place { target } else { 0 },
                reserved: bound.wrapper.reserved >> 32 << 32 | index,
                ..bound.wrapper
            };
            patches.overwrite(bound.offset, wrapper.to_bytes().to_vec())?;
            if let Binding::Rela { entry, .. } = bound.binding {
                let relocation = Rela {
                    r_offset: bound.address + hip_wrapper::POINTER,
                    r_info: u64::from(elf::R_X86_64_RELATIVE.0),
                    r_addend: target.cast_signed(),
                };
                patches.overwrite(entry, relocation.to_bytes())?;
            }
        }
        Ok(())
    }

    /// Dynamic tags that hold the address of a section that moves, with their new values.
    pub(super) fn moved_tags(&self) -> Vec<(DynamicEntry, u64)> {
        let moving = self.layout.room.moving();
        let moves: Vec<(u64, u64)> = moving
            .filter_map(|index| {
                let address = self.layout.moved_to(&self.file, index)?;
                Some((self.file.sections[index].sh_addr, address))
            })
            .collect();
        let entries = self.dynamic.entries.iter();
        let named = entries.filter(|item| MOVABLE.contains(&item.entry.d_tag));
        named
            .filter_map(|item| {
                let moved = moves.iter().find(|(old, _)| *old == item.entry.d_val)?;
                Some((*item, moved.1))
            })
            .collect()
    }

    /// File header, program headers, and the sections that move up.
    fn front(&self, patched: &Content) -> Result<Content> {
        let segments = &self.program_headers;
        let count = u16::try_from(segments.len()).map_err(|_| Error::bug("program headers"))?;
        let sections = (self.tail.table_offset, self.file.header.e_shnum());
        let header = self.file.header.with_tables(count, sections);
        let mut bytes = header.to_bytes();
        bytes.extend(segments.iter().flat_map(|segment| segment.to_bytes()));
        let mut parts = vec![Content::of_bytes(bytes)];
        let room = &self.layout.room;
        if let (Some(first), Some(last)) = (room.shifted.first(), room.shifted.last()) {
            let start = self.file.sections[*first].sh_offset;
            let end = self.file.sections[*last].file_end();
            pad_to(&mut parts, start + room.shift)?;
            parts.push(patched.slice(start..end)?);
        }
        pad_to(&mut parts, room.front(&self.file).end)?;
        Ok(Content::concat(&parts))
    }

    /// The bytes that replace the device code: marker, displaced section, zeros.
    fn head(&self, patched: &Content, marker: &[u8]) -> Result<Content> {
        let layout = &self.layout;
        let mut parts = vec![Content::of_bytes(marker)];
        if let Some((index, address)) = layout.displaced {
            let section = &self.file.sections[index];
            pad_to(&mut parts, address - layout.start)?;
            parts.push(patched.slice(section.sh_offset..section.file_end())?);
        }
        let device_code = layout.fatbin_in_file();
        pad_to(&mut parts, device_code.end - device_code.start - layout.removed())?;
        Ok(Content::concat(&parts))
    }

    fn clear_stale(&self, splices: &mut Splices) -> Result<()> {
        for range in &self.tail.stale {
            let end = range.end.min(self.tail.keep_end);
            splices.replace(range.start..end, Content::zeros(end - range.start))?;
        }
        Ok(())
    }
}

/// Adds zeros up to a total of `len` bytes; a greater length before is a broken invariant.
fn pad_to(parts: &mut Vec<Content>, len: u64) -> Result<()> {
    let present: u64 = parts.iter().map(Content::len).sum();
    let missing =
        len.checked_sub(present).ok_or_else(|| Error::bug("a reserved range is too small"))?;
    parts.push(Content::zeros(missing));
    Ok(())
}
