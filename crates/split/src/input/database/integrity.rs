//! Indexes of one folder that contradict each other.
//!
//! A library reads all files of a folder from that folder, so each folder is checked by itself. Only whether the build
//! writes mappings is decided by all folders of the library. Source of the facts:
//! rocm-libraries' `projects/hipblaslt/tools/scripts/check_dat_integrity.py`.
//!
//! | fault | not reported |
//! |---|---|
//! | a lazy master index without its mapping | next to a merged mapping, and if nothing shows that the build writes mappings |
//! | a mapping without its lazy master index | |
//! | a mapping that names a library whose name does not end in the mapping's own arch | if it cannot be read |
//! | a mapping that names no fallback library, next to indexes of fallback libraries | if it cannot be read |
//! | a plain and a compressed index with the same name | |
//!
//! A build writes mappings if it has one for an arch, a compressed master index, or an index of fallback
//! kernels that is named after an arch: all three were introduced later (rocm-libraries' pull requests 6840, 8294).
//!
//! TensileLite's master index `TensileLibrary_lazy_<arch>` names its libraries in a tree, for problems. A
//! *mapping* names them once more, by the first of their solutions, for solutions requested by number. Builds
//! before rocm-libraries' pull request 579 have no mapping, those up to 6840 one for all archs
//! (`TensileLiteLibrary_lazy_Mapping`), later ones one for each arch
//! (`TensileLiteLibrary_lazy_<arch>_Mapping`). Source: TensileLite's `MasterSolutionLibrary.hpp`,
//! rocm-libraries' pull requests 579, 6840 and 7009.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::TreePath;
use rockpack_report::Inconsistency;
use schemars::JsonSchema;
use serde::Deserialize;

use super::rule::{DatabaseRole, DatabaseRules};

/// The names of a library's master indexes and mappings, without `.dat` or `.dat.zlib`. The `*` of both
/// patterns matches the same text, usually an arch.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LazyNames {
    /// Names of master indexes, e.g. `TensileLibrary_lazy_*`.
    pub master: String,
    /// Names of their mappings, e.g. `TensileLiteLibrary_lazy_*_Mapping`.
    pub mapping: String,
    /// The name of one mapping for all master indexes.
    #[serde(default)]
    pub merged: Option<String>,
}

/// The role of an index that is loaded lazily, with the text that `*` matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LazyRole<'a> {
    Master(&'a str),
    Mapping(&'a str),
    MergedMapping,
}

impl LazyNames {
    /// The role of the index called `stem`; `None` if it is neither master index nor mapping.
    fn role<'a>(&self, stem: &'a str) -> Option<LazyRole<'a>> {
        if self.merged.as_deref() == Some(stem) {
            return Some(LazyRole::MergedMapping);
        }
        let mapping = wildcard_match(&self.mapping, stem).map(LazyRole::Mapping);
        mapping.or_else(|| wildcard_match(&self.master, stem).map(LazyRole::Master))
    }

    pub(super) fn is_master(&self, stem: &str) -> bool {
        let key = wildcard_match(&self.master, stem);
        key.is_some_and(|key| key.parse::<BaseArch>().is_ok())
    }

    /// The fault of the patterns, if any.
    pub fn fault(&self) -> Option<String> {
        let mut patterns = [&self.master, &self.mapping].into_iter();
        let wrong = patterns.find(|pattern| pattern.matches('*').count() != 1);
        wrong.map(|pattern| format!("`{pattern}` must have one `*`, in place of the arch"))
    }
}

/// The name of a file without `.co`, `.hsaco`, `.dat` or `.dat.zlib`.
pub fn stem(name: &str) -> &str {
    let name = name.strip_suffix(".zlib").unwrap_or(name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// The text that the one `*` of `pattern` matches in `name`.
fn wildcard_match<'a>(pattern: &str, name: &'a str) -> Option<&'a str> {
    let (start, end) = pattern.split_once('*')?;
    let key = name.strip_prefix(start)?.strip_suffix(end)?;
    (!key.is_empty()).then_some(key)
}

/// An index of a kernel database, by its place and name.
#[derive(Debug)]
pub struct LibraryIndex<'a> {
    /// The directory of the library, which contains the directories of archs.
    library: TreePath,
    folder: TreePath,
    /// The name without `.zlib`.
    plain: String,
    is_compressed: bool,
    names: Option<&'a LazyNames>,
    /// The libraries in the mapping, if it is one that was read.
    pub mapped: Option<BTreeSet<String>>,
}

impl<'a> LibraryIndex<'a> {
    /// The index at `path`; `None` if no rule has an index there.
    pub fn of(rules: &'a DatabaseRules, path: &TreePath) -> Option<Self> {
        let name = path.name();
        let claim = rules.claim(path)?;
        let is_index = matches!(claim.role, DatabaseRole::Index | DatabaseRole::Shared);
        if !is_index || claim.rule.is_code(name) {
            return None;
        }
        let plain = name.strip_suffix(COMPRESSED);
        Some(Self {
            library: claim.rule.library_of(path)?,
            folder: path.parent()?,
            plain: plain.unwrap_or(name).to_owned(),
            is_compressed: plain.is_some(),
            names: claim.rule.lazy.as_ref(),
            mapped: None,
        })
    }

    /// Whether it is the mapping of one master index, whose libraries are needed.
    pub fn is_mapping(&self) -> bool {
        matches!(self.role(), Some((_, LazyRole::Mapping(_))))
    }

    fn role(&self) -> Option<(&'a LazyNames, LazyRole<'_>)> {
        let names = self.names?;
        Some((names, names.role(stem(&self.plain))?))
    }

    fn name(&self) -> String {
        format!("{}{}", self.plain, if self.is_compressed { COMPRESSED } else { "" })
    }
}

const COMPRESSED: &str = ".zlib";

const FALLBACK: &str = "_fallback_";

/// The arch of fallback kernels, by the name of their library.
fn fallback_arch(name: &str) -> Option<&str> {
    without_features(name).rsplit_once(FALLBACK).map(|(_, arch)| arch)
}

const FEATURES: [&str; 4] = ["-xnack+", "-xnack-", "-sramecc+", "-sramecc-"];

/// The name without the features of the arch at its end, which distinguish builds of one arch.
fn without_features(name: &str) -> &str {
    let mut left = name;
    while let Some(before) = FEATURES.iter().find_map(|feature| left.strip_suffix(feature)) {
        left = before;
    }
    left
}

/// An index and its position among those that are checked together.
type Placed<'a> = (usize, &'a LibraryIndex<'a>);

/// Whether every user of the index at one position also has the one at the other.
pub type AlwaysTogether<'a> = &'a dyn Fn(usize, usize) -> bool;

/// The contradictions among `indexes`, each with its position. They may belong to several libraries.
pub fn inconsistencies(
    indexes: &[LibraryIndex<'_>],
    always_together: AlwaysTogether<'_>,
) -> Vec<(usize, Inconsistency)> {
    let mut folders: BTreeMap<&TreePath, Vec<Placed<'_>>> = BTreeMap::new();
    for placed in indexes.iter().enumerate() {
        folders.entry(&placed.1.folder).or_default().push(placed);
    }
    let with_mappings = with_mappings(indexes);
    let mut found = Vec::new();
    for members in folders.into_values() {
        let folder = Folder::of(&members, always_together);
        for (place, index) in members {
            let is_mapped = with_mappings.contains(&index.library);
            let faults = folder.faults((place, index), is_mapped);
            found.extend(faults.into_iter().map(|fault| (place, fault)));
        }
    }
    found
}

fn with_mappings<'a>(indexes: &'a [LibraryIndex<'_>]) -> BTreeSet<&'a TreePath> {
    let keys: BTreeSet<(&TreePath, &str)> = indexes
        .iter()
        .filter_map(|index| {
            let (_, LazyRole::Master(key) | LazyRole::Mapping(key)) = index.role()? else {
                return None;
            };
            Some((&index.library, without_features(key)))
        })
        .collect();
    let shown = indexes.iter().filter(|index| match index.role() {
        Some((_, LazyRole::Mapping(_))) => true,
        Some((_, LazyRole::Master(_))) => index.is_compressed,
        Some((_, LazyRole::MergedMapping)) => false,
        None => fallback_arch(stem(&index.plain))
            .is_some_and(|arch| keys.contains(&(&index.library, arch))),
    });
    shown.map(|index| &index.library).collect()
}

struct Folder<'a> {
    /// The master indexes and mappings.
    lazy: BTreeMap<LazyRole<'a>, Vec<usize>>,
    /// The indexes of fallback libraries, by arch.
    fallbacks: BTreeMap<&'a str, Vec<Placed<'a>>>,
    /// The names of compressed indexes, without `.zlib`.
    compressed: BTreeSet<&'a str>,
    always_together: AlwaysTogether<'a>,
}

impl<'a> Folder<'a> {
    fn of(members: &[Placed<'a>], always_together: AlwaysTogether<'a>) -> Self {
        let (mut lazy, mut fallbacks) = (BTreeMap::new(), BTreeMap::new());
        for placed in members {
            let (place, index) = *placed;
            if let Some((_, role)) = index.role() {
                lazy.entry(role).or_insert_with(Vec::new).push(place);
            } else if let Some(arch) = fallback_arch(stem(&index.plain)) {
                fallbacks.entry(arch).or_insert_with(Vec::new).push(*placed);
            }
        }
        let compressed = members
            .iter()
            .filter(|(_, index)| index.is_compressed)
            .map(|(_, index)| index.plain.as_str())
            .collect();
        Self { lazy, fallbacks, compressed, always_together }
    }

    fn faults(&self, (place, index): Placed<'_>, is_mapped: bool) -> Vec<Inconsistency> {
        let mut faults = Vec::new();
        // All kernel packages may be installed together, so the other index may belong to any of them.
        if !index.is_compressed && self.compressed.contains(index.plain.as_str()) {
            let compressed = format!("{}{COMPRESSED}", index.plain);
            faults.push(Inconsistency::PlainAndCompressed { compressed });
        }
        match index.role() {
            Some((names, LazyRole::Master(key))) if is_mapped => {
                let roles = [LazyRole::Mapping(key), LazyRole::MergedMapping];
                if !roles.into_iter().any(|role| self.has(place, role)) {
                    let mapping = file_name(&names.mapping, key);
                    faults.push(Inconsistency::MasterWithoutMapping { mapping });
                }
            }
            Some((names, LazyRole::Mapping(key))) => {
                if !self.has(place, LazyRole::Master(key)) {
                    let master = file_name(&names.master, key);
                    faults.push(Inconsistency::MappingWithoutMaster { master });
                }
                faults.extend(foreign_names(index, key));
                faults.extend(self.unmapped_fallback((place, index), key));
            }
            _ => {}
        }
        faults
    }

    fn has(&self, place: usize, role: LazyRole<'_>) -> bool {
        let mut holders = self.lazy.get(&role).into_iter().flatten();
        holders.any(|other| (self.always_together)(place, *other))
    }

    fn unmapped_fallback(&self, (place, index): Placed<'_>, key: &str) -> Option<Inconsistency> {
        let arch = without_features(key);
        if index.mapped.as_ref()?.iter().any(|name| fallback_arch(name) == Some(arch)) {
            return None;
        }
        let fallbacks = self.fallbacks.get(arch)?.iter();
        let reached = fallbacks.filter(|(other, _)| (self.always_together)(place, *other));
        let names: BTreeSet<String> = reached.map(|(_, fallback)| fallback.name()).collect();
        let fallbacks: Vec<String> = names.into_iter().collect();
        (!fallbacks.is_empty()).then_some(Inconsistency::FallbackUnmapped { fallbacks })
    }
}

fn foreign_names(index: &LibraryIndex<'_>, key: &str) -> Option<Inconsistency> {
    let arch = without_features(key);
    let foreign = index.mapped.iter().flatten().filter(|name| {
        let before = without_features(name).strip_suffix(arch);
        before.is_none_or(|before| !before.ends_with('_'))
    });
    let names: Vec<String> = foreign.cloned().collect();
    (!names.is_empty()).then(|| Inconsistency::ForeignNames { arch: key.to_owned(), names })
}

/// The file name of the index for `key` by one of the patterns of [`LazyNames`].
fn file_name(pattern: &str, key: &str) -> String {
    format!("{}.dat", pattern.replacen('*', key, 1))
}

#[cfg(test)]
#[path = "integrity_tests.rs"]
mod tests;
