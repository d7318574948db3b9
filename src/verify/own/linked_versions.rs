//! Symbol versions that a host binary needs and defines, by its sections of them.

use std::collections::{BTreeMap, BTreeSet};

use object::LittleEndian;
use object::read::StringTable;

use super::elf_file::{ElfCache, HostElfFile};

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

type Strings<'a> = StringTable<'a, &'a ElfCache>;

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
        let own = found.entry(text(strings, library.vn_file.get(LittleEndian))?).or_default();
        while let Some(version) = versions.next().ok()? {
            *room = room.checked_sub(1)?;
            own.insert(text(strings, version.vna_name.get(LittleEndian))?);
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
            found.insert(text(strings, name.vda_name.get(LittleEndian))?);
        }
    }
    Some(found)
}

fn text(strings: Strings<'_>, at: u32) -> Option<String> {
    let bytes = strings.get(at).ok()?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}
