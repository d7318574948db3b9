//! The comparison of two builds of a fat binary without their device code.
//!
//! Their bytes always differ: the device code is between the sections, so its size moves all later sections
//! and changes every reference across it. So this compares the parts of the host-only forms that do not
//! depend on load addresses:
//!
//! | compared | how |
//! |---|---|
//! | type; SONAME, needed libraries, RPATH and RUNPATH | equal |
//! | dynamic symbols | the same names, with the same types, bindings and sizes, and defined or undefined in both; for a name with several versions, as a set |
//! | allocated sections | the same names, in the same order |
//! | their content (code, data, unwind tables) | the same size; each byte is equal, or part of an address or distance that changed because sections moved |
//!
//! Ignored: the device code and the wrappers (matched elsewhere), the build id (a digest of the whole file),
//! `__hip_cuid_*` symbols (digests of compiler options, which name the archs), tables that depend on the order
//! of symbols (symbol, string, hash and relocation tables), sections that are not loaded, and `.relro_padding`
//! (the linker's padding of a page). A different link order moves functions relative to each other and counts
//! as a difference.
//!
//! A file is refused if the dynamic linker would read another table of dynamic symbols than this module.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::{Result, abridged};
use rockpack_elf::{Dynamic, DynamicSymbols, ElfFile, SectionHeader, StringTable};

/// Sections of device code or references to it, in fat and in transformed binaries.
const DEVICE_SECTIONS: [&str; 3] = [".hip_fatbin", ".hipFatBinSegment", ".rocm_kpack_ref"];

const CUID_PREFIX: &[u8] = b"__hip_cuid_";

/// Bytes of a section that are compared at once.
const WINDOW: u64 = 1 << 20;

/// The longest address or distance, in bytes.
const ADDRESS_SIZE: u64 = 8;

/// Describes the first difference between two builds; `None` if only their device code differs.
pub(super) fn difference(one: &Content, other: &Content) -> Result<Option<String>> {
    let (Some(one), Some(other)) = (ComparedBinary::read(one)?, ComparedBinary::read(other)?)
    else {
        return Ok(Some("is not an x86-64 binary on one side".to_owned()));
    };
    if one.file.header.e_type != other.file.header.e_type {
        return Ok(Some("is a program on one side and a library on the other".to_owned()));
    }
    for (tag, name) in [
        (elf::DT_SONAME, "SONAME"),
        (elf::DT_NEEDED, "needed libraries"),
        (elf::DT_RPATH, "RPATH"),
        (elf::DT_RUNPATH, "RUNPATH"),
    ] {
        let (ours, theirs) = (one.strings(tag)?, other.strings(tag)?);
        if ours != theirs {
            let (ours, theirs) = (ours.join(", "), theirs.join(", "));
            let (ours, theirs) = (abridged(&ours), abridged(&theirs));
            return Ok(Some(format!("has different {name} ({ours} and {theirs})")));
        }
    }
    if let Some(found) = symbol_difference(&one.symbols()?, &other.symbols()?) {
        return Ok(Some(found));
    }
    section_difference(&one, &other)
}

struct ComparedBinary {
    file: ElfFile,
    dynamic: Option<Dynamic>,
}

/// The compared properties of the dynamic symbols of each name, one for each version of the symbol: type and
/// binding, size, whether it is defined.
type SymbolsByName = BTreeMap<Vec<u8>, Vec<(u8, u64, bool)>>;

impl ComparedBinary {
    fn read(content: &Content) -> Result<Option<Self>> {
        let Some(file) = ElfFile::read(content, elf::EM_X86_64)? else { return Ok(None) };
        let dynamic = Dynamic::read(&file)?;
        Ok(Some(Self { file, dynamic }))
    }

    fn strings(&self, tag: elf::DynamicTag) -> Result<Vec<String>> {
        let Some(dynamic) = &self.dynamic else { return Ok(Vec::new()) };
        match tag {
            elf::DT_NEEDED => dynamic.names(&self.file, tag),
            _ => Ok(dynamic.last_string(&self.file, tag)?.into_iter().collect()),
        }
    }

    fn symbols(&self) -> Result<SymbolsByName> {
        let mut found = SymbolsByName::new();
        let Some(dynamic) = &self.dynamic else { return Ok(found) };
        if let Some((index, section)) = DynamicSymbols::read(&self.file, dynamic)?.section {
            let strings = self.file.linked_strings(section)?;
            let symbols = self.file.symbols(index, section)?;
            let mut names = StringTable::new(&self.file, &strings, symbols.len());
            for symbol in symbols.iter() {
                let (symbol_index, symbol) = symbol?;
                let name = names.get(symbol.st_name, symbol_index)?;
                if !name.starts_with(CUID_PREFIX) {
                    let facts = (symbol.st_info.0, symbol.st_size, symbol.section().is_some());
                    found.entry(name.to_vec()).or_default().push(facts);
                }
            }
        }
        // The linker decides the order of the versions.
        found.values_mut().for_each(|versions| versions.sort_unstable());
        Ok(found)
    }

    fn sections(&self) -> Vec<(usize, &SectionHeader)> {
        let all = self.file.sections.iter().enumerate();
        let compared = all.filter(|(_, section)| {
            let name = self.file.name(section);
            section.is_allocated() && !DEVICE_SECTIONS.contains(&&*name) && name != ".relro_padding"
        });
        compared.collect()
    }

    fn section_names(&self, sections: &[(usize, &SectionHeader)]) -> Vec<String> {
        sections.iter().map(|(_, section)| self.file.name(section).into_owned()).collect()
    }
}

fn symbol_difference(one: &SymbolsByName, other: &SymbolsByName) -> Option<String> {
    let names: BTreeSet<&Vec<u8>> = one.keys().chain(other.keys()).collect();
    let name = names.into_iter().find(|name| one.get(*name) != other.get(*name))?;
    let shown = String::from_utf8_lossy(name);
    let (Some(ours), Some(theirs)) = (one.get(name), other.get(name)) else {
        return Some(format!("has the symbol {shown} on one side only"));
    };
    Some(match ours.iter().zip(theirs).find(|(ours, theirs)| ours != theirs) {
        Some((ours, theirs)) if ours.1 != theirs.1 => {
            format!("has the symbol {shown} with {} bytes and with {} bytes", ours.1, theirs.1)
        }
        Some(_) => format!("has another type, binding or definition of {shown}"),
        None => format!("has {} and {} versions of the symbol {shown}", ours.len(), theirs.len()),
    })
}

fn section_difference(one: &ComparedBinary, other: &ComparedBinary) -> Result<Option<String>> {
    let (ours, theirs) = (one.sections(), other.sections());
    let sections = one.section_names(&ours);
    if sections != other.section_names(&theirs) {
        return Ok(Some("has different sections, or the same in another order".to_owned()));
    }
    let moves: BTreeSet<u64> =
        ours.iter().zip(&theirs).map(|(here, there)| distance_moved(here.1, there.1)).collect();
    // Types of sections with code or data. The others are tables that the linker derives from these.
    let section_types = [
        elf::SHT_PROGBITS,
        elf::SHT_NOBITS,
        elf::SHT_NOTE,
        elf::SHT_INIT_ARRAY,
        elf::SHT_FINI_ARRAY,
        elf::SHT_PREINIT_ARRAY,
    ];
    for ((name, here), there) in sections.iter().zip(&ours).zip(&theirs) {
        if !section_types.contains(&here.1.sh_type) || name == ".note.gnu.build-id" {
            continue;
        }
        if here.1.sh_size != there.1.sh_size {
            let (here, there) = (here.1.sh_size, there.1.sh_size);
            return Ok(Some(format!("has {here} and {there} bytes in {name}")));
        }
        if here.1.sh_type == elf::SHT_NOBITS {
            continue;
        }
        let shift = distance_moved(here.1, there.1);
        let changes = moves.iter().flat_map(|moved| [*moved, moved.wrapping_sub(shift)]).collect();
        let ours = one.file.content().slice(one.file.file_range(here.0, here.1)?)?;
        let theirs = other.file.content().slice(other.file.file_range(there.0, there.1)?)?;
        if let Some(at) = AddressChanges(changes).unexplained(&ours, &theirs)? {
            return Ok(Some(format!("has different bytes in {name}, first at offset {at:#x}")));
        }
    }
    Ok(None)
}

fn distance_moved(here: &SectionHeader, there: &SectionHeader) -> u64 {
    there.sh_addr.wrapping_sub(here.sh_addr)
}

/// The amounts by which addresses and distances may change because sections moved.
struct AddressChanges(BTreeSet<u64>);

impl AddressChanges {
    /// The offset of the first byte that differs for another reason.
    fn unexplained(&self, one: &Content, other: &Content) -> Result<Option<u64>> {
        let len = one.len();
        let mut at = 0;
        for start in (0..len).step_by(usize::try_from(WINDOW).unwrap_or(usize::MAX)) {
            let end = start.saturating_add(WINDOW).min(len);
            // Addresses may cross both ends of the window.
            let from = start.saturating_sub(ADDRESS_SIZE);
            let range = from..end.saturating_add(ADDRESS_SIZE).min(len);
            let limit = WINDOW + 2 * ADDRESS_SIZE;
            let ours = one.read_vec(range.clone(), limit, "section")?;
            let theirs = other.read_vec(range, limit, "section")?;
            at = at.max(start);
            while at < end {
                let index = usize::try_from(at - from).unwrap_or(usize::MAX);
                if ours.get(index) == theirs.get(index) {
                    at += 1;
                    continue;
                }
                match self.moved_address(&ours, &theirs, index) {
                    Some(address) => at = from + address.end as u64,
                    None => return Ok(Some(at)),
                }
            }
        }
        Ok(None)
    }

    /// The range around `index` that is an address or distance and changed because sections moved.
    fn moved_address(&self, one: &[u8], other: &[u8], index: usize) -> Option<Range<usize>> {
        let mut addresses = [8, 4].into_iter().flat_map(|width| {
            let starts = (0..width).filter_map(move |back| index.checked_sub(back));
            starts.map(move |start| start..start + width)
        });
        addresses.find(|address| self.is_allowed_change(one, other, address).unwrap_or(false))
    }

    fn is_allowed_change(&self, one: &[u8], other: &[u8], address: &Range<usize>) -> Option<bool> {
        let (one, other) = (one.get(address.clone())?, other.get(address.clone())?);
        Some(match (<[u8; 8]>::try_from(one), <[u8; 8]>::try_from(other)) {
            (Ok(one), Ok(other)) => {
                let change = u64::from_le_bytes(other).wrapping_sub(u64::from_le_bytes(one));
                self.0.contains(&change)
            }
            _ => {
                let (one, other) = (<[u8; 4]>::try_from(one), <[u8; 4]>::try_from(other));
                let (one, other) = (u32::from_le_bytes(one.ok()?), u32::from_le_bytes(other.ok()?));
                let change = other.wrapping_sub(one).to_le_bytes();
                self.0.iter().any(|moved| moved.to_le_bytes().starts_with(&change))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unexplained(one: &[u8], other: &[u8], changes: &[u64]) -> Option<u64> {
        let changes = AddressChanges(changes.iter().copied().collect());
        changes.unexplained(&Content::of_bytes(one), &Content::of_bytes(other)).unwrap()
    }

    /// An empty table before the real one, or a shortened table, would hide differences. The transform refuses
    /// such fat binaries, but transformed binaries pass only through this check.
    #[test]
    fn tables_that_hide_dynamic_symbols_are_refused() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/binaries/bfd_shared");
        let mut bytes = std::fs::read(path).unwrap();
        assert_eq!(compared_to_itself(&bytes).unwrap(), None);
        let table = usize::from_le_bytes(bytes[40..48].try_into().unwrap());
        // The third section; its last symbol is hidden.
        let mut shorter = bytes.clone();
        let size = table + 3 * 64 + 32;
        shorter[size..size + 8].copy_from_slice(&(25 * 24_u64).to_le_bytes());
        let error = compared_to_itself(&shorter).unwrap_err();
        assert!(error.to_string().contains("beyond the 25 that the sections list"), "{error}");
        let first = table + 64;
        bytes[first + 4..first + 8].copy_from_slice(&elf::SHT_DYNSYM.0.to_le_bytes());
        bytes[first + 32..first + 40].fill(0);
        let error = compared_to_itself(&bytes).unwrap_err();
        assert!(error.to_string().contains("not loaded at DT_SYMTAB"), "{error}");
    }

    fn compared_to_itself(bytes: &[u8]) -> Result<Option<String>> {
        let content = Content::of_bytes(bytes);
        difference(&content, &content)
    }

    #[test]
    fn a_distance_may_change_as_the_sections_moved_and_by_nothing_else() {
        // lea 0x1234(%rip), %rax; nop
        let one = [0x48, 0x8d, 0x05, 0x34, 0x12, 0, 0, 0x90];
        let nearer = with_distance(one, 0xffff_f234_u32.to_le_bytes());
        let changes = [0_u64.wrapping_sub(0x2000), 0x3000];
        assert_eq!(unexplained(&one, &nearer, &changes), None);
        assert_eq!(unexplained(&one, &with_distance(one, [0x34, 0x42, 0, 0]), &changes), None);
        assert_eq!(unexplained(&one, &with_distance(one, [0x35, 0x42, 0, 0]), &changes), Some(3));
        assert_eq!(unexplained(&one, &nearer, &[0x3000]), Some(4));
        let mut other = nearer;
        other[7] = 0xcc;
        assert_eq!(unexplained(&one, &other, &changes), Some(7));
    }

    fn with_distance(mut code: [u8; 8], distance: [u8; 4]) -> [u8; 8] {
        code[3..7].copy_from_slice(&distance);
        code
    }

    #[test]
    fn addresses_carry_into_their_upper_half() {
        let one = 0xffff_f000_u64.to_le_bytes();
        let other = 0x1_0000_0000_u64.to_le_bytes();
        assert_eq!(unexplained(&one, &other, &[0x1000]), None);
        assert_eq!(unexplained(&one, &other, &[0x2000]), Some(1));
    }

    #[test]
    fn addresses_may_cross_windows() {
        let mut one = vec![7; usize::try_from(WINDOW).unwrap() * 2];
        let mut other = one.clone();
        let at = usize::try_from(WINDOW).unwrap() - 3;
        one[at..at + 4].copy_from_slice(&0x00ff_f000_u32.to_le_bytes());
        other[at..at + 4].copy_from_slice(&0x0100_0000_u32.to_le_bytes());
        assert_eq!(unexplained(&one, &other, &[0x1000]), None);
        *other.last_mut().unwrap() = 8;
        assert_eq!(unexplained(&one, &other, &[0x1000]), Some(2 * WINDOW - 1));
    }
}
