//! Symbol versions that a host binary needs and defines, by its sections of them.

use std::collections::{BTreeMap, BTreeSet};

use object::LittleEndian;

use super::elf_file::HostElfFile;
use super::linked::text_at;

/// Most versions that a file may need or define: symbols refer to them by 15 bits.
const MOST_VERSIONS: usize = 1 << 15;

/// The symbol versions of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::verify) struct LinkedVersions {
    /// Library → versions that the file needs of it.
    pub(in crate::verify) needed: BTreeMap<String, BTreeSet<String>>,
    /// Versions that the file has.
    pub(in crate::verify) defined: BTreeSet<String>,
}

/// Reads the versions of `file`; `None` if they cannot be read, or exceed the number that symbols can refer
/// to: nobody can say whether such a file works.
pub(in crate::verify) fn read(file: &HostElfFile<'_>) -> Option<LinkedVersions> {
    let mut room = MOST_VERSIONS;
    Some(LinkedVersions { needed: needed(file, &mut room)?, defined: defined(file, &mut room)? })
}

fn needed(file: &HostElfFile<'_>, room: &mut usize) -> Option<BTreeMap<String, BTreeSet<String>>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let Some((mut libraries, table)) = file.sections.gnu_verneed(LittleEndian, file.cache).ok()?
    else {
        return Some(found);
    };
    let strings = file.sections.strings(LittleEndian, file.cache, table).ok()?;
    while let Some((library, mut versions)) = libraries.next().ok()? {
        *room = room.checked_sub(1)?;
        let name = text_at(&strings, library.vn_file.get(LittleEndian).into())?;
        let own = found.entry(name).or_default();
        while let Some(version) = versions.next().ok()? {
            *room = room.checked_sub(1)?;
            own.insert(text_at(&strings, version.vna_name.get(LittleEndian).into())?);
        }
    }
    Some(found)
}

fn defined(file: &HostElfFile<'_>, room: &mut usize) -> Option<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let Some((mut versions, table)) = file.sections.gnu_verdef(LittleEndian, file.cache).ok()?
    else {
        return Some(found);
    };
    let strings = file.sections.strings(LittleEndian, file.cache, table).ok()?;
    while let Some((_, mut names)) = versions.next().ok()? {
        *room = room.checked_sub(1)?;
        // The first name is its own, and the others are of versions that it builds on.
        if let Some(name) = names.next().ok()? {
            found.insert(text_at(&strings, name.vda_name.get(LittleEndian).into())?);
        }
    }
    Some(found)
}
