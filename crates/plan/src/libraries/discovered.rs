//! The external libraries that the files of a portion need, and the libraries they offer, as relations.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::error::{Error, Result};
use rockpack_core::tree::TreePath;
use rockpack_elf::Linking;

use super::library_set::{LibraryLookup, LocatedFile};
use super::rules::LibraryRule;
use crate::relations::{parse_deb, plain};
use crate::settings::PlanSettings;
use rockpack_distribution::GatheredNeeds;
use rockpack_package::dependencies::rpm;
use rockpack_package::receipt::RelationRecord;
use rockpack_package::{Comparison, Format, Package, Relation, RelationKind};
use rockpack_report::{Findings, Soname, found};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Discovered {
    pub deb: BTreeSet<Relation>,
    /// Capabilities, needed and offered.
    pub rpm: BTreeSet<Relation>,
}

impl Discovered {
    pub fn add_to<F>(self, package: &mut Package<F>) {
        if let Some(deb) = &mut package.deb {
            deb.relations.extend(self.deb);
        }
        if let Some(rpm) = &mut package.rpm {
            rpm.discovered.extend(self.rpm);
        }
    }
}

pub(super) struct Gatherer<'a> {
    setting: &'a PlanSettings,
    portions: BTreeMap<usize, Gathering<'a>>,
}

#[derive(Default)]
struct Gathering<'a> {
    deb: GatheredNeeds<'a>,
    configured: BTreeSet<(Format, &'a Relation)>,
    /// Capabilities, needed and offered.
    rpm: BTreeSet<Relation>,
    /// Needed library → files that need it, if it is not found.
    missing: BTreeMap<String, BTreeSet<TreePath>>,
    /// Needed library without a configured dependency → files.
    without_dependency: BTreeMap<String, BTreeSet<TreePath>>,
    /// Entry of `libraries` that replaces dependencies → needed libraries, and the files.
    replaced: BTreeMap<&'a LibraryRule, (BTreeSet<String>, BTreeSet<TreePath>)>,
    /// Needed library and missing symbol version → files.
    lacking: BTreeMap<(String, String), BTreeSet<TreePath>>,
}

impl<'a> Gatherer<'a> {
    pub fn new(setting: &'a PlanSettings) -> Self {
        Self { setting, portions: BTreeMap::new() }
    }

    /// Adds the needs of a file, and what it provides if the loader finds it by name alone.
    pub fn add(&mut self, file: &LocatedFile<'_>, is_public: bool) -> Result<()> {
        let LocatedFile { linked, places: found, .. } = file;
        let gathering = self.portions.entry(linked.portion).or_default();
        let Some(linking) = &linked.needs.linking else { return Ok(()) };
        gathering.add_configured(self.setting, file);
        gathering.add_deb(self.setting, file, linking)?;
        let counts = |name: &str| match found.get(name) {
            Some(LibraryLookup::InSet(library)) => !library.is_private,
            Some(LibraryLookup::Outside) => {
                let rule = self.setting.library_rule(name, linked.family);
                !rule.is_some_and(|rule| rule.replaces(Format::Rpm))
            }
            Some(LibraryLookup::NotFound) | None => true,
        };
        let requires = rpm::requires(linking, linked.needs.is_executable, counts).into_iter();
        gathering.rpm.extend(requires.map(|name| plain(RelationKind::Depends, name)));
        if linked.in_host && is_public {
            let provides = rpm::provides(linking, linked.path.name()).into_iter();
            gathering.rpm.extend(provides.map(|name| plain(RelationKind::Provides, name)));
        }
        for (name, _) in found.iter().filter(|(_, place)| **place == LibraryLookup::NotFound) {
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
            let distribution = &self.setting.distributions.deb.name;
            all.insert(index, gathering.relations(distribution)?);
        }
        Ok(all)
    }
}

impl<'a> Gathering<'a> {
    /// Adds the dependencies that `libraries` configures for the external libraries of the file.
    fn add_configured(&mut self, setting: &'a PlanSettings, file: &LocatedFile<'_>) {
        let LocatedFile { linked, places, .. } = file;
        for (name, _) in places.iter().filter(|(_, place)| **place == LibraryLookup::Outside) {
            let Some(rule) = setting.library_rule(name, linked.family) else { continue };
            let relations = setting.formats.iter().map(|format| (*format, rule.relation(*format)));
            self.configured.extend(relations.filter_map(|(format, it)| Some((format, it?))));
            if setting.formats.iter().any(|format| rule.replaces(*format)) {
                let (libraries, files) = self.replaced.entry(rule).or_default();
                libraries.insert((*name).to_owned());
                files.insert(linked.path.clone());
            }
            if setting.distribution().is_some()
                && !rule.is_ignored
                && rule.relation(Format::Deb).is_none()
            {
                let files = self.without_dependency.entry((*name).to_owned()).or_default();
                files.insert(linked.path.clone());
            }
        }
    }

    fn add_deb(
        &mut self,
        setting: &'a PlanSettings,
        LocatedFile { linked, places: found, .. }: &LocatedFile<'_>,
        linking: &Linking,
    ) -> Result<()> {
        let Some(distribution) = setting.distribution() else { return Ok(()) };
        let needed = linking.needed.iter().map(String::as_str);
        let outside = needed.filter(|name| found.get(name) == Some(&LibraryLookup::Outside));
        let known: Vec<&str> =
            outside.filter(|name| setting.library_rule(name, linked.family).is_none()).collect();
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

    fn note(&self, package: &str, setting: &PlanSettings, findings: &mut Findings) {
        for (rule, (libraries, files)) in &self.replaced {
            let formats = setting.formats.iter().copied().filter(|it| rule.replaces(*it));
            let formats: Vec<Format> = formats.collect();
            let relations = formats.iter().filter_map(|format| rule.relation(*format));
            findings.add(found::LibrariesReplaced {
                package: package.into(),
                entry: rule.key.clone(),
                relations: relations.map(|it| RelationRecord::from(it).to_string()).collect(),
                formats,
                libraries: libraries.iter().map(Soname::from).collect(),
                files: files.iter().cloned().collect(),
            });
        }
        let Some(distribution) = setting.distribution() else { return };
        for (library, files) in &self.missing {
            findings.add(found::LibraryUnresolved {
                package: package.into(),
                library: library.into(),
                distribution: distribution.name.clone(),
                files: files.iter().cloned().collect(),
            });
        }
        for (library, files) in &self.without_dependency {
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

    /// The relations of the portion; `distribution` is named in errors.
    fn relations(self, distribution: &str) -> Result<Discovered> {
        let configured = |format: Format| {
            let relations = self.configured.iter().filter(move |(own, _)| *own == format);
            relations.map(|(_, relation)| (*relation).clone())
        };
        let texts = self.deb.dependencies();
        let deb = texts
            .iter()
            .map(|text| {
                parse_deb(RelationKind::Depends, text).map_err(|error| {
                    let message = format!("the dependency on a library of {distribution} is not valid");
                    let hint = "correct the symbols or shlibs file it comes from, or name the package under \
                                `libraries`";
                    Error::malformed(message).cause(error).hint(hint)
                })
            })
            .chain(configured(Format::Deb).map(Ok));
        let rpm = self.rpm.into_iter().chain(configured(Format::Rpm)).collect();
        Ok(Discovered { deb: deb.collect::<Result<_>>()?, rpm })
    }
}

/// Adds the capabilities that rpm derives from the paths of `package`: the build-ids of debug files.
pub(crate) fn add_build_ids<F>(package: &mut Package<F>) {
    let Some(control) = &mut package.rpm else { return };
    let entries = package.entries.iter().filter(|entry| entry.formats.has(Format::Rpm));
    let ids: BTreeSet<String> =
        entries.filter_map(|entry| rpm::build_id(entry.path.as_str())).collect();
    control.discovered.extend(ids.into_iter().map(|id| Relation {
        kind: RelationKind::Provides,
        name: "debuginfo(build-id)".to_owned(),
        version: Some((Comparison::Equal, id)),
    }));
}
