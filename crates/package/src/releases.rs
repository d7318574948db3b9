//! The releases of an index of wheels: the wheels of one project and version, and what they require of others.
//!
//! A *device release* requires exactly one version of another project, its host, which names its project
//! in an extra. It has no use without that host, and the host has no device code without it.

mod passed_over;

use std::collections::{BTreeMap, BTreeSet};

use rockpack_archive::python_index::WheelPackage;
use rockpack_archive::wheel::{Condition, Requirement, Tag, Version, WheelName};

use super::device_wheel::{EXTRA, group, is_named_after};
use rockpack_report::{ExtraGap, Findings, found};

pub struct Releases<'a>(BTreeMap<&'a str, BTreeMap<Version, Release<'a>>>);

#[derive(Default)]
struct Release<'a> {
    wheels: Vec<ReleaseWheel<'a>>,
}

struct ReleaseWheel<'a> {
    path: &'a String,
    file: &'a str,
    /// None of a source distribution, which installers build for any.
    tags: BTreeSet<Tag>,
    build: Option<String>,
    requires: Vec<Requirement>,
}

/// An extra that does not bring all that its GPU needs.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct IncompleteExtra {
    /// The release (`torch 2.13.0`), or the file name of a wheel.
    pub wheel: String,
    /// The extra; empty for a device wheel that requires its host.
    pub extra: String,
    /// The requirement, or the project.
    pub requires: String,
    pub gap: ExtraGap,
}

impl Release<'_> {
    fn requires(&self) -> impl Iterator<Item = &Requirement> {
        self.wheels.iter().flat_map(|wheel| &wheel.requires)
    }

    /// Whether installers that take `wheel` take some wheel of this release: all of them where a tag of `wheel`
    /// is for one Python, and some where it is for several.
    fn fits(&self, wheel: &ReleaseWheel<'_>) -> bool {
        let fits = |tag: &Tag| {
            let mut own = self.wheels.iter().flat_map(|own| &own.tags);
            own.any(|own| own.covers(tag) || !tag.is_of_one_python() && tag.covers(own))
        };
        self.wheels.iter().any(|own| own.tags.is_empty()) || wheel.tags.iter().all(fits)
    }

    /// The build numbers of wheels with the same tags, where there are several; `none` for a wheel without one.
    fn builds(&self) -> Option<Vec<String>> {
        let mut by_tags: BTreeMap<&BTreeSet<Tag>, BTreeSet<&str>> = BTreeMap::new();
        for wheel in &self.wheels {
            let builds = by_tags.entry(&wheel.tags).or_default();
            builds.insert(wheel.build.as_deref().unwrap_or("none"));
        }
        let several = by_tags.into_values().find(|builds| builds.len() > 1)?;
        Some(several.into_iter().map(str::to_owned).collect())
    }
}

type Name<'a> = (&'a str, &'a Version);

impl<'a> Releases<'a> {
    /// The releases of an index with these wheels, each with its path.
    pub fn of(wheels: impl IntoIterator<Item = (&'a String, &'a WheelPackage)>) -> Self {
        let mut releases = Self(BTreeMap::new());
        for (path, package) in wheels {
            // Wheels without a version or with another name were refused.
            let Ok(version) = package.version.parse() else { continue };
            let name = package.file.parse::<WheelName>().ok();
            if name.is_none() && !package.is_source() {
                continue;
            }
            let versions = releases.0.entry(&package.project).or_default();
            // Lines that pip does not understand either require nothing.
            let requires = package.requires.iter().filter_map(|line| Requirement::parse(line).ok());
            versions.entry(version).or_default().wheels.push(ReleaseWheel {
                path,
                file: &package.file,
                tags: name.iter().flat_map(WheelName::tags).collect(),
                build: name.and_then(|name| name.build),
                requires: requires.collect(),
            });
        }
        releases
    }

    /// Paths of the wheels that stay where the `keep` highest versions of each project do, and those that were given,
    /// with all releases that they require. Other device releases stay for their hosts, and for nothing else.
    pub fn kept(&self, keep: usize, is_given: impl Fn(&str) -> bool) -> BTreeSet<&'a String> {
        let mut next: Vec<Name<'_>> = Vec::new();
        for (project, versions) in &self.0 {
            let own = versions.iter().rev().filter(|(_, it)| !self.is_device(project, it));
            let given =
                versions.iter().filter(|(_, it)| it.wheels.iter().any(|it| is_given(it.path)));
            next.extend(own.take(keep).chain(given).map(|(version, _)| (*project, version)));
        }
        let mut kept: BTreeSet<Name<'_>> = BTreeSet::new();
        while let Some(name) = next.pop() {
            if kept.insert(name) {
                next.extend(self.required(name));
            }
        }
        let kept = kept.into_iter().filter_map(|name| self.get(name));
        kept.flat_map(|it| &it.wheels).map(|wheel| wheel.path).collect()
    }

    fn get(&self, (project, version): Name<'_>) -> Option<&Release<'a>> {
        self.0.get(project)?.get(version)
    }

    /// The releases that an installer would choose for what a release requires, whatever the extras are.
    fn required<'b>(&'b self, name: Name<'_>) -> impl Iterator<Item = Name<'b>> {
        let requires = self.get(name).into_iter().flat_map(Release::requires);
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
        let version = versions.keys().rev().find(|version| requirement.accepts(version))?;
        Some((project, version))
    }

    fn is_device(&self, project: &str, release: &Release<'_>) -> bool {
        let pins = release.requires().filter(|it| it.exact().is_some());
        let hosts = pins.filter_map(|pin| self.get(self.chosen(pin)?));
        let mut required = hosts.flat_map(Release::requires);
        required.any(|it| it.project == project && !it.condition.extras().is_empty())
    }

    /// Extras that require a device wheel in one version, and device wheels that require their host in one, which the
    /// index does not have, or not for all tags; and the gaps of releases. Other projects are on other indexes.
    pub fn incomplete_extras(&self) -> BTreeSet<IncompleteExtra> {
        let mut open = BTreeSet::new();
        for (project, versions) in &self.0 {
            for (version, release) in versions {
                for wheel in release.wheels.iter().filter(|wheel| !wheel.tags.is_empty()) {
                    self.add_gaps(project, wheel, &mut open);
                    for requirement in &wheel.requires {
                        let extra = requirement.condition.extras().first();
                        let is_judged = extra.is_some()
                            || requirement.condition == Condition::Always
                                && is_named_after(project, &requirement.project);
                        if !is_judged || !self.lacks_wheel(requirement, version, wheel) {
                            continue;
                        }
                        let wheel = match self.chosen(requirement) {
                            None => format!("{project} {version}"),
                            Some(_) => wheel.file.to_owned(),
                        };
                        let requires = format!("{} {}", requirement.project, requirement.versions);
                        let (extra, gap) = (extra.cloned().unwrap_or_default(), ExtraGap::Absent);
                        open.insert(IncompleteExtra { wheel, extra, requires, gap });
                    }
                }
            }
        }
        open
    }

    /// Whether the index lacks a device wheel, or the host of one, that a wheel of `own` version requires: a version of
    /// a project that it has in others, or one as its own; or has it for other tags alone.
    fn lacks_wheel(
        &self,
        requirement: &Requirement,
        own: &Version,
        wheel: &ReleaseWheel<'_>,
    ) -> bool {
        let Some(exact) = requirement.exact() else { return false };
        let mut extras = requirement.condition.extras().iter();
        let is_host = requirement.condition == Condition::Always;
        let is_named = is_host || extras.any(|extra| extra.starts_with(EXTRA));
        if !is_named && !self.has_device_release(&requirement.project) {
            return false;
        }
        let is_here = self.0.contains_key(requirement.project.as_str())
            || exact == own && requirement.extras.is_empty();
        match self.chosen(requirement).and_then(|name| self.get(name)) {
            // A marker may keep it from other Pythons.
            Some(_) if matches!(requirement.condition, Condition::Marker(_)) => false,
            Some(release) => is_here && !release.fits(wheel),
            None => is_here,
        }
    }

    /// Adds the gaps of the extras of a wheel of `project`, and of a device wheel that is asked for by its name.
    fn add_gaps(
        &self,
        project: &str,
        wheel: &ReleaseWheel<'_>,
        open: &mut BTreeSet<IncompleteExtra>,
    ) {
        let requires: Vec<&Requirement> = wheel.requires.iter().collect();
        let own = device_extras(wheel.requires.iter());
        let mut add = |gap, extra: &str, requires: &str| {
            let (extra, requires) = (extra.to_owned(), requires.to_owned());
            open.insert(IncompleteExtra { wheel: wheel.file.to_owned(), extra, requires, gap });
        };
        let is_named_for = |extra: &str| match (group(project), extra.strip_prefix(EXTRA)) {
            (None, Some(label)) => project.ends_with(&format!("-{label}")),
            (own, label) => own == label,
        };
        for needed in wheel.requires.iter().filter(|it| it.project != project) {
            let chosen = self.chosen_among(needed, &requires);
            let Some(release) = chosen.and_then(|name| self.get(name)) else { continue };
            // What sources require is known only where they are built.
            if release.wheels.iter().all(|wheel| wheel.tags.is_empty()) {
                continue;
            }
            let offered = device_extras(release.requires());
            let asked = needed.extras.iter().filter(|extra| extra.starts_with(EXTRA));
            for extra in asked.filter(|extra| !offered.contains(extra.as_str())) {
                add(ExtraGap::NotOffered, extra, &needed.project);
            }
            let is_always = needed.condition.extras().is_empty();
            let is_tied = |it: &&str| is_always && (own.contains(it) || is_named_for(it));
            for extra in offered.into_iter().filter(is_tied) {
                let all = self.brought(release.requires().collect(), extra);
                let is_host = own.contains(extra);
                let brought = self.brought(requires.clone(), if is_host { extra } else { "" });
                let others = all.difference(&brought).filter(|it| **it != project);
                // What else an extra brings is no code for a GPU.
                for other in others.filter(|it| self.has_device_release(it)) {
                    match is_host {
                        true => add(ExtraGap::NotBrought, extra, &needed.project),
                        false if all.contains(project) => add(ExtraGap::NotByName, extra, other),
                        false => {}
                    }
                }
            }
        }
    }

    /// The projects that a wheel with the requirements `all` brings by `extra`, or without one if it is empty. Markers
    /// about the environment are ignored.
    fn brought<'b>(&'b self, all: Vec<&'b Requirement>, extra: &str) -> BTreeSet<&'b str> {
        let asked = [extra.to_owned()];
        let mut open: Vec<(Vec<&Requirement>, &[String])> = vec![(all, &asked[..])];
        let (mut brought, mut seen) = (BTreeSet::new(), BTreeSet::new());
        while let Some((all, asked)) = open.pop() {
            let applies = |it: &&Requirement| {
                let extras = it.condition.extras();
                extras.is_empty() || extras.iter().any(|extra| asked.contains(extra))
            };
            for it in all.iter().copied().filter(applies) {
                brought.insert(it.project.as_str());
                if let Some(name) = self.chosen_among(it, &all)
                    && seen.insert((name, &it.extras))
                {
                    let next = self.get(name).into_iter().flat_map(Release::requires);
                    open.push((next.collect(), it.extras.as_slice()));
                }
            }
        }
        brought
    }

    /// The release that installers choose for a requirement: one of `all` without an extra decides the version.
    fn chosen_among(&self, needed: &Requirement, all: &[&Requirement]) -> Option<Name<'_>> {
        let mut always = all.iter().filter(|it| it.condition.extras().is_empty());
        self.chosen(always.find(|it| it.project == needed.project).copied().unwrap_or(needed))
    }

    /// Findings about releases of hosts and device wheels with several builds. A host and its device wheels are
    /// tied by their version, which builds do not change: an installer may take them from different ones.
    pub fn mixed_builds(&self) -> Findings {
        let mut findings = Findings::default();
        for (project, versions) in &self.0 {
            for (version, release) in versions {
                if let Some(builds) = release.builds().filter(|_| self.is_tied(project, release)) {
                    let wheel = format!("{project} {version}");
                    findings.add(found::WheelBuildsMixed { wheel, builds });
                }
            }
        }
        findings
    }

    /// Whether a release is a device release, or a host that requires one in an extra.
    fn is_tied(&self, project: &str, release: &Release<'_>) -> bool {
        let mut extras = release.requires().filter(|it| !it.condition.extras().is_empty());
        self.is_device(project, release)
            || extras.any(|it| {
                let device = self.chosen(it).and_then(|name| self.get(name));
                it.exact().is_some() && device.is_some_and(|own| self.is_device(&it.project, own))
            })
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

    fn has_device_release(&self, project: &str) -> bool {
        let releases = self.0.get(project).into_iter().flat_map(BTreeMap::values);
        releases.into_iter().any(|release| self.is_device(project, release))
    }

    /// Adds `start` after all projects that it requires, if they were not visited before (depth-first).
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
        let requires = releases.flat_map(Release::requires);
        let edges = requires.filter_map(|it| {
            let (project, _) = self.0.get_key_value(it.project.as_str())?;
            Some((!it.condition.extras().is_empty(), *project))
        });
        edges.collect()
    }
}

/// The extras for GPUs on which requirements depend that are for one version, or for such an extra of a project.
fn device_extras<'a>(requires: impl Iterator<Item = &'a Requirement>) -> BTreeSet<&'a str> {
    let is_asked = |it: &Requirement| it.extras.iter().any(|extra| extra.starts_with(EXTRA));
    let own = requires.filter(|it| it.exact().is_some() || is_asked(it));
    let extras = own.flat_map(|it| it.condition.extras()).map(String::as_str);
    extras.filter(|extra| extra.starts_with(EXTRA)).collect()
}
