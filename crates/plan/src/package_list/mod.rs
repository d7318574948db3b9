//! TheRock's package list: the file, the owners of content by its entries, and their packages.
//!
//! An entry takes parts of stage prefixes. It becomes one portion for all its components; the rest of the
//! plan treats it like a portion made by selectors. Refused: stage prefixes that two entries take.

mod file;
mod packages;
mod relations;
mod schema;

#[cfg(test)]
mod tests;

pub use file::PackageList;

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::error::{Error, Faults, Result};
use rockpack_core::tree::TreePath;

use crate::config::PartRole;
use crate::contents::selectors::Families;
use crate::contents::{ContentOwners, Portion, PortionKey, Portions, assign};
use crate::naming::PackageNames;
use crate::naming::parts::PackagePart;
use crate::recombine::{Component, Recombined};
use crate::settings::PlanSettings;
use file::{ListedPart, PackageListEntry};
use rockpack_report::{Findings, IgnoredClaim, found};
use rockpack_split::input::artifact::{ComponentKind, Scan};

/// A package list, with the stage prefixes of a scan that its entries take.
#[derive(Debug)]
pub struct PackageListOwners<'a> {
    list: &'a PackageList,
    stage_prefixes: StagePrefixes,
    entries: Vec<EntryPortion>,
}

#[derive(Debug)]
struct EntryPortion {
    family: String,
    stem: PackageNames,
    part: PackagePart,
}

struct EntryMatch<'a> {
    index: usize,
    entry: &'a PackageListEntry,
    part: &'a ListedPart,
}

impl PackageList {
    pub fn owners_in(&self, scan: &Scan) -> PackageListOwners<'_> {
        PackageListOwners::new(self, StagePrefixes::of(scan))
    }

    fn matches<'a>(
        &'a self,
        artifact: &str,
        kind: ComponentKind,
        prefix: &str,
    ) -> impl Iterator<Item = EntryMatch<'a>> {
        self.entries.iter().enumerate().filter_map(move |(index, entry)| {
            let mut parts = entry.parts.iter();
            let part = parts.find(|part| part.is_of(artifact, kind) && part.fits(prefix))?;
            Some(EntryMatch { index, entry, part })
        })
    }
}

impl<'a> PackageListOwners<'a> {
    pub(crate) fn new(list: &'a PackageList, mut stage_prefixes: StagePrefixes) -> Self {
        for ((artifact, kind), component) in &mut stage_prefixes.0 {
            for (prefix, known) in component {
                known.owner = list.matches(artifact, *kind, prefix).next().map(|taker| taker.index);
            }
        }
        let entries = list.entries.iter().map(EntryPortion::new).collect();
        Self { list, stage_prefixes, entries }
    }

    /// The portions of the entries, in the order of their names, and the install-relative paths that no entry takes,
    /// in order: a list may cover only a part of a run. Each component with such paths gets a finding with their code
    /// objects.
    pub(crate) fn assign<'b>(
        &'b self,
        recombined: &'b Recombined,
        setting: &'b PlanSettings,
        findings: &mut Findings,
    ) -> Result<(Vec<Portion<'b>>, Vec<TreePath>)> {
        self.refuse_shared()?;
        let (mut faults, mut portions) = (Faults::default(), Portions::new());
        let mut left = Vec::new();
        for component in &recombined.components {
            // No list names it.
            let assigned = if setting.is_shim(&component.artifact) {
                assign(component, &Families { setting }, &mut portions)
            } else {
                assign(component, &self, &mut portions)
            };
            let rest = faults.keep(assigned);
            left.extend(rest.filter(|rest| !rest.paths.is_empty()).map(|rest| (component, rest)));
        }
        faults.finish()?;
        let mut paths = BTreeSet::new();
        for (component, rest) in left {
            findings.add(rest.not_listed(component)?);
            paths.extend(rest.paths.iter().copied().cloned());
        }
        Ok((portions.into_values().collect(), paths.into_iter().collect()))
    }

    fn refuse_shared(&self) -> Result<()> {
        let mut faults = Faults::default();
        for (artifact, kind) in self.stage_prefixes.components() {
            for prefix in self.stage_prefixes.of_component(artifact, kind) {
                let mut matches = self.list.matches(artifact, kind, prefix);
                let Some(first) = matches.next() else { continue };
                for EntryMatch { entry, part, .. } in matches {
                    let (other, first) = (&entry.name, &first.entry.name);
                    let message =
                        format!("{other} takes {prefix} of {artifact}_{kind}, and so does {first}");
                    let error = self.list.fault_of_part(entry, part, message);
                    let hint = "packages that can be installed together cannot own the same path";
                    faults.add(error.hint(hint));
                }
            }
        }
        faults.finish()
    }

    /// Notes requests of entries that `portions` do not fulfil.
    fn note(&self, portions: &[Portion<'_>], findings: &mut Findings) {
        findings.extend(self.list.findings.clone());
        for entry in &self.list.entries {
            for part in &entry.parts {
                let kinds = part.kinds.iter();
                let mut prefixes = kinds
                    .flat_map(|kind| self.stage_prefixes.of_component(&part.artifact, *kind))
                    .peekable();
                if prefixes.peek().is_some() && !prefixes.any(|prefix| part.fits(prefix)) {
                    let claim = IgnoredClaim::AbsentModule {
                        module: part.subdir.clone(),
                        artifact: part.artifact.clone(),
                        components: part.kinds.iter().map(ToString::to_string).collect(),
                    };
                    let entry = entry.name.clone();
                    findings.add(found::ListClaimIgnored { entry, claim });
                }
            }
        }
        for entry in self.list.entries.iter().filter(|entry| !entry.is_meta) {
            if portions.iter().any(|portion| portion.stem == entry.stem()) {
                continue;
            }
            let artifacts: BTreeSet<String> =
                entry.parts.iter().map(|part| part.artifact.clone()).collect();
            let artifacts = Some(artifacts.into_iter().collect());
            let entry = entry.name.clone();
            findings.add(found::ListedWithoutContent { entry, artifacts });
        }
        // The list does not split packages for developers, but their device code goes into kernel packages, as
        // host packages never hold any.
        let whole = portions.iter().filter(|portion| portion.part.is_whole);
        for portion in whole.filter(|portion| portion.has_device_code()) {
            let (entry, claim) = (portion.stem.rpm.clone(), IgnoredClaim::WholeDevelopment);
            findings.add(found::ListClaimIgnored { entry, claim });
        }
    }
}

impl<'b> ContentOwners<'b> for &'b PackageListOwners<'_> {
    type Owner = usize;

    /// The owner of a path by its module, which is known even if the path was moved.
    fn of(&self, component: &Component, path: &TreePath, module: Option<&str>) -> Option<usize> {
        match self.stage_prefixes.owner(component, path) {
            Some(owner) => owner,
            None => {
                let mut matches = self.list.matches(&component.artifact, component.kind, module?);
                matches.next().map(|taker| taker.index)
            }
        }
    }

    fn portion(&self, _: &Component, owner: usize) -> Result<(PortionKey, Portion<'b>)> {
        let found = self.entries.get(owner);
        let EntryPortion { family, stem, part } =
            found.ok_or_else(|| Error::bug(format!("no entry {owner} is listed")))?;
        let portion = Portion::new(family.clone(), stem.clone(), part);
        Ok(((stem.rpm.clone(), owner), portion))
    }
}

impl EntryPortion {
    /// Assigns development and test packages to their family, with names of their own for archives.
    fn new(entry: &PackageListEntry) -> Self {
        let devel = entry.devel_of().map(|family| (PartRole::Support, family, ["dev", "dev"]));
        let tested = entry.name.strip_suffix("-test");
        let test = tested.map(|family| (PartRole::Support, family, ["test", "tests"]));
        let host = (PartRole::Host, entry.name.as_str(), ["lib", "host"]);
        let (role, family, [archives, template]) = devel.or(test).unwrap_or(host);
        let part = PackagePart::of_entry(archives, role, template, devel.is_some());
        Self { family: family.to_owned(), stem: entry.stem(), part }
    }
}

/// The non-empty stage prefixes of all paths of a scan, by component and by their paths.
///
/// Flattened components know only the module of a file. A package list names any part of a stage prefix, and
/// takes links and empty folders too.
#[derive(Debug, Clone, Default)]
pub(crate) struct StagePrefixes(BTreeMap<(String, ComponentKind), BTreeMap<String, StagePrefix>>);

#[derive(Debug, Clone, Default)]
struct StagePrefix {
    paths: BTreeSet<TreePath>,
    /// Index in the list of the entry that takes it.
    owner: Option<usize>,
}

impl StagePrefixes {
    /// The stage prefixes of all shards. If several prefixes of an artifact hold a path, the first by name
    /// has it, as when prefixes are merged; among several artifacts, the first.
    pub fn of(scan: &Scan) -> Self {
        let mut all = Self::default();
        for artifact in scan.shards.iter().flat_map(|shard| &shard.artifacts) {
            for prefix in &artifact.prefixes {
                for (path, _) in &prefix.tree {
                    all.add(&artifact.name.name, artifact.name.kind, &prefix.path, path);
                }
            }
        }
        all
    }

    pub fn add(&mut self, artifact: &str, kind: ComponentKind, prefix: &str, path: &TreePath) {
        let component = self.0.entry((artifact.to_owned(), kind)).or_default();
        let is_taken = component.values().any(|known| known.paths.contains(path));
        let prefix = component.entry(prefix.to_owned()).or_default();
        if !is_taken {
            prefix.paths.insert(path.clone());
        }
    }

    /// The owner of the prefix of `path` in `component`. The outer `None` means an unknown prefix, the inner
    /// one a prefix without owner.
    pub fn owner(&self, component: &Component, path: &TreePath) -> Option<Option<usize>> {
        let mut known = self.0.get(&(component.artifact.clone(), component.kind))?.values();
        known.find(|prefix| prefix.paths.contains(path)).map(|prefix| prefix.owner)
    }

    pub fn of_component(&self, artifact: &str, kind: ComponentKind) -> impl Iterator<Item = &str> {
        let known = self.0.get(&(artifact.to_owned(), kind));
        known.into_iter().flat_map(|known| known.keys().map(String::as_str))
    }

    pub fn components(&self) -> impl Iterator<Item = (&str, ComponentKind)> {
        self.0.keys().map(|(artifact, kind)| (artifact.as_str(), *kind))
    }
}
