//! Conditions that a transformed file meets besides those for every file.

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_elf::hip_wrapper::Magic;
use rockpack_elf::{Dynamic, DynamicSymbols, ElfFile, FILE_HEADER_SIZE};

use super::analysis::{Analysis, Examined};
use super::analyze::examine;
use super::bytes::is_zero;
use super::check::structure;
use super::fixed::WRAPPER_SECTION;
use super::{symbols, wrappers};

/// Checks the result of a transform by reading its small tables again, partly from the original file.
pub fn check(analysis: &Analysis, content: &Content, marker: &[u8]) -> Result<()> {
    let checked = result_holds(analysis, content, marker);
    checked.map_err(|error| error.of_own("the transformed file does not follow the format"))
}

fn result_holds(analysis: &Analysis, content: &Content, marker: &[u8]) -> Result<()> {
    let Some(file) = ElfFile::read(content, elf::EM_X86_64)? else {
        return Err(Error::bug("the transformed file is no ELF file"));
    };
    file.validate()?;
    structure(&file, Kind::Bug)?;
    let mut faults = Vec::new();
    if file.header.e_phoff() != FILE_HEADER_SIZE || content.len() != analysis.output_len() {
        faults.push(Error::bug("the headers or the length are not as planned"));
    }
    faults.extend(unchanged_segments(analysis, &file));
    faults.extend(unchanged_tags(analysis, &file)?);
    faults.extend(wrapper_faults(analysis, &file)?);
    faults.extend(symbol_faults(analysis, &file)?);
    faults.extend(remains(analysis, &file, marker)?);
    faults.extend(second_run(analysis, content, marker)?);
    Error::gather(faults).map_or(Ok(()), Err)
}

/// Checks that relocated data, thread-local templates, unwind tables and the dynamic section stay in place.
fn unchanged_segments(analysis: &Analysis, file: &ElfFile) -> Vec<Error> {
    let kinds = [elf::PT_GNU_RELRO, elf::PT_TLS, elf::PT_GNU_EH_FRAME, elf::PT_DYNAMIC];
    let changed = kinds
        .into_iter()
        .filter(|kind| segment_place(file, *kind) != segment_place(&analysis.file, *kind));
    changed.map(|kind| Error::bug(format!("segment of type {:#x} changed", kind.0))).collect()
}

/// The address of the segment, its size in the file and its size in memory.
fn segment_place(file: &ElfFile, kind: elf::ProgramType) -> Option<(u64, u64, u64)> {
    let segment = file.segment(kind)?;
    Some((segment.p_vaddr, segment.p_filesz, segment.p_memsz))
}

/// Checks that only the tags of moved sections change.
fn unchanged_tags(analysis: &Analysis, file: &ElfFile) -> Result<Option<Error>> {
    let tags = analysis.moved_tags();
    // Both are in table order.
    let mut moved = tags.iter().peekable();
    let expected = analysis.dynamic.entries.iter().map(|item| {
        let moved = moved.next_if(|(old, _)| old.offset == item.offset);
        (item.entry.d_tag, moved.map_or(item.entry.d_val, |(_, value)| *value))
    });
    let found = Dynamic::read(file)?;
    let entries = found.iter().flat_map(|dynamic| &dynamic.entries);
    let found = entries.map(|item| (item.entry.d_tag, item.entry.d_val));
    Ok((!expected.eq(found)).then(|| Error::bug("other dynamic tags changed")))
}

/// Checks that every wrapper points to the marker, by its position, and that nothing else does.
fn wrapper_faults(analysis: &Analysis, file: &ElfFile) -> Result<Vec<Error>> {
    let section = file.sections_named(WRAPPER_SECTION).first().copied();
    let (Some((index, section)), Some(dynamic)) = (section, Dynamic::read(file)?) else {
        return Ok(vec![Error::bug("the wrappers are gone")]);
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
        let right = after.wrapper.magic == Magic::Kpack
            && after.wrapper.co_index() == position
            && after.target == layout.start
            && after.address == before.address;
        if !right {
            let message = format!("wrapper {position} at {:#x} is wrong", after.address);
            faults.push(Error::bug(message));
        }
    }
    Ok(faults)
}

/// Finds symbols that point into the former device code, except to the marker or into the displaced section.
fn symbol_faults(analysis: &Analysis, file: &ElfFile) -> Result<Vec<Error>> {
    let layout = &analysis.layout;
    let displaced = layout.displaced.map(|(index, _)| index);
    let mut faults = Vec::new();
    for (index, section) in symbols::symbol_tables(file) {
        for item in file.symbols(index, &section)?.iter() {
            let (offset, symbol) = item?;
            let inside = (layout.start + 1..layout.end).contains(&symbol.st_value);
            let Some(section) = symbol.section().filter(|_| inside) else {
                continue;
            };
            if symbols::are_addresses(file, section) && Some(section) != displaced {
                let message = format!("a symbol leads to {:#x}", symbol.st_value);
                faults.push(file.refuse(Kind::Bug, "symbol", offset, message));
            }
        }
    }
    Ok(faults)
}

/// Checks that the place of the device code has the marker, the displaced section, and zeros.
fn remains(analysis: &Analysis, file: &ElfFile, marker: &[u8]) -> Result<Option<Error>> {
    let layout = &analysis.layout;
    let end = layout.fatbin_in_file().end - layout.removed();
    let mut at = layout.file_start + marker.len() as u64;
    if let Some((index, address)) = layout.displaced {
        let displaced = layout.head_offset(address);
        if !is_zero(file, at..displaced)? {
            return Ok(Some(Error::bug("bytes are left behind the marker")));
        }
        at = displaced + analysis.file.sections[index].sh_size;
    }
    let clean = is_zero(file, at..end)?;
    Ok((!clean).then(|| Error::bug("bytes of device code are left")))
}

/// Checks that a second transform has nothing to do.
fn second_run(analysis: &Analysis, content: &Content, marker: &[u8]) -> Result<Option<Error>> {
    let Examined::Transformed(again) = examine(content)? else {
        return Ok(Some(Error::bug("the transformed file is not recognised as such")));
    };
    let right = again.marker() == marker
        && again.co_indexes().len() == analysis.bound.len()
        && again.marker_capacity() >= marker.len() as u64;
    Ok((!right).then(|| Error::bug("the transformed file reads back differently")))
}
