//! The external libraries that the files of a portion need, and the libraries they offer, as relations.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::error::{Error, Result};
use rockpack_core::tree::TreePath;
use rockpack_elf::Linking;

use super::library_set::{LibraryLookup, LinkedFile};
use crate::relations::{parse_deb, plain};
use crate::settings::PlanSettings;
use rockpack_package::dependencies::distribution::GatheredNeeds;
use rockpack_package::dependencies::rpm;
use rockpack_package::{Comparison, Format, Package, Relation, RelationKind};
use rockpack_report::{Findings, found};

/// Relations of one portion's host package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Discovered {
    /// Dependencies on packages of the distribution.
    pub deb: BTreeSet<Relation>,
    /// Capabilities, needed and offered.
    pub rpm: BTreeSet<Relation>,
}

impl Discovered {
    /// Adds the relations to `package`.
    pub fn add_to<F>(self, package: &mut Package<F>) {
        if let Some(deb) = &mut package.deb {
            deb.relations.extend(self.deb);
        }
        if let Some(rpm) = &mut package.rpm {
            rpm.discovered.extend(self.rpm);
        }
    }
}

/// Collects the needs of all files by portion.
pub(super) struct Gatherer<'a> {
    setting: &'a PlanSettings,
    portions: BTreeMap<usize, Gathering<'a>>,
}

/// The needs and offers collected for one portion.
#[derive(Default)]
struct Gathering<'a> {
    deb: GatheredNeeds<'a>,
    configured: BTreeSet<&'a Relation>,
    requires: BTreeSet<String>,
    provides: BTreeSet<String>,
    /// Needed library → files that need it, if it is not found.
    missing: BTreeMap<String, BTreeSet<TreePath>>,
    /// Needed library without a configured dependency → files.
    free: BTreeMap<String, BTreeSet<TreePath>>,
    /// Needed library and missing symbol version → files.
    lacking: BTreeMap<(String, String), BTreeSet<TreePath>>,
}

impl<'a> Gatherer<'a> {
    pub fn new(setting: &'a PlanSettings) -> Self {
        Self { setting, portions: BTreeMap::new() }
    }

    /// Adds the needs of a file whose needed libraries were `found`, and its offers if the dynamic linker
    /// finds it by its name alone.
    pub fn add(
        &mut self,
        linked: &LinkedFile<'_>,
        found: &BTreeMap<&str, LibraryLookup>,
        is_public: bool,
    ) -> Result<()> {
        let gathering = self.portions.entry(linked.portion).or_default();
        let Some(linking) = &linked.needs.linking else { return Ok(()) };
        gathering.add_deb(self.setting, linked, linking, found)?;
        let counts = |name: &str| !found.get(name).is_some_and(is_private);
        let requires = rpm::requires(linking, linked.needs.is_executable, counts);
        gathering.requires.extend(requires);
        if linked.in_host && is_public {
            gathering.provides.extend(rpm::provides(linking, linked.path.name()));
        }
        for (name, _) in found.iter().filter(|(_, place)| **place == LibraryLookup::Nowhere) {
            let files = gathering.missing.entry((*name).to_owned()).or_default();
            files.insert(linked.path.clone());
        }
        Ok(())
    }

    /// The relations of all portions. `name` is the name of a portion, for findings.
    pub fn finish(
        self,
        name: impl Fn(usize) -> String,
        findings: &mut Findings,
    ) -> Result<BTreeMap<usize, Discovered>> {
        let mut all = BTreeMap::new();
        for (index, gathering) in self.portions {
            gathering.note(&name(index), self.setting, findings);
            all.insert(index, gathering.relations()?);
        }
        Ok(all)
    }
}

impl<'a> Gathering<'a> {
    fn add_deb(
        &mut self,
        setting: &'a PlanSettings,
        linked: &LinkedFile<'_>,
        linking: &Linking,
        found: &BTreeMap<&str, LibraryLookup>,
    ) -> Result<()> {
        let Some(distribution) = setting.distribution() else { return Ok(()) };
        let mut known = Vec::new();
        let needed = linking.needed.iter().map(String::as_str);
        for name in needed.filter(|name| found.get(name) == Some(&LibraryLookup::Outside)) {
            match setting.configured_library(name) {
                Some(Some(dependency)) => drop(self.configured.insert(dependency)),
                Some(None) => {
                    let files = self.free.entry(name.to_owned()).or_default();
                    files.insert(linked.path.clone());
                }
                None => known.push(name),
            }
        }
        self.deb.add(distribution, linking, &known)?;
        for need in linking.versions.needed.iter().filter(|need| known.contains(&&*need.file)) {
            let library = distribution.library(&need.file)?;
            for version in &need.versions {
                if library.is_some_and(|library| library.lacks(&version.name)) {
                    let key = (need.file.clone(), version.name.clone());
                    self.lacking.entry(key).or_default().insert(linked.path.clone());
                }
            }
        }
        Ok(())
    }

    /// Adds a finding for each package and library, and for each symbol version that a library lacks.
    fn note(&self, package: &str, setting: &PlanSettings, findings: &mut Findings) {
        let Some(distribution) = setting.distribution() else { return };
        for (library, files) in &self.missing {
            findings.add(found::LibraryUnresolved {
                package: package.into(),
                library: library.into(),
                distribution: distribution.name.clone(),
                files: files.iter().cloned().collect(),
            });
        }
        for (library, files) in &self.free {
            findings.add(found::LibraryWithoutDependency {
                package: package.into(),
                library: library.into(),
                files: files.iter().cloned().collect(),
            });
        }
        for ((library, version), files) in &self.lacking {
            findings.add(found::VersionUnresolved {
                package: package.into(),
                library: library.into(),
                version: version.clone(),
                distribution: distribution.name.clone(),
                files: files.iter().cloned().collect(),
            });
        }
    }

    fn relations(self) -> Result<Discovered> {
        let texts = self.deb.dependencies();
        let deb = texts
            .iter()
            .map(|text| {
                parse_deb(RelationKind::Depends, text).map_err(|error| {
                    Error::bug("a dependency template gives no relation").cause(error)
                })
            })
            .chain(self.configured.into_iter().cloned().map(Ok));
        let requires = unversioned(RelationKind::Depends, self.requires);
        let provides = unversioned(RelationKind::Provides, self.provides);
        Ok(Discovered { deb: deb.collect::<Result<_>>()?, rpm: requires.chain(provides).collect() })
    }
}

/// Whether a library of the set was found that is outside of the linker path.
fn is_private(place: &LibraryLookup) -> bool {
    matches!(place, LibraryLookup::InSet(library) if library.is_private)
}

fn unversioned(kind: RelationKind, names: BTreeSet<String>) -> impl Iterator<Item = Relation> {
    names.into_iter().map(move |name| plain(kind, name))
}

/// Adds the capabilities that rpm derives from the paths of `package`: the build-ids of debug files.
pub(crate) fn add_build_ids<F>(package: &mut Package<F>) {
    let Some(control) = &mut package.rpm else {
        return;
    };
    let entries = package.entries.iter().filter(|entry| entry.formats.has(Format::Rpm));
    let ids: BTreeSet<String> =
        entries.filter_map(|entry| rpm::build_id(entry.path.as_str())).collect();
    control.discovered.extend(ids.into_iter().map(|id| Relation {
        kind: RelationKind::Provides,
        name: "debuginfo(build-id)".to_owned(),
        version: Some((Comparison::Equal, id)),
    }));
}
