//! The releases of an index of wheels: the wheels of one project and version, and what they require of
//! other projects of the index.
//!
//! A *device release* requires exactly one version of another project, its host, which names its project
//! in an extra. It has no use without that host, and the host has no device code without it.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_base::formats::wheel::{Requirement, Version};

use super::state::{PoolRecord, PoolRecords};
use crate::package::indexed::Facts;
use crate::report::{Finding, Findings};

/// Releases by project and version.
pub(super) struct Releases<'a>(BTreeMap<&'a str, BTreeMap<Version, Release<'a>>>);

/// The wheels of one project and version.
#[derive(Default)]
struct Release<'a> {
    paths: Vec<&'a String>,
    requires: Vec<Requirement>,
}

/// A release by its project and version.
type Name<'a> = (&'a str, &'a Version);

impl<'a> Releases<'a> {
    /// The releases of an index with these wheels.
    pub fn of(records: impl IntoIterator<Item = (&'a String, &'a PoolRecord)>) -> Self {
        let mut releases = Self(BTreeMap::new());
        for (path, record) in records {
            let Facts::Wheel(package) = &record.indexed.facts else { continue };
            // A wheel of another version was refused.
            let Ok(version) = package.version.parse() else { continue };
            let versions = releases.0.entry(&package.project).or_default();
            let release = versions.entry(version).or_default();
            release.paths.push(path);
            // Lines that pip does not understand either require nothing.
            let requires = package.requires.iter().filter_map(|line| Requirement::parse(line).ok());
            release.requires.extend(requires);
        }
        releases
    }

    /// Paths of the wheels that stay where the `keep` highest versions of each project do, with all releases
    /// that they require. Device releases stay for their hosts, and for nothing else.
    pub fn kept(&self, keep: usize) -> BTreeSet<&'a String> {
        let mut next: Vec<Name<'_>> = Vec::new();
        for (project, versions) in &self.0 {
            let own = versions.iter().rev().filter(|(_, it)| !self.is_device(project, it));
            next.extend(own.take(keep).map(|(version, _)| (*project, version)));
        }
        let mut kept: BTreeSet<Name<'_>> = BTreeSet::new();
        while let Some(name) = next.pop() {
            if kept.insert(name) {
                next.extend(self.required(name));
            }
        }
        kept.into_iter()
            .filter_map(|name| self.get(name))
            .flat_map(|it| &it.paths)
            .copied()
            .collect()
    }

    fn get(&self, (project, version): Name<'_>) -> Option<&Release<'a>> {
        self.0.get(project)?.get(version)
    }

    /// The releases that an installer would choose for what a release requires, whatever the extras are.
    fn required<'b>(&'b self, name: Name<'_>) -> impl Iterator<Item = Name<'b>> {
        let requires = self.get(name).into_iter().flat_map(|release| &release.requires);
        requires.filter_map(|requirement| self.chosen(requirement))
    }

    /// The version that a requirement names, or else the highest that it takes: `== 1.0` takes `1.0+rocm7.1` as
    /// well, and means the wheels of one run.
    fn chosen(&self, requirement: &Requirement) -> Option<Name<'_>> {
        let (project, versions) = self.0.get_key_value(requirement.project.as_str())?;
        let named = requirement.exact().and_then(|version| versions.get_key_value(version));
        if let Some((version, _)) = named {
            return Some((project, version));
        }
        let version = versions.keys().rev().find(|version| requirement.takes(version))?;
        Some((project, version))
    }

    fn is_device(&self, project: &str, release: &Release<'_>) -> bool {
        let pins = release.requires.iter().filter(|it| it.exact().is_some());
        let hosts = pins.filter_map(|pin| self.get(self.chosen(pin)?));
        let names = |it: &Requirement| it.project == project && !it.condition.extras().is_empty();
        hosts.flat_map(|host| &host.requires).any(names)
    }

    /// Findings about extras that require one version of a project, as those for device wheels do, which the
    /// index does not have. Other projects than device wheels are on other indexes.
    pub fn open_extras(&self) -> Findings {
        let mut findings = Findings::default();
        for (project, versions) in &self.0 {
            for (version, release) in versions {
                let open = release.requires.iter().filter(|it| self.is_open(it, version));
                for (extra, requirement) in
                    open.filter_map(|it| Some((it.condition.extras().first()?, it)))
                {
                    findings.add(Finding::WheelExtraOpen {
                        wheel: format!("{project} {version}"),
                        extra: extra.clone(),
                        requires: format!("{} {}", requirement.project, requirement.versions),
                    });
                }
            }
        }
        findings
    }

    /// Whether the index lacks what a release of `own` version requires: a version of a project that it has
    /// in others, or one as its own.
    fn is_open(&self, requirement: &Requirement, own: &Version) -> bool {
        let Some(exact) = requirement.exact() else { return false };
        let is_here = self.0.contains_key(requirement.project.as_str()) || exact == own;
        is_here && self.chosen(requirement).is_none()
    }

    /// The projects: those of device wheels first, then each after those that it requires. Where they require each
    /// other, those that are named in an extra come first.
    pub fn in_order(&self) -> Vec<&'a str> {
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        let is_host = |project: &&str| self.edges(project).iter().any(|(in_extra, _)| *in_extra);
        let (hosts, others): (Vec<&str>, Vec<&str>) = self.0.keys().copied().partition(is_host);
        for start in hosts.into_iter().chain(others) {
            self.visit(start, &mut seen, &mut order);
        }
        // A device wheel may require another host's, whose cycle it is then met in.
        order.sort_by_key(|project| !self.has_device_release(project));
        order
    }

    /// Tells if some release of the project is a device release.
    fn has_device_release(&self, project: &str) -> bool {
        let releases = self.0.get(project).into_iter().flat_map(BTreeMap::values);
        releases.into_iter().any(|release| self.is_device(project, release))
    }

    /// Adds `start` behind all that it leads to and that was not seen yet.
    fn visit(&self, start: &'a str, seen: &mut BTreeSet<&'a str>, order: &mut Vec<&'a str>) {
        let mut open = Vec::new();
        if seen.insert(start) {
            open.push((start, self.edges(start)));
        }
        while let Some((project, edges)) = open.last_mut() {
            match edges.pop_last() {
                Some((_, next)) if seen.insert(next) => open.push((next, self.edges(next))),
                Some(_) => {}
                None => {
                    order.push(*project);
                    open.pop();
                }
            }
        }
    }

    /// Projects of the index that a project requires, and whether in an extra.
    fn edges(&self, project: &str) -> BTreeSet<(bool, &'a str)> {
        let releases = self.0.get(project).into_iter().flat_map(BTreeMap::values);
        let requires = releases.flat_map(|release| &release.requires);
        let edge = |it: &Requirement| {
            let (project, _) = self.0.get_key_value(it.project.as_str())?;
            Some((!it.condition.extras().is_empty(), *project))
        };
        requires.filter_map(edge).collect()
    }
}

/// The releases of these wheels.
pub(super) fn releases(records: &PoolRecords) -> Releases<'_> {
    Releases::of(records.iter().map(|(path, record)| (path, &**record)))
}

/// Paths of the wheels of `records` that do not stay.
pub(super) fn not_kept(records: &PoolRecords, keep: usize) -> BTreeSet<String> {
    let releases = releases(records);
    let kept = releases.kept(keep);
    records.keys().filter(|path| !kept.contains(path)).cloned().collect()
}
