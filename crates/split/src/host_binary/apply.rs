//! Writes a transformed file: original ranges, patches and one cut. Then checks the result.

use std::collections::BTreeMap;
use std::ops::Range;

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result, ResultExt};
use rockpack_elf::hip_wrapper::{self, Magic, Wrapper};
use rockpack_elf::{
    Dyn, Dynamic, DynamicEntry, DynamicSymbols, ElfFile, FILE_HEADER_SIZE, FileHeader, Record, Rela,
};

use super::check::structure;
use super::layout::Replacement;
use super::references::MOVABLE;
use super::registration::Registration;
use super::wrappers::{Binding, BoundWrapper};
use super::{Analysis, Examined, WRAPPER_SECTION, examine, headers, is_zero, symbols, wrappers};

impl Analysis {
    /// The transformed file with `marker` as the reference to kernel archives. No bytes of the original are
    /// copied.
    pub fn apply(&self, marker: &[u8]) -> Result<Content> {
        self.apply_with(marker, super::SHIM)
    }

    /// Like [`apply`](Self::apply). A file for every HIP runtime needs the library `shim`: a soname, or a path that
    /// begins with `$ORIGIN/`.
    pub fn apply_with(&self, marker: &[u8], shim: &str) -> Result<Content> {
        let marker_len = marker.len() as u64;
        if marker_len == 0 || marker_len > self.layout.area {
            let message = format!(
                "a marker of {marker_len} bytes does not fit into {} bytes",
                self.layout.area
            );
            let error = self.file.refuse_section(Kind::Limit, self.layout.fatbin, message);
            return Err(error.hint("a shorter install path makes a shorter marker"));
        }
        self.write(&Content::of_bytes(marker), shim)
    }

    /// The transformed file with `left` in place of the device code.
    pub(super) fn write(&self, left: &Content, shim: &str) -> Result<Content> {
        let _open = self.original().pin()?;
        let tail = &self.tail;
        let sections = headers::sections(&self.file, &self.layout, tail, left.len())?;
        let patched = self.patch_tables(left.len())?;
        let mut splices = Splices::default();
        splices.replace(self.layout.room.front(&self.file), self.front(&patched)?)?;
        splices.replace(self.layout.fatbin_in_file(), self.head(&patched, left, shim)?)?;
        for range in &tail.stale {
            let end = range.end.min(tail.keep_end);
            splices.replace(range.start..end, Content::zeros(end - range.start))?;
        }
        let behind = tail.keep_end..self.original().len();
        splices.replace(behind, tail.content(&sections))?;
        let result = splices.apply(&patched)?;
        check(self, &result, left)
            .map_err(|error| error.into_own_bug("the transformed file does not follow the format"))
            .context(|| "checking the transformed file".into())?;
        Ok(result)
    }

    /// Patches that change no offset: wrappers, their relocations, dynamic tags, symbols.
    fn patch_tables(&self, marker_len: u64) -> Result<Content> {
        let mut patches = Splices::default();
        for (index, bound) in (0u64..).zip(&self.bound) {
            let target = self.target(bound)?;
            let in_place = bound.binding == Binding::InPlace || bound.wrapper.pointer != 0;
            let mut wrapper =
                Wrapper { pointer: if in_place { target } else { 0 }, ..bound.wrapper };
            if let Replacement::Marker = self.layout.replacement {
                wrapper.magic = Magic::Kpack;
                wrapper.reserved = wrapper.reserved >> 32 << 32 | index;
            }
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
        for tag in self.tags().iter().filter(|tag| !self.dynamic.entries.contains(tag)) {
            patches.overwrite(tag.offset, tag.entry.to_bytes())?;
        }
        if let Some(registration) = &self.registration {
            for (offset, bytes) in registration.patches() {
                patches.overwrite(offset, bytes)?;
            }
            let old_names = &self.file.sections[registration.strings];
            let zeros = Content::zeros(old_names.sh_size);
            patches.replace(old_names.sh_offset..old_names.file_end(), zeros)?;
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

    /// The new address that a wrapper points to.
    fn target(&self, bound: &BoundWrapper) -> Result<u64> {
        let target = self.layout.code_address(bound.target);
        target.ok_or_else(|| Error::bug("a wrapper leads into a bundle"))
    }

    /// The new dynamic section: with the addresses of sections that move, the size of the one that grows, and
    /// the shim.
    fn tags(&self) -> Vec<DynamicEntry> {
        let moves: Vec<(u64, u64)> = self
            .layout
            .moving()
            .filter_map(|index| {
                let address = self.layout.moved_to(&self.file, index)?;
                Some((self.file.sections[index].sh_addr, address))
            })
            .collect();
        let mut tags = self.dynamic.entries.clone();
        for Dyn { d_tag, d_val } in tags.iter_mut().map(|tag| &mut tag.entry) {
            if MOVABLE.contains(d_tag)
                && let Some((_, address)) = moves.iter().find(|(old, _)| old == d_val)
            {
                *d_val = *address;
            }
            if *d_tag == elf::DT_STRSZ
                && let Some(registration) = &self.registration
            {
                *d_val = registration.strings_size();
            }
        }
        if let Some(Registration { needed, .. }) = &self.registration {
            match tags.iter_mut().find(|tag| tag.offset == needed.offset) {
                Some(free) => *free = *needed,
                None => tags.push(*needed),
            }
        }
        tags
    }

    /// File header, program headers, and the sections that move up.
    fn front(&self, patched: &Content) -> Result<Content> {
        let segments = &self.program_headers;
        let e_phnum = u16::try_from(segments.len()).map_err(|_| Error::bug("program headers"))?;
        let e_shoff = self.tail.table_offset;
        let header = FileHeader { e_phnum, e_shoff, ..self.file.header };
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

    /// The bytes that replace the device code: marker or bundles, displaced sections, zeros.
    fn head(&self, patched: &Content, left: &Content, shim: &str) -> Result<Content> {
        let layout = &self.layout;
        let mut parts = vec![left.clone()];
        for displaced in &layout.displaced {
            let section = &self.file.sections[displaced.section];
            pad_to(&mut parts, displaced.address - layout.start)?;
            parts.push(match &self.registration {
                Some(names) if names.strings == displaced.section => {
                    names.strings(&self.file, shim)?
                }
                _ => patched.slice(section.sh_offset..section.file_end())?,
            });
        }
        let device_code = layout.fatbin_in_file();
        pad_to(&mut parts, device_code.end - device_code.start - layout.removed())?;
        Ok(Content::concat(&parts))
    }
}

/// Adds zeros up to a total of `len` bytes; a greater length before is a broken invariant.
pub(super) fn pad_to(parts: &mut Vec<Content>, len: u64) -> Result<()> {
    let present: u64 = parts.iter().map(Content::len).sum();
    let missing =
        len.checked_sub(present).ok_or_else(|| Error::bug("a reserved range is too small"))?;
    parts.push(Content::zeros(missing));
    Ok(())
}

/// Checks the result of a transform by reading its small tables again, partly from the original file.
fn check(analysis: &Analysis, content: &Content, left: &Content) -> Result<()> {
    let Some(file) = ElfFile::read(content, elf::EM_X86_64)? else {
        return Err(Error::bug("the transformed file is not an ELF file"));
    };
    file.validate()?;
    structure(&file, Kind::Bug)?;
    let mut faults = Vec::new();
    if file.header.e_phoff != FILE_HEADER_SIZE || content.len() != analysis.output_len() {
        faults.push(Error::bug("the headers or the length are not as planned"));
    }
    faults.extend(unchanged_segments(analysis, &file));
    faults.extend(unchanged_tags(analysis, &file)?);
    faults.extend(wrapper_faults(analysis, &file)?);
    faults.extend(symbol_faults(analysis, &file)?);
    faults.extend(leftover_fault(analysis, &file, left.len())?);
    faults.extend(reread_fault(analysis, content, left)?);
    Error::gather(faults).map_or(Ok(()), Err)
}

/// Checks that relocated data, thread-local templates, unwind tables and the dynamic section stay in place.
fn unchanged_segments(analysis: &Analysis, file: &ElfFile) -> Vec<Error> {
    let kinds = [elf::PT_GNU_RELRO, elf::PT_TLS, elf::PT_GNU_EH_FRAME, elf::PT_DYNAMIC];
    let place = |file: &ElfFile, kind: &elf::ProgramType| {
        file.segment(*kind).map(|it| (it.p_vaddr, it.p_filesz, it.p_memsz))
    };
    let changed = kinds.into_iter().filter(|kind| place(file, kind) != place(&analysis.file, kind));
    changed.map(|kind| Error::bug(format!("segment of type {:#x} changed", kind.0))).collect()
}

/// Checks that only the tags of moved sections change, and that of the shim is added.
fn unchanged_tags(analysis: &Analysis, file: &ElfFile) -> Result<Option<Error>> {
    let expected = analysis.tags().into_iter().map(|tag| tag.entry);
    let found = Dynamic::read(file)?.map(|dynamic| dynamic.entries).unwrap_or_default();
    let is_right = expected.eq(found.into_iter().map(|tag| tag.entry));
    Ok((!is_right).then(|| Error::bug("other dynamic tags changed")))
}

/// Checks that every wrapper points to the marker, by its position, or to its bundle, and that nothing else does.
fn wrapper_faults(analysis: &Analysis, file: &ElfFile) -> Result<Vec<Error>> {
    let section = file.sections_named(WRAPPER_SECTION).first().copied();
    let (Some((index, section)), Some(dynamic)) = (section, Dynamic::read(file)?) else {
        return Ok(vec![Error::bug("the wrappers are missing")]);
    };
    let layout = &analysis.layout;
    let targets = layout.start..layout.end;
    let symbols = DynamicSymbols::read(file, &dynamic)?.to_vec(file)?;
    let bound = wrappers::bind(file, &dynamic, symbols, index, &section, &targets)?;
    let mut faults = Vec::new();
    if bound.len() != analysis.bound.len() {
        faults.push(Error::bug("wrappers were lost"));
    }
    for ((position, after), before) in (0..).zip(&bound).zip(&analysis.bound) {
        let kind = match &layout.replacement {
            Replacement::Marker => (Magic::Kpack, position),
            Replacement::Bundles(_) => (Magic::Fat, before.wrapper.co_index()),
        };
        let right = (after.wrapper.magic, after.wrapper.co_index()) == kind
            && after.target == analysis.target(before)?
            && after.address == before.address;
        if !right {
            let message = format!("wrapper {position} at {:#x} is wrong", after.address);
            faults.push(Error::bug(message));
        }
    }
    Ok(faults)
}

/// Finds symbols that point into the former device code, except into its replacement or displaced sections.
fn symbol_faults(analysis: &Analysis, file: &ElfFile) -> Result<Vec<Error>> {
    let layout = &analysis.layout;
    let mut faults = Vec::new();
    for (index, section) in symbols::symbol_tables(file) {
        for item in file.symbols(index, &section)?.iter() {
            let (offset, symbol) = item?;
            // A symbol such as `_end` may name the end of the replacement.
            let end = layout.start + layout.replacement.len();
            let inside = symbol.st_value > end && symbol.st_value < layout.end;
            let Some(section) = symbol.section().filter(|_| inside) else {
                continue;
            };
            if symbols::are_addresses(file, section) && layout.moved_into_head(section).is_none() {
                let message = format!("a symbol leads to {:#x}", symbol.st_value);
                faults.push(file.refuse(Kind::Bug, "symbol", offset, message));
            }
        }
    }
    Ok(faults)
}

/// Checks that the place of the device code has the `left` bytes, the displaced sections, and zeros.
fn leftover_fault(analysis: &Analysis, file: &ElfFile, left: u64) -> Result<Option<Error>> {
    let layout = &analysis.layout;
    let end = layout.fatbin_in_file().end - layout.removed();
    let mut at = layout.file_start + left;
    for displaced in &layout.displaced {
        let start = layout.head_offset(displaced.address);
        if !is_zero(file, at..start)? {
            return Ok(Some(Error::bug("bytes of device code remain before a section")));
        }
        at = start + displaced.size;
    }
    let clean = is_zero(file, at..end)?;
    Ok((!clean).then(|| Error::bug("bytes of device code remain")))
}

/// Checks that the file reads back as it was planned.
fn reread_fault(analysis: &Analysis, content: &Content, left: &Content) -> Result<Option<Error>> {
    let right = match (&analysis.layout.replacement, examine(content)?) {
        (Replacement::Marker, Examined::Transformed(again)) => {
            left.same_bytes(&Content::of_bytes(again.marker()))?
                && again.co_indexes().len() == analysis.bound.len()
                && again.marker_capacity() >= left.len()
        }
        (Replacement::Bundles(_), Examined::Fat(again)) => again.fatbin.len() == left.len(),
        _ => false,
    };
    Ok((!right).then(|| Error::bug("the transformed file reads back differently")))
}

/// Replaces ranges of a content by others, all given in offsets of the original.
#[derive(Debug, Default)]
pub struct Splices {
    /// End and replacement by start.
    items: BTreeMap<u64, (u64, Content)>,
}

impl Splices {
    /// Replaces `range` by `with`. Overlap with another replacement is a broken invariant: one of the two
    /// would be lost.
    pub fn replace(&mut self, range: Range<u64>, with: Content) -> Result<()> {
        let before = self.items.range(..range.end).next_back();
        if let Some((start, (end, _))) = before.filter(|(_, (end, _))| *end > range.start) {
            let message = format!("edits of {start:#x}..{end:#x} and {range:#x?} overlap");
            return Err(Error::bug(message));
        }
        self.items.insert(range.start, (range.end, with));
        Ok(())
    }

    /// Overwrites the bytes from `offset` on with `bytes`.
    pub fn overwrite(&mut self, offset: u64, bytes: Vec<u8>) -> Result<()> {
        let end = offset.saturating_add(bytes.len() as u64);
        self.replace(offset..end, Content::of_bytes(bytes))
    }

    pub fn apply(&self, content: &Content) -> Result<Content> {
        let mut parts = Vec::with_capacity(self.items.len() * 2 + 1);
        let mut done = 0;
        for (start, (end, with)) in &self.items {
            parts.push(content.slice(done..*start)?);
            parts.push(with.clone());
            done = *end;
        }
        parts.push(content.slice(done..content.len())?);
        Ok(Content::concat(&parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content: &Content) -> String {
        let bytes = content.read_vec(0..content.len(), 100, "test").unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn replacements_are_made_in_the_offsets_of_the_original() {
        let mut splices = Splices::default();
        splices.replace(6..8, Content::default()).unwrap();
        splices.overwrite(0, b"AB".to_vec()).unwrap();
        splices.replace(2..4, Content::of_bytes(*b"cdcd")).unwrap();
        let content = Content::of_bytes(*b"0123456789");
        assert_eq!(text(&splices.apply(&content).unwrap()), "ABcdcd4589");
    }

    #[test]
    fn overlapping_replacements_are_refused() {
        let mut splices = Splices::default();
        splices.overwrite(4, b"xx".to_vec()).unwrap();
        assert!(splices.overwrite(5, b"y".to_vec()).is_err());
        assert!(splices.overwrite(3, b"yy".to_vec()).is_err());
        assert!(splices.overwrite(6, b"y".to_vec()).is_ok());
    }
}
