//! Notes symbol versions that files need but the set's libraries lack.
//!
//! The loader refuses a program whose library has versions, but lacks one that it needs. For a library
//! without any version it warns and goes on, or aborts if the library has no version table at all. rpm always
//! makes a requirement of each version, which then nothing provides. Weak needs count as well: the loader
//! goes on without them, but rpm does not distinguish them.
//!
//! Source: `match_symbol` of glibc (`elf/dl-version.c`) and `check_match` (`elf/dl-lookup.c`).

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::tree::TreePath;

use super::library_set::LibrarySet;
use super::linked_file::{LibraryLookup, LocatedFile};
use rockpack_report::{Finding, Findings};

/// A version that a portion needs from a library of the set and that the library lacks.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Lack<'a> {
    portion: usize,
    library: &'a str,
    version: &'a str,
    /// The portion of the library's file.
    owner: usize,
    /// The library's file.
    path: &'a TreePath,
    /// Whether the library has other versions.
    has_others: bool,
}

/// Adds a finding for each version that a library of the set lacks. `name` is the name of a portion.
pub(super) fn note(
    set: &LibrarySet<'_>,
    located: &[LocatedFile<'_>],
    name: impl Fn(usize) -> String,
    findings: &mut Findings,
) {
    let mut lacking: BTreeMap<Lack<'_>, BTreeSet<TreePath>> = BTreeMap::new();
    for file in located {
        for lack in lacks(set, file) {
            lacking.entry(lack).or_default().insert(file.linked.path.clone());
        }
    }
    for (lack, files) in lacking {
        findings.add(Finding::VersionNotInSet {
            package: name(lack.portion).into(),
            library: lack.library.into(),
            version: lack.version.to_owned(),
            provider: name(lack.owner).into(),
            path: lack.path.clone(),
            has_others: lack.has_others,
            files: files.into_iter().collect(),
        });
    }
}

fn lacks<'a>(set: &LibrarySet<'_>, file: &'a LocatedFile<'_>) -> Vec<Lack<'a>> {
    let mut found = Vec::new();
    let needed = file.linked.needs.linking.iter().flat_map(|linking| &linking.versions.needed);
    for need in needed {
        let Some(LibraryLookup::InSet(library)) = file.places.get(need.file.as_str()) else {
            continue;
        };
        let Some(linking) = set.linking(&library.file) else { continue };
        let lacked =
            need.versions.iter().filter(|version| !linking.versions.defines(&version.name));
        found.extend(lacked.map(|version| Lack {
            portion: file.linked.portion,
            library: &need.file,
            version: &version.name,
            owner: library.owner,
            path: &library.file,
            has_others: !linking.versions.defined.is_empty(),
        }));
    }
    found
}
