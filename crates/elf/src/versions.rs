//! Symbol versions: those that a library defines, and those that a file needs from each library.
//!
//! Both are lists of lists. Refused: lists with more records in total than there are indexes, or than fit
//! into the file. Otherwise chains that lead to the same records would multiply.

use std::cell::Cell;

use object::elf;

use super::dynamic::Dynamic;
use super::file::ElfFile;
use super::record::{Record, VersionDefinition, VersionDefinitionAux, VersionNeed, VersionNeedAux};
use super::table::{RecordTable, StringTable};
use rockpack_core::error::{Kind, Result};

/// Maximum number of records of each kind in a list, over all chains: indexes have 15 bits.
const MAX_VERSIONS: u64 = 1 << 15;

/// The versions that a file defines and needs, in table order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Versions {
    pub defined: Vec<DefinedVersion>,
    pub needed: Vec<NeededVersions>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinedVersion {
    /// Whether the version is that of the library itself (`VER_FLG_BASE`), whose name is the soname.
    pub is_base: bool,
    /// The index that symbols refer to it by.
    pub index: u16,
    /// The name of the version, and those of the versions that it builds on.
    pub names: Vec<String>,
}

/// The versions that a file needs from one library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededVersions {
    /// The library's soname.
    pub file: String,
    pub versions: Vec<NeededVersion>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededVersion {
    /// The index that symbols refer to it by.
    pub index: u16,
    pub name: String,
}

impl Versions {
    /// Whether the library defines `version`, as the loader checks for files that need it.
    pub fn defines(&self, version: &str) -> bool {
        let own = self.defined.iter().filter_map(|defined| defined.names.first());
        own.into_iter().any(|name| name == version)
    }

    /// Reads the versions of `file`.
    pub fn read(file: &ElfFile, dynamic: &Dynamic, strings: &[u8]) -> Result<Self> {
        let lists = VersionLists { file, dynamic };
        let (needs, definitions) = (lists.needs()?, lists.definitions()?);
        let names = definitions.iter().map(|(_, names)| names.len()).sum::<usize>();
        let versions = needs.iter().map(|(_, versions)| 1 + versions.len()).sum::<usize>();
        let mut names = StringTable::new(file, strings, (names + versions) as u64);
        let defined = definitions.into_iter().map(|((_, definition), all)| {
            let all = all.into_iter().map(|(place, aux)| names.text(aux.vda_name, place));
            Ok(DefinedVersion {
                is_base: definition.vd_flags.0 & elf::VER_FLG_BASE.0 != 0,
                index: definition.vd_ndx.0 & elf::VERSYM_VERSION,
                names: all.collect::<Result<_>>()?,
            })
        });
        let defined = defined.collect::<Result<_>>()?;
        let needed = needs.into_iter().map(|((place, need), all)| {
            let file = names.text(need.vn_file, place)?;
            let versions = all.into_iter().map(|(place, aux)| {
                let index = aux.vna_other.0 & elf::VERSYM_VERSION;
                Ok(NeededVersion { index, name: names.text(aux.vna_name, place)? })
            });
            Ok(NeededVersions { file, versions: versions.collect::<Result<_>>()? })
        });
        Ok(Self { defined, needed: needed.collect::<Result<_>>()? })
    }

    /// Sizes in bytes of both lists, as far as they are read, by the tag that leads there.
    pub(super) fn sizes(file: &ElfFile, dynamic: &Dynamic) -> Result<[(elf::DynamicTag, u64); 2]> {
        let lists = VersionLists { file, dynamic };
        let (needs, definitions) = (end_of_list(lists.needs()?), end_of_list(lists.definitions()?));
        Ok([(elf::DT_VERNEED, needs), (elf::DT_VERDEF, definitions)].map(|(tag, end)| {
            let start = dynamic.value(tag).and_then(|address| file.offset_of(address, 1));
            (tag, start.map_or(0, |start| end.saturating_sub(start)))
        }))
    }

    /// Offsets of all version names in the string table of `dynamic`.
    pub(super) fn name_offsets(file: &ElfFile, dynamic: &Dynamic) -> Result<Vec<u32>> {
        let lists = VersionLists { file, dynamic };
        let mut offsets = Vec::new();
        for ((_, need), all) in lists.needs()? {
            offsets.push(need.vn_file);
            offsets.extend(all.into_iter().map(|(_, aux)| aux.vna_name));
        }
        let names = lists.definitions()?.into_iter().flat_map(|(_, names)| names);
        offsets.extend(names.map(|(_, aux)| aux.vda_name));
        Ok(offsets)
    }
}

struct VersionLists<'a> {
    file: &'a ElfFile,
    dynamic: &'a Dynamic,
}

/// A record and its offset in the file.
type PlacedRecord<T> = (u64, T);

type Chained<T, Aux> = (PlacedRecord<T>, Vec<PlacedRecord<Aux>>);

/// A list of chains: its tags, and the fields that link its records.
struct ListLayout<T, Aux> {
    /// The tags of the list of heads: its address and its number of records.
    tags: [elf::DynamicTag; 2],
    /// Distance from a head to its chain, in bytes.
    chain_distance: fn(&T) -> u32,
    /// Number of records in the chain of a head.
    chain_len: fn(&T) -> u16,
    /// Distance from a head to the next, in bytes; zero for the last.
    next_head: fn(&T) -> u32,
    /// Distance from a record of a chain to the next, in bytes; zero for the last.
    next: fn(&Aux) -> u32,
}

/// The end of the last record of a list, as an offset in the file; zero for an empty list.
fn end_of_list<T: Record, Aux: Record>(list: Vec<Chained<T, Aux>>) -> u64 {
    let ends = list.into_iter().flat_map(|((at, _), all)| {
        let all = all.into_iter().map(|(at, _)| at.saturating_add(Aux::SIZE));
        all.chain([at.saturating_add(T::SIZE)])
    });
    ends.max().unwrap_or_default()
}

impl VersionLists<'_> {
    fn needs(&self) -> Result<Vec<Chained<VersionNeed, VersionNeedAux>>> {
        self.chained::<VersionNeed, VersionNeedAux>(&ListLayout {
            tags: [elf::DT_VERNEED, elf::DT_VERNEEDNUM],
            chain_distance: |need| need.vn_aux,
            chain_len: |need| need.vn_cnt,
            next_head: |need| need.vn_next,
            next: |aux| aux.vna_next,
        })
    }

    fn definitions(&self) -> Result<Vec<Chained<VersionDefinition, VersionDefinitionAux>>> {
        self.chained::<VersionDefinition, VersionDefinitionAux>(&ListLayout {
            tags: [elf::DT_VERDEF, elf::DT_VERDEFNUM],
            chain_distance: |definition| definition.vd_aux,
            chain_len: |definition| definition.vd_cnt,
            next_head: |definition| definition.vd_next,
            next: |aux| aux.vda_next,
        })
    }

    fn chained<T: Record, Aux: Record>(
        &self,
        links: &ListLayout<T, Aux>,
    ) -> Result<Vec<Chained<T, Aux>>> {
        let left = self.max_records::<Aux>();
        let chained = self.heads(links)?.into_iter().map(|(at, head)| {
            let start = at.saturating_add(u64::from((links.chain_distance)(&head)));
            let len = u64::from((links.chain_len)(&head));
            Ok(((at, head), self.chain(start, len, &left, links.next)?))
        });
        chained.collect()
    }

    /// Number of records of a kind that a list may have.
    fn max_records<T: Record>(&self) -> Cell<u64> {
        Cell::new(MAX_VERSIONS.min(self.file.content().len() / T::SIZE))
    }

    fn heads<T: Record, Aux>(&self, links: &ListLayout<T, Aux>) -> Result<Vec<PlacedRecord<T>>> {
        let [tag, count] = links.tags;
        let Some(address) = self.dynamic.value(tag) else {
            return Ok(Vec::new());
        };
        let count = self.dynamic.value(count).unwrap_or_default();
        let Some(start) = self.file.offset_of(address, T::SIZE) else {
            let message = format!("the {}s at {address:#x} are not loaded", T::NAME);
            return Err(self.file.refuse(Kind::Malformed, "dynamic section", 0, message));
        };
        self.chain(start, count, &self.max_records::<T>(), links.next_head)
    }

    /// Reads up to `count` records from offset `start` on, each at the distance `next` from the one before; `left`
    /// limits the records of all chains.
    fn chain<T: Record>(
        &self,
        start: u64,
        count: u64,
        left: &Cell<u64>,
        next: fn(&T) -> u32,
    ) -> Result<Vec<PlacedRecord<T>>> {
        let mut found = Vec::new();
        let mut at = start;
        for _ in 0..count {
            let Some(rest) = left.get().checked_sub(1) else {
                let message = "there are more in one list than symbols can refer to";
                let error = self.file.refuse(Kind::Limit, T::NAME, at, message);
                return Err(error.hint("the file is damaged: build it or copy it again"));
            };
            left.set(rest);
            let record = RecordTable::<T>::new(self.file.content(), at, T::SIZE)?.to_vec()?;
            let Some(record) = record.into_iter().next() else { break };
            let distance = u64::from(next(&record));
            found.push((at, record));
            if distance == 0 {
                break;
            }
            at = at.saturating_add(distance);
        }
        Ok(found)
    }
}
