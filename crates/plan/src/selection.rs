//! Selects the packages that `--only` keeps: components with all their packages, or a package with others of the
//! same components and family (its kernel packages, its metapackage). Packages that need the shim bring its package.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::tree::TreePath;

use crate::config::nearest;
use crate::contents::UnassignedContent;
use crate::drafts::Draft;
use crate::outcome::{ArchiveSet, FileSource};
use crate::recombine::{Component, Recombined};
use crate::settings::PlanSettings;
use crate::shim;
use rockpack_package::RelationKind;
use rockpack_package::receipt::CurrentPackages;
use rockpack_report::Findings;
use rockpack_report::words::list;

#[derive(Default)]
pub(crate) struct PackageSelection {
    components: BTreeSet<String>,
    /// A family and the components of one of its packages.
    packages: Vec<(String, BTreeSet<String>)>,
}

impl PackageSelection {
    /// Resolves the names of `only`; refuses names without a match.
    pub fn new(recombined: &Recombined, drafts: &[Draft], only: &[String]) -> Result<Self> {
        let mut faults = Faults::default();
        let mut kept = Self::default();
        for wanted in only {
            if !kept.add(wanted, recombined, drafts) {
                let known = Vec::from_iter(recombined.components.iter().map(|it| &*it.id));
                let error = Error::new(Kind::Usage, format!("there is no component `{wanted}`"));
                let packages = drafts
                    .iter()
                    .flat_map(|draft| [&draft.names, &draft.stem])
                    .flat_map(|names| [names.deb.as_str(), names.rpm.as_str()]);
                let artifacts = recombined.components.iter().map(|c| c.artifact.as_str());
                let all = known.iter().copied().chain(artifacts).chain(packages);
                let meant = nearest(wanted, all)
                    .map(|it| format!("did you mean `{it}`? "))
                    .unwrap_or_default();
                faults.add(error.hint(format!("{meant}the components are {}", list(&known))));
            }
        }
        faults.finish().map(|()| kept)
    }

    /// The kept packages of a set, all without `--only`, and the install-relative paths of the input that no kept
    /// package has, in order. Content of packages kept from earlier sets does not count as left out.
    pub fn select(
        &self,
        recombined: &Recombined,
        setting: &PlanSettings,
        drafts: Vec<Draft>,
        archives: &[ArchiveSet],
        current_packages: &CurrentPackages,
        findings: &mut Findings,
    ) -> Result<(Vec<Draft>, Vec<TreePath>)> {
        let links = drafts.iter().filter(|draft| self.keeps(draft)).flat_map(|draft| &draft.links);
        let depends = links.filter(|link| link.kind == RelationKind::Depends);
        let needed: BTreeSet<String> = depends.map(|link| link.to.deb.clone()).collect();
        let is_needed = |draft: &Draft| {
            setting.shim.is_some()
                && draft.components.contains(shim::COMPONENT)
                && needed.contains(&draft.names.deb)
        };
        let (kept, dropped): (Vec<Draft>, Vec<Draft>) = drafts
            .into_iter()
            .partition(|draft| setting.only.is_empty() || self.keeps(draft) || is_needed(draft));
        let (remaining, dropped): (Vec<&Draft>, Vec<&Draft>) = dropped.iter().partition(|draft| {
            let mut formats = setting.formats.iter();
            formats.any(|format| current_packages.keepable(*format, &draft.names.deb).is_some())
        });
        let remaining = kept.iter().chain(remaining).collect::<Vec<_>>();
        let left_out = left_out(recombined, archives, &remaining, &dropped, findings)?;
        Ok((kept, left_out))
    }

    /// Whether `draft` is selected, or belongs to a selected package.
    fn keeps(&self, draft: &Draft) -> bool {
        let has_component = !draft.components.is_disjoint(&self.components);
        has_component
            || self.packages.iter().any(|(family, components)| {
                // The common package is kept along with any part of the set.
                let serves = draft.family == *family || draft.is_common;
                serves && !draft.components.is_disjoint(components)
            })
    }

    /// Adds the components or packages called `wanted`; returns false if there is no match.
    fn add(&mut self, wanted: &str, recombined: &Recombined, drafts: &[Draft]) -> bool {
        let components: Vec<String> = recombined
            .components
            .iter()
            .filter(|c| c.artifact == wanted || *c.id == *wanted)
            .map(|component| component.id.to_string())
            .collect();
        let packages: Vec<_> = drafts
            .iter()
            .filter(|d| !d.components.is_empty() && (d.names.has(wanted) || d.stem.has(wanted)))
            .map(|draft| (draft.family.clone(), draft.components.clone()))
            .collect();
        let found = !components.is_empty() || !packages.is_empty();
        self.components.extend(components);
        self.packages.extend(packages);
        found
    }
}

/// The install-relative paths of `dropped` that no package of `kept` has, in order. Each component that loses
/// something gets a finding with its code objects, so that a comparison of the set with its input can explain absent
/// content.
fn left_out(
    recombined: &Recombined,
    archives: &[ArchiveSet],
    kept: &[&Draft],
    dropped: &[&Draft],
    findings: &mut Findings,
) -> Result<Vec<TreePath>> {
    let outside: Vec<&FileSource> = dropped
        .iter()
        .flat_map(|draft| &draft.extras.outside)
        .filter(|(path, _)| !kept.iter().any(|draft| draft.extras.outside.contains_key(*path)))
        .filter_map(|(_, entry)| entry.node.data())
        .collect();
    let kept: BTreeSet<&TreePath> = kept.iter().flat_map(|draft| draft.files.keys()).collect();
    let components = recombined.components.iter().map(|component| (&*component.id, component));
    let components = components.collect();
    let mut missing = BTreeMap::new();
    let mut paths = BTreeSet::new();
    for (path, node) in dropped.iter().flat_map(|draft| &draft.files) {
        if kept.contains(path) {
            continue;
        }
        if let Some(source) = node.data() {
            add_content(source, &components, archives, &mut missing);
        }
        if node.data().is_none_or(is_of_input) {
            paths.insert(path.clone());
        }
    }
    paths.extend(dropped.iter().flat_map(|draft| draft.extras.replaced.iter().cloned()));
    // A file that is installed elsewhere is listed by its path in the input.
    for source in outside {
        add_content(source, &components, archives, &mut missing);
        if let FileSource::Host { path, .. } = source {
            paths.insert(path.clone());
        }
    }
    for (component, missing) in missing {
        findings.add(missing.left_out(component)?);
    }
    Ok(paths.into_iter().collect())
}

fn is_of_input(source: &FileSource) -> bool {
    matches!(source, FileSource::Host { .. } | FileSource::Fat { .. } | FileSource::Database { .. })
}

/// Adds the content of `source`, from components or archive `sets`, to its component.
fn add_content<'a>(
    source: &'a FileSource,
    components: &BTreeMap<&str, &'a Component>,
    sets: &'a [ArchiveSet],
    by_component: &mut BTreeMap<&'a str, UnassignedContent<'a>>,
) {
    match source {
        FileSource::Host { component, path } | FileSource::Fat { component, path, .. } => {
            let missing = by_component.entry(component).or_default();
            missing.paths.insert(path);
            let found = components.get(&**component);
            missing.plain.extend(found.and_then(|it| it.host.get(path)?.data()?.plain()));
        }
        FileSource::Database { component, path } => {
            let missing = by_component.entry(component).or_default();
            missing.paths.insert(path);
            let files = components.get(&**component).map(|found| &found.databases);
            let same = files.into_iter().flatten().filter(|file| file.path == *path);
            missing.plain.extend(same.map(|file| &file.content));
        }
        FileSource::Archive { archives, arch } => {
            let set = sets.iter().find(|set| set.name == *archives);
            for (id, binary) in set.iter().flat_map(|set| &set.binaries) {
                let kernels =
                    components.get(id.as_str()).into_iter().flat_map(|found| &found.kernels);
                let own = kernels.filter(|it| it.binary == *binary && it.target.base() == arch);
                let missing = by_component.entry(id).or_default();
                missing.kernels.extend(own.map(|kernel| &kernel.content));
            }
        }
        FileSource::Manifest { .. } | FileSource::Text(_) | FileSource::Changelog(_) => {}
    }
}
