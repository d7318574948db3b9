//! The comparison of two builds of a fat binary without their device code.
//!
//! Their bytes always differ: the device code is between the sections, so its size moves all later sections
//! and changes every reference across it. So this compares the parts of the host-only forms that do not
//! depend on load addresses:
//!
//! | compared | how |
//! |---|---|
//! | type; SONAME, needed libraries, RPATH and RUNPATH | equal |
//! | dynamic symbols | the same names, each as often and with the same types, bindings, sizes and definedness; of a name in several versions, not which version has which |
//! | allocated sections | the same names, in the same order |
//! | their content (code, data, unwind tables) | the same size, and every byte equal or part of an address or distance that changed by exactly what the sections moved |
//!
//! Ignored: the device code and the wrappers (matched elsewhere), the build id (a digest of everything),
//! `__hip_cuid_*` symbols (digests of compiler options, which name the archs), data that follows from the
//! symbols' order (symbol, string, hash and relocation tables), sections that are not loaded, and
//! `.relro_padding` (bytes with which the linker fills a page). A different link order moves functions
//! relative to each other and counts as a difference.
//!
//! A file is refused if its section of dynamic symbols is not the one that the dynamic linker reads.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::{Result, abridged};
use rockpack_elf::{Dynamic, DynamicSymbols, ElfFile, SectionHeader, StringTable};

/// Sections of device code or references to it, in fat and in transformed binaries.
const DEVICE_SECTIONS: [&str; 3] = [".hip_fatbin", ".hipFatBinSegment", ".rocm_kpack_ref"];

/// The prefix of compilation units' symbols.
const UNIT_SYMBOL: &[u8] = b"__hip_cuid_";

/// Bytes of a section that are compared at once.
const WINDOW: u64 = 1 << 20;

/// The longest address or distance, in bytes.
const WORD: u64 = 8;

/// The difference between two builds; `None` if only their device code differs.
pub(super) fn difference(one: &Content, other: &Content) -> Result<Option<String>> {
    let (Some(one), Some(other)) = (ComparedBinary::read(one)?, ComparedBinary::read(other)?)
    else {
        return Ok(Some("is no x86-64 binary on one side".to_owned()));
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
            return Ok(Some(format!("has other {name} ({ours} and {theirs})")));
        }
    }
    if let Some(found) = symbols_differ(&one.symbols()?, &other.symbols()?) {
        return Ok(Some(found));
    }
    sections_differ(&one, &other)
}

struct ComparedBinary {
    file: ElfFile,
    dynamic: Option<Dynamic>,
}

/// The compared facts of dynamic symbols by name: type and binding, size, whether it is defined. A name has
/// one symbol for each of its versions.
type SymbolsByName = BTreeMap<Vec<u8>, Vec<(u8, u64, bool)>>;

impl ComparedBinary {
    fn read(content: &Content) -> Result<Option<Self>> {
        let Some(file) = ElfFile::read(content, elf::EM_X86_64)? else { return Ok(None) };
        let dynamic = Dynamic::read(&file)?;
        Ok(Some(Self { file, dynamic }))
    }

    /// The strings that the dynamic linker reads from entries with `tag`.
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
                let (place, symbol) = symbol?;
                let name = names.get(symbol.st_name, place)?;
                if !name.starts_with(UNIT_SYMBOL) {
                    let facts = (symbol.st_info.0, symbol.st_size, symbol.section().is_some());
                    found.entry(name.to_vec()).or_default().push(facts);
                }
            }
        }
        // The linker decides their order.
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

fn symbols_differ(one: &SymbolsByName, other: &SymbolsByName) -> Option<String> {
    let names: BTreeSet<&Vec<u8>> = one.keys().chain(other.keys()).collect();
    let name = names.into_iter().find(|name| one.get(*name) != other.get(*name))?;
    let shown = String::from_utf8_lossy(name);
    let (Some(ours), Some(theirs)) = (one.get(name), other.get(name)) else {
        return Some(format!("has the symbol {shown} on one side only"));
    };
    Some(match ours.iter().zip(theirs).find(|(ours, theirs)| ours != theirs) {
        Some((ours, theirs)) if ours.1 != theirs.1 => {
            format!("has the symbol {shown} with {} and with {} bytes", ours.1, theirs.1)
        }
        Some(_) => format!("has the symbol {shown} of another kind"),
        None => format!("has the symbol {shown} {} and {} times", ours.len(), theirs.len()),
    })
}

fn sections_differ(one: &ComparedBinary, other: &ComparedBinary) -> Result<Option<String>> {
    let (ours, theirs) = (one.sections(), other.sections());
    let sections = one.section_names(&ours);
    if sections != other.section_names(&theirs) {
        return Ok(Some("has other sections, or in another order".to_owned()));
    }
    let moves: BTreeSet<u64> =
        ours.iter().zip(&theirs).map(|(here, there)| distance_moved(here.1, there.1)).collect();
    // Sections with code or data, rather than tables derived from others. The build id is a digest of all.
    let kinds = [
        elf::SHT_PROGBITS,
        elf::SHT_NOBITS,
        elf::SHT_NOTE,
        elf::SHT_INIT_ARRAY,
        elf::SHT_FINI_ARRAY,
        elf::SHT_PREINIT_ARRAY,
    ];
    for ((name, here), there) in sections.iter().zip(&ours).zip(&theirs) {
        if !kinds.contains(&here.1.sh_type) || name == ".note.gnu.build-id" {
            continue;
        }
        if here.1.sh_size != there.1.sh_size {
            let (here, there) = (here.1.sh_size, there.1.sh_size);
            return Ok(Some(format!("has {here} and {there} bytes in {name}")));
        }
        if here.1.sh_type == elf::SHT_NOBITS {
            continue;
        }
        let own = distance_moved(here.1, there.1);
        let changes = moves.iter().flat_map(|moved| [*moved, moved.wrapping_sub(own)]).collect();
        let ours = one.file.content().slice(one.file.file_range(here.0, here.1)?)?;
        let theirs = other.file.content().slice(other.file.file_range(there.0, there.1)?)?;
        if let Some(at) = AddressChanges(changes).unexplained(&ours, &theirs)? {
            return Ok(Some(format!("has other bytes in {name}, first at {at:#x} of it")));
        }
    }
    Ok(None)
}

fn distance_moved(here: &SectionHeader, there: &SectionHeader) -> u64 {
    there.sh_addr.wrapping_sub(here.sh_addr)
}

/// The differences that section moves allow for addresses and distances.
struct AddressChanges(BTreeSet<u64>);

impl AddressChanges {
    /// The offset of the first byte that differs for another reason.
    fn unexplained(&self, one: &Content, other: &Content) -> Result<Option<u64>> {
        let len = one.len();
        let mut at = 0;
        for start in (0..len).step_by(usize::try_from(WINDOW).unwrap_or(usize::MAX)) {
            let end = start.saturating_add(WINDOW).min(len);
            // Words may cross both ends.
            let from = start.saturating_sub(WORD);
            let range = from..end.saturating_add(WORD).min(len);
            let limit = WINDOW + 2 * WORD;
            let ours = one.read_vec(range.clone(), limit, "section")?;
            let theirs = other.read_vec(range, limit, "section")?;
            at = at.max(start);
            while at < end {
                let index = usize::try_from(at - from).unwrap_or(usize::MAX);
                if ours.get(index) == theirs.get(index) {
                    at += 1;
                    continue;
                }
                match self.explained(&ours, &theirs, index) {
                    Some(word) => at = from + word.end as u64,
                    None => return Ok(Some(at)),
                }
            }
        }
        Ok(None)
    }

    /// The word around `index` whose change the section moves explain.
    fn explained(&self, one: &[u8], other: &[u8], index: usize) -> Option<Range<usize>> {
        let mut words = [8, 4].into_iter().flat_map(|width| {
            let starts = (0..width).filter_map(move |back| index.checked_sub(back));
            starts.map(move |start| start..start + width)
        });
        words.find(|word| self.moved(one, other, word).unwrap_or(false))
    }

    fn moved(&self, one: &[u8], other: &[u8], word: &Range<usize>) -> Option<bool> {
        let (one, other) = (one.get(word.clone())?, other.get(word.clone())?);
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

    /// An empty table before the real one would hide differences, and so would a shortened table. The
    /// transform refuses every such fat binary, but only this check refuses such transformed ones.
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
        assert!(error.to_string().contains("than the 25 that sections show"), "{error}");
        let first = table + 64;
        bytes[first + 4..first + 8].copy_from_slice(&elf::SHT_DYNSYM.0.to_le_bytes());
        bytes[first + 32..first + 40].fill(0);
        let error = compared_to_itself(&bytes).unwrap_err();
        assert!(error.to_string().contains("not loaded where DT_SYMTAB leads"), "{error}");
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
    fn words_reach_over_windows() {
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
