//! Conditions that a file meets before and after the transform.

use std::ops::Range;

use object::elf;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_elf::{
    ElfFile, FILE_HEADER_SIZE, PROGRAM_HEADER_SIZE, ProgramHeader, SECTION_HEADER_SIZE,
    SectionHeader,
};

use super::{MAX_FAULTS, PAGE};

/// Checks every file that the transform reads or writes. A violation is an error of `kind`: unsupported
/// input, or a bug if the transform wrote the file.
pub fn structure(file: &ElfFile, kind: Kind) -> Result<()> {
    let mut faults = load_faults(file, kind);
    if faults.is_empty() {
        faults.extend(segment_faults(file, kind));
        faults.extend(section_faults(file, kind));
        faults.extend(repeated_segments(file, kind));
        faults.extend(overlap_faults(file, kind));
        faults.extend(names_fault(file, kind));
        faults.extend(program_header_fault(file, kind));
    }
    Error::gather(faults).map_or(Ok(()), Err)
}

/// Faults of the load segments: each must be congruent and within the file, and they must be ascending and
/// disjoint. They may share a page only if they are adjacent in the file.
fn load_faults(file: &ElfFile, kind: Kind) -> Vec<Error> {
    let mut faults = Vec::new();
    let (mut end, mut before) = (0_u64, 0);
    for (index, load) in file.loads() {
        let mut refuse = |message: String| faults.push(file.refuse_segment(kind, index, message));
        let align = load.p_align.max(1);
        if load.p_offset % align != load.p_vaddr % align {
            refuse(format!(
                "offset {:#x} and address {:#x} differ modulo {align:#x}",
                load.p_offset, load.p_vaddr
            ));
        }
        if load.p_offset % PAGE != load.p_vaddr % PAGE {
            refuse(format!("offset {:#x} is not congruent by pages", load.p_offset));
        }
        if load.p_filesz > load.p_memsz {
            refuse("is larger in the file than in memory".to_owned());
        }
        if load.p_vaddr < end {
            refuse(format!("address {:#x} lies before the end of another", load.p_vaddr));
        }
        // The loader maps whole pages, the later segment's over the earlier one's.
        let distance = load.p_vaddr.wrapping_sub(load.p_offset);
        if load.p_vaddr / PAGE < end.div_ceil(PAGE) && distance != before {
            refuse("begins in a page of another segment, with other bytes of the file".to_owned());
        }
        (end, before) = (load.memory_end(), distance);
        if faults.len() >= MAX_FAULTS {
            break;
        }
    }
    faults
}

/// Reports a second segment of a type that occurs once in every file: the loader takes the last one, other
/// tools the first.
fn repeated_segments(file: &ElfFile, kind: Kind) -> Vec<Error> {
    let single =
        [elf::PT_DYNAMIC, elf::PT_PHDR, elf::PT_INTERP, elf::PT_TLS, elf::PT_GNU_RELRO].into_iter();
    let second = single.filter_map(|single| {
        let headers = file.program_headers.iter().enumerate();
        let mut of_type = headers.filter(|(_, header)| header.p_type == single);
        let (index, _) = of_type.nth(1)?;
        let message = format!("is the second segment of type {:#x}", single.0);
        let error = file.refuse_segment(kind, index, message);
        Some(error.hint("no linker writes two: build the file again"))
    });
    second.collect()
}

/// Reports program headers that are not in a load segment at the offset that belongs to their address.
fn segment_faults(file: &ElfFile, kind: Kind) -> Vec<Error> {
    let headers = file.program_headers.iter().enumerate();
    let named = headers.filter(|(_, header)| !header.is_load() && header.p_filesz > 0);
    named
        .filter(|(_, header)| {
            file.offset_of(header.p_vaddr, header.p_filesz) != Some(header.p_offset)
        })
        .map(|(index, header)| {
            let message = disagrees(header.p_filesz, header.p_vaddr, header.p_offset);
            file.refuse_segment(kind, index, message)
        })
        .take(MAX_FAULTS)
        .collect()
}

/// Reports loaded sections that are not in a load segment at the offset that belongs to their address.
fn section_faults(file: &ElfFile, kind: Kind) -> Vec<Error> {
    let loads: Vec<&ProgramHeader> = file.loads().map(|(_, load)| load).collect();
    let sections = file.sections.iter().enumerate();
    let loaded = sections.filter(|(_, section)| section.takes_addresses());
    loaded
        .filter(|(_, section)| !is_covered(&loads, section))
        .map(|(index, section)| {
            let message = disagrees(section.sh_size, section.sh_addr, section.sh_offset);
            file.refuse_section(kind, index, message)
        })
        .take(MAX_FAULTS)
        .collect()
}

fn disagrees(size: u64, address: u64, offset: u64) -> String {
    format!(
        "{size:#x} bytes at address {address:#x} and offset {offset:#x} agree with no load segment"
    )
}

fn is_covered(loads: &[&ProgramHeader], section: &SectionHeader) -> bool {
    let behind = loads.partition_point(|load| load.p_vaddr <= section.sh_addr);
    let Some(load) = behind.checked_sub(1).and_then(|index| loads.get(index)) else {
        return false;
    };
    let in_memory = section.memory_end() <= load.memory_end();
    let skip = section.sh_addr - load.p_vaddr;
    let in_file = load.p_offset.checked_add(skip) == Some(section.sh_offset)
        && section.file_end() <= load.file_end();
    in_memory && (in_file || !section.is_in_file())
}

/// Checks, in every written file, that edited bytes belong to nothing else.
pub fn disjoint(file: &ElfFile, kind: Kind) -> Result<()> {
    let mut faults = overlap_faults(file, kind);
    faults.extend(names_fault(file, kind));
    Error::gather(faults).map_or(Ok(()), Err)
}

/// Reports sections that share bytes of the file with another section or a header table.
fn overlap_faults(file: &ElfFile, kind: Kind) -> Vec<Error> {
    let tables = tables(file);
    let sections = file.sections.iter().enumerate().skip(1);
    let contents = sections.filter(|(_, section)| section.is_in_file());
    let mut ranges: Vec<(Range<u64>, usize)> = contents
        .map(|(index, section)| (section.sh_offset..section.file_end(), index))
        .chain(tables.into_iter().map(|range| (range, 0)))
        .collect();
    ranges.sort_by_key(|(range, index)| (range.start, *index));
    let pairs = ranges.windows(2).filter(|pair| pair[1].0.start < pair[0].0.end);
    pairs
        .map(|pair| {
            let index = pair[0].1.max(pair[1].1);
            let message = format!("shares bytes from offset {:#x} on", pair[1].0.start);
            file.refuse_section(kind, index, message)
        })
        .take(MAX_FAULTS)
        .collect()
}

/// The ranges of the file header, the program headers and the section headers.
pub(super) fn tables(file: &ElfFile) -> [Range<u64>; 3] {
    [
        0..FILE_HEADER_SIZE,
        table_range(file.header.e_phoff, file.program_headers.len(), PROGRAM_HEADER_SIZE),
        table_range(file.header.e_shoff, file.sections.len(), SECTION_HEADER_SIZE),
    ]
}

fn table_range(start: u64, count: usize, size: u64) -> Range<u64> {
    start..start.saturating_add(count as u64 * size)
}

/// Fault of section names outside a string table of their own: clearing the old names would clear another
/// section's bytes.
fn names_fault(file: &ElfFile, kind: Kind) -> Option<Error> {
    let index = file.names_index;
    let names = file.sections.get(index)?;
    let right = names.sh_type == elf::SHT_STRTAB && names.sh_size > 0 && !names.is_allocated();
    (!right).then(|| {
        let message = format!(
            "holds the section names, with type {:#x}, flags {:#x} and {:#x} bytes, not those of a \
             string table that is not loaded",
            names.sh_type.0, names.sh_flags.0, names.sh_size
        );
        let error = file.refuse_section(kind, index, message);
        error.hint("no linker writes such a file: build it again")
    })
}

/// Fault of program headers that are not at the address where kernels before 5.18 expect them.
fn program_header_fault(file: &ElfFile, kind: Kind) -> Option<Error> {
    let at = file.header.e_phoff;
    let size = file.program_headers.len() as u64 * PROGRAM_HEADER_SIZE;
    let (_, first) = file.loads().next()?;
    let address = first.p_vaddr.checked_sub(first.p_offset)?.checked_add(at)?;
    if file.offset_of(address, size) != Some(at) {
        let message = format!("are not loaded at {address:#x}");
        return Some(file.refuse(kind, "program headers", at, message));
    }
    let entry = file.segment(elf::PT_PHDR)?;
    // lld counts headers that it drops later, so an input may name more bytes than there are
    // headers; the transform rewrites the entry.
    let sized = entry.p_filesz == size || (kind != Kind::Bug && entry.p_filesz > size);
    let right = entry.p_vaddr == address && sized && entry.p_offset == at;
    (!right).then(|| {
        let message = format!("PT_PHDR does not name {size:#x} bytes at {address:#x}");
        file.refuse(kind, "program headers", at, message)
    })
}
