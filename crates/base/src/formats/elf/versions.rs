//! Symbol versions: which a library defines, and which a file needs of each library.
//!
//! Both are lists of lists. Refused: lists with more records in all than indexes can tell apart, or
//! than have room in the file. Chains that lead to the same records would otherwise multiply.

use std::cell::Cell;

use object::elf;

use super::dynamic::Dynamic;
use super::file::ElfFile;
use super::names::Names;
use super::record::{Record, VersionDefinition, VersionDefinitionAux, VersionNeed, VersionNeedAux};
use super::table::Table;
use crate::error::{Kind, Result};

/// Most records of a kind in one list, of all its chains: indexes have 15 bits.
const MAX_VERSIONS: u64 = 1 << 15;

/// The versions that a file defines and needs, in table order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Versions {
    /// What it defines.
    pub defined: Vec<DefinedVersion>,
    /// What it needs.
    pub needed: Vec<NeededVersions>,
}

/// A version that a library defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinedVersion {
    /// Whether it stands for the library itself (`VER_FLG_BASE`); its name is the soname.
    pub is_base: bool,
    /// The index that symbols refer to it by.
    pub index: u16,
    /// Its name, and those of the versions that it builds on.
    pub names: Vec<String>,
}

/// The versions that a file needs of one library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededVersions {
    /// The library's soname.
    pub file: String,
    /// The indexes that symbols refer to them by, and their names.
    pub versions: Vec<(u16, String)>,
}

impl Versions {
    /// Reads the versions of `file`.
    pub fn read(file: &ElfFile, dynamic: &Dynamic, strings: &[u8]) -> Result<Self> {
        let lists = Lists { file, dynamic };
        let (needs, definitions) = (lists.needs()?, lists.definitions()?);
        let names = definitions.iter().map(|(_, names)| names.len()).sum::<usize>();
        let versions = needs.iter().map(|(_, versions)| 1 + versions.len()).sum::<usize>();
        let mut names = Names::new(file, strings, (names + versions) as u64);
        Ok(Self { defined: defined(definitions, &mut names)?, needed: needed(needs, &mut names)? })
    }

    /// Bytes of both lists, as far as they are read, by the tag that leads there.
    pub(super) fn sizes(file: &ElfFile, dynamic: &Dynamic) -> Result<[(elf::DynamicTag, u64); 2]> {
        let lists = Lists { file, dynamic };
        let (needs, definitions) = (end(lists.needs()?), end(lists.definitions()?));
        let size = |tag, end: u64| {
            let start = dynamic.value(tag).and_then(|address| file.offset_of(address, 1));
            (tag, start.map_or(0, |start| end.saturating_sub(start)))
        };
        Ok([size(elf::DT_VERNEED, needs), size(elf::DT_VERDEF, definitions)])
    }

    /// The offsets of all names in the string table of `dynamic`.
    pub(super) fn name_offsets(file: &ElfFile, dynamic: &Dynamic) -> Result<Vec<u32>> {
        let lists = Lists { file, dynamic };
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

/// The two linked lists of a file.
struct Lists<'a> {
    file: &'a ElfFile,
    dynamic: &'a Dynamic,
}

/// A record and its offset in the file.
type Placed<T> = (u64, T);

/// The records of a library whose versions are needed.
type Need = (Placed<VersionNeed>, Vec<Placed<VersionNeedAux>>);

/// The records of a defined version.
type Definition = (Placed<VersionDefinition>, Vec<Placed<VersionDefinitionAux>>);

/// The offset behind the last record of a list; zero if it has none.
fn end<T: Record, U: Record>(list: Vec<(Placed<T>, Vec<Placed<U>>)>) -> u64 {
    let ends = list.into_iter().flat_map(|((at, _), all)| {
        let all = all.into_iter().map(|(at, _)| at.saturating_add(U::SIZE));
        all.chain([at.saturating_add(T::SIZE)])
    });
    ends.max().unwrap_or_default()
}

fn needed(needs: Vec<Need>, names: &mut Names<'_>) -> Result<Vec<NeededVersions>> {
    let library = |((place, need), all): Need| {
        let file = names.text(need.vn_file, place)?;
        let version = |(place, aux): Placed<VersionNeedAux>| {
            Ok((aux.vna_other.0 & elf::VERSYM_VERSION, names.text(aux.vna_name, place)?))
        };
        let versions = all.into_iter().map(version).collect::<Result<_>>()?;
        Ok(NeededVersions { file, versions })
    };
    needs.into_iter().map(library).collect()
}

fn defined(definitions: Vec<Definition>, names: &mut Names<'_>) -> Result<Vec<DefinedVersion>> {
    let version = |((_, definition), all): Definition| {
        let name = |(place, aux): Placed<VersionDefinitionAux>| names.text(aux.vda_name, place);
        Ok(DefinedVersion {
            is_base: definition.vd_flags.0 & elf::VER_FLG_BASE.0 != 0,
            index: definition.vd_ndx.0 & elf::VERSYM_VERSION,
            names: all.into_iter().map(name).collect::<Result<_>>()?,
        })
    };
    definitions.into_iter().map(version).collect()
}

impl Lists<'_> {
    fn needs(&self) -> Result<Vec<Need>> {
        let next = |need: &VersionNeed| need.vn_next;
        let heads = self.list(elf::DT_VERNEED, elf::DT_VERNEEDNUM, next)?;
        let left = self.room::<VersionNeedAux>();
        let library = |(at, need): Placed<VersionNeed>| {
            let start = at.saturating_add(u64::from(need.vn_aux));
            let next = |aux: &VersionNeedAux| aux.vna_next;
            Ok(((at, need), self.chain((start, u64::from(need.vn_cnt)), &left, next)?))
        };
        heads.into_iter().map(library).collect()
    }

    fn definitions(&self) -> Result<Vec<Definition>> {
        let next = |definition: &VersionDefinition| definition.vd_next;
        let heads = self.list(elf::DT_VERDEF, elf::DT_VERDEFNUM, next)?;
        let left = self.room::<VersionDefinitionAux>();
        let version = |(at, definition): Placed<VersionDefinition>| {
            let start = at.saturating_add(u64::from(definition.vd_aux));
            let next = |aux: &VersionDefinitionAux| aux.vda_next;
            Ok(((at, definition), self.chain((start, u64::from(definition.vd_cnt)), &left, next)?))
        };
        heads.into_iter().map(version).collect()
    }

    /// How many records of a kind a list may have.
    fn room<T: Record>(&self) -> Cell<u64> {
        Cell::new(MAX_VERSIONS.min(self.file.content().len() / T::SIZE))
    }

    /// The list that the entry `tag` leads to, with as many records as the entry `count` says.
    fn list<T: Record>(
        &self,
        tag: elf::DynamicTag,
        count: elf::DynamicTag,
        next: impl Fn(&T) -> u32,
    ) -> Result<Vec<Placed<T>>> {
        let Some(address) = self.dynamic.value(tag) else {
            return Ok(Vec::new());
        };
        let count = self.dynamic.value(count).unwrap_or_default();
        match self.file.offset_of(address, T::SIZE) {
            Some(start) => self.chain((start, count), &self.room::<T>(), next),
            None => {
                let message = format!("the {}s at {address:#x} are not loaded", T::NAME);
                Err(self.file.refuse(Kind::Malformed, "dynamic section", 0, message))
            }
        }
    }

    /// Up to `count` records from offset `start` on, of which `left` are allowed; `next` is the
    /// distance to the next one.
    fn chain<T: Record>(
        &self,
        (start, count): (u64, u64),
        left: &Cell<u64>,
        next: impl Fn(&T) -> u32,
    ) -> Result<Vec<Placed<T>>> {
        let mut found = Vec::new();
        let mut at = start;
        for _ in 0..count {
            let Some(rest) = left.get().checked_sub(1) else {
                let message = "there are more in one list than symbols can refer to";
                let error = self.file.refuse(Kind::Limit, T::NAME, at, message);
                return Err(error.hint("the file is damaged: build it or copy it again"));
            };
            left.set(rest);
            let record = Table::<T>::new(self.file.content(), at, T::SIZE)?.to_vec()?;
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
