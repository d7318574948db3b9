//! Symbol versions: which a library defines, and which a file needs of each library.

use object::elf;

use super::dynamic::Dynamic;
use super::file::{ElfFile, string_at};
use super::record::{Record, VersionDefinition, VersionDefinitionAux, VersionNeed, VersionNeedAux};
use super::table::Table;
use crate::error::{Kind, Result};

/// Most versions that are read in one list: indexes have 15 bits.
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
        let lists = Lists { file, dynamic, strings };
        Ok(Self { defined: lists.defined()?, needed: lists.needed()? })
    }

    /// The name of the version with `index`, needed or defined.
    pub fn name(&self, index: u16) -> Option<&str> {
        let needed = self.needed.iter().flat_map(|library| &library.versions);
        let needed = needed.map(|(known, name)| (*known, name.as_str()));
        let defined = self.defined.iter().filter(|version| !version.is_base);
        let defined = defined.filter_map(|v| Some((v.index, v.names.first()?.as_str())));
        needed.chain(defined).find(|(known, _)| *known == index).map(|(_, name)| name)
    }
}

/// The two linked lists of a file.
struct Lists<'a> {
    file: &'a ElfFile,
    dynamic: &'a Dynamic,
    strings: &'a [u8],
}

impl Lists<'_> {
    fn needed(&self) -> Result<Vec<NeededVersions>> {
        let heads =
            self.list(elf::DT_VERNEED, elf::DT_VERNEEDNUM, |need: &VersionNeed| need.vn_next)?;
        let library = |(at, need): (u64, VersionNeed)| {
            let start = at.saturating_add(u64::from(need.vn_aux));
            let next = |aux: &VersionNeedAux| aux.vna_next;
            let versions = self.chain(start, u64::from(need.vn_cnt), next)?;
            let version = |(_, aux): (u64, VersionNeedAux)| {
                (aux.vna_other.0 & elf::VERSYM_VERSION, self.text(aux.vna_name))
            };
            let versions = versions.into_iter().map(version).collect();
            Ok(NeededVersions { file: self.text(need.vn_file), versions })
        };
        heads.into_iter().map(library).collect()
    }

    fn defined(&self) -> Result<Vec<DefinedVersion>> {
        let next = |definition: &VersionDefinition| definition.vd_next;
        let heads = self.list(elf::DT_VERDEF, elf::DT_VERDEFNUM, next)?;
        let version = |(at, definition): (u64, VersionDefinition)| {
            let start = at.saturating_add(u64::from(definition.vd_aux));
            let next = |aux: &VersionDefinitionAux| aux.vda_next;
            let names = self.chain(start, u64::from(definition.vd_cnt), next)?;
            Ok(DefinedVersion {
                is_base: definition.vd_flags.0 & elf::VER_FLG_BASE.0 != 0,
                index: definition.vd_ndx.0 & elf::VERSYM_VERSION,
                names: names.into_iter().map(|(_, aux)| self.text(aux.vda_name)).collect(),
            })
        };
        heads.into_iter().map(version).collect()
    }

    /// The list that the entry `tag` leads to, with as many records as the entry `count` says.
    fn list<T: Record>(
        &self,
        tag: elf::DynamicTag,
        count: elf::DynamicTag,
        next: impl Fn(&T) -> u32,
    ) -> Result<Vec<(u64, T)>> {
        let Some(address) = self.dynamic.value(tag) else {
            return Ok(Vec::new());
        };
        let count = self.dynamic.value(count).unwrap_or_default();
        match self.file.offset_of(address, T::SIZE) {
            Some(start) => self.chain(start, count, next),
            None => {
                let message = format!("the {}s at {address:#x} are not loaded", T::NAME);
                Err(self.file.refuse(Kind::Malformed, "dynamic section", 0, message))
            }
        }
    }

    /// Up to `count` records from offset `start` on; `next` is the distance to the next one.
    fn chain<T: Record>(
        &self,
        start: u64,
        count: u64,
        next: impl Fn(&T) -> u32,
    ) -> Result<Vec<(u64, T)>> {
        if count > MAX_VERSIONS {
            let message = format!("{count} entries are more than symbols can refer to");
            return Err(self.file.refuse(Kind::Limit, T::NAME, start, message));
        }
        let mut found = Vec::new();
        let mut at = start;
        for _ in 0..count {
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

    fn text(&self, offset: u32) -> String {
        String::from_utf8_lossy(string_at(self.strings, offset)).into_owned()
    }
}
