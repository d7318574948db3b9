//! Groups wheels into sets of a host wheel and its device wheels.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use rockpack_archive::wheel::{Condition, Requirement, Tag, Version};
use rockpack_core::gfx::archs_of_label;

use crate::checks::set_archives::is_in_kernel_folder;
use crate::readers::facts::{Claimed, Class, HostFacts};
use crate::readers::installed::{ContentRole, PackageContents};
use crate::readers::wheel::Wheel;
use rockpack_package::device_wheel::{ALL, DEVICE, EXTRA, group, is_named_after};

pub(super) struct WheelSet<'a> {
    pub(super) host: &'a Wheel,
    pub(super) devices: Vec<&'a Wheel>,
}

impl<'a> WheelSet<'a> {
    pub(super) fn wheels(&self) -> impl Iterator<Item = &'a Wheel> + '_ {
        std::iter::once(self.host).chain(self.devices.iter().copied())
    }
}

#[derive(Default)]
pub(super) struct WheelSets<'a> {
    pub(super) sets: Vec<WheelSet<'a>>,
    /// Device wheels without a host, with the name of the host.
    pub(super) without_host: Vec<(&'a Wheel, String)>,
    /// Fat wheels, and wheels without device code.
    pub(super) others: Vec<&'a Wheel>,
    /// Normalized names of unreadable wheels.
    pub(super) unread: BTreeSet<String>,
    /// Device wheel → projects of its sets; empty if it is in `without_host`.
    pub(super) hosts_of: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// Device wheel → projects whose extras require it.
    pub(super) bringing: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// Project → version → positions of its sets.
    by_name: BTreeMap<&'a str, BTreeMap<Option<Version>, Vec<usize>>>,
}

/// Wheel → distributions that it always requires in exactly one version.
type Pins = BTreeMap<String, BTreeSet<String>>;

/// Determines by the metadata of all wheels whether each is a host or a device wheel, and so which files it may have.
pub(super) fn assign_roles(wheels: &mut [Wheel]) {
    let mut pins = Pins::new();
    for wheel in wheels.iter() {
        pins.entry(wheel.installed.name.clone()).or_default().extend(pinned(wheel));
    }
    wheels.par_iter_mut().for_each(|wheel| wheel.extras = device_extras(wheel, &pins));
    let brought: BTreeSet<String> = wheels.iter().flat_map(brought).map(str::to_owned).collect();
    let mut companions = BTreeMap::<String, BTreeSet<String>>::new();
    for (name, others) in wheels.iter().flat_map(companions_of) {
        companions.entry(name).or_default().extend(others);
    }
    for wheel in wheels {
        let role = role(wheel, &brought);
        wheel.installed.role = Some(role);
        if role == ContentRole::Kernels {
            wheel.installed.stated_archs = stated_archs(wheel);
            let own = companions.get(&wheel.installed.name);
            wheel.installed.comes_with = own.cloned().unwrap_or_default();
        }
    }
}

/// Whether a device wheel may have code for `arch`: a file names the arch, or has a format without arch names.
fn may_be_for(wheel: &Wheel, arch: &str) -> bool {
    let mut files = wheel.installed.files().filter(|(path, _)| !wheel.texts.contains_key(*path));
    files.any(|(_, facts)| match &facts.class {
        Class::Index(index) => index.archs.iter().any(|own| own.as_str() == arch),
        _ => true,
    })
}

/// Extra → device wheels that it requires. Other wheels may have extras `device-…` as well, and such extras may require
/// other packages.
fn device_extras(wheel: &Wheel, pins: &Pins) -> BTreeMap<String, Vec<Requirement>> {
    let own = &wheel.installed.name;
    let (is_host, version) = (is_transformed(wheel), wheel.name.parsed_version());
    let (mut found, mut named) = (BTreeMap::<_, Vec<_>>::new(), Vec::new());
    for requirement in requirements(wheel) {
        let mut extras = requirement.condition.extras().iter();
        let extra = extras.find_map(|extra| Some((extra, extra.strip_prefix(EXTRA)?)));
        let Some((extra, label)) = extra else { continue };
        let project = &requirement.project;
        let is_of_label =
            project.strip_suffix(label).is_some_and(|rest| rest.is_empty() || rest.ends_with('-'));
        let is_device = is_named_after(project, own)
            || is_of_label && !archs_of_label(label).is_empty()
            || is_host && requirement.exact() == version.as_ref()
            || pins.get(project).is_some_and(|pins| pins.contains(own));
        let asks_host = requirement.extras.iter().any(|extra| extra.starts_with(EXTRA));
        if project == own {
            named.push((extra.clone(), requirement.extras));
        } else if is_device && !asks_host {
            found.entry(extra.clone()).or_default().push(requirement);
        }
    }
    // An extra may require other extras of the same wheel: `demo[device-gfx942]; extra == "device-all"`.
    for (extra, others) in named {
        let others = others.iter().filter(|other| **other != extra);
        let brought: Vec<Requirement> =
            others.filter_map(|other| found.get(other)).flatten().cloned().collect();
        if !brought.is_empty() {
            found.entry(extra).or_default().extend(brought);
        }
    }
    found
}

fn brought(wheel: &Wheel) -> impl Iterator<Item = &str> {
    wheel.extras.values().flatten().map(|requirement| requirement.project.as_str())
}

fn role(wheel: &Wheel, brought: &BTreeSet<String>) -> ContentRole {
    if !wheel.extras.is_empty() {
        return ContentRole::Host;
    }
    let name = &wheel.installed.name;
    if brought.contains(name) || pinned(wheel).any(|host| is_named_after(name, &host)) {
        return ContentRole::Kernels;
    }
    if is_transformed(wheel) {
        return ContentRole::Host;
    }
    let has_archive = wheel
        .installed
        .files()
        .any(|(path, facts)| facts.class.claims_to_be_archive() && is_in_kernel_folder(path));
    if has_archive && (group(&wheel.installed.name).is_some() || pinned(wheel).next().is_some()) {
        return ContentRole::Kernels;
    }
    let is_fat = wheel.installed.files().any(|(_, facts)| match &facts.class {
        Class::Host(host) => host.device_code.is_some(),
        Class::CodeObject(_) | Class::Bundle(_) | Class::Broken(Claimed::Device, _) => true,
        class => class.claims_to_be_archive(),
    });
    if is_fat && !wheel.is_copy { ContentRole::Both } else { ContentRole::Unsplit }
}

/// Whether a binary of the wheel is transformed.
fn is_transformed(wheel: &Wheel) -> bool {
    let mut hosts = wheel.installed.files().filter_map(|(_, facts)| facts.host());
    hosts.any(HostFacts::claims_to_be_transformed)
}

pub(super) fn requirements(wheel: &Wheel) -> impl Iterator<Item = Requirement> + '_ {
    wheel.metadata.all("Requires-Dist").filter_map(|line| Requirement::parse(line).ok())
}

/// The distributions that a wheel always requires in exactly one version.
fn pinned(wheel: &Wheel) -> impl Iterator<Item = String> + '_ {
    let always =
        requirements(wheel).filter(|it| it.condition == Condition::Always && it.exact().is_some());
    always.map(|requirement| requirement.project)
}

/// The archs in the name of a device wheel; `None` if the name has a configured group.
fn stated_archs(wheel: &Wheel) -> Option<Vec<String>> {
    let named = archs_of_label(group(&wheel.installed.name)?);
    // A wheel for a processor may contain its `-strict` variant.
    let all = named.iter().flat_map(|arch| [arch.to_string(), format!("{arch}-strict")]);
    (!named.is_empty()).then(|| all.filter(|arch| may_be_for(wheel, arch)).collect())
}

/// Device wheel of a host → distributions that every extra installs together with it.
fn companions_of(host: &Wheel) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (_, requirements) in host.extras.iter().filter(|(extra, _)| *extra != ALL) {
        let names: BTreeSet<String> = requirements.iter().map(|it| it.project.clone()).collect();
        for name in &names {
            match all.get_mut(name) {
                Some(known) => known.retain(|other| names.contains(other)),
                None => drop(all.insert(name.clone(), names.clone())),
            }
        }
    }
    all
}

impl<'a> WheelSets<'a> {
    pub(super) fn of(wheels: &'a [Wheel]) -> Self {
        let others =
            with_role(wheels, ContentRole::Both).chain(with_role(wheels, ContentRole::Unsplit));
        let mut sets = Self { others: others.collect(), ..Self::default() };
        for (at, host) in with_role(wheels, ContentRole::Host).enumerate() {
            let name = host.installed.name.as_str();
            let versions = sets.by_name.entry(name).or_default();
            versions.entry(host.name.parsed_version()).or_default().push(at);
            for device in brought(host) {
                sets.bringing.entry(device).or_default().insert(name);
            }
            sets.sets.push(WheelSet { host, devices: Vec::new() });
        }
        for device in with_role(wheels, ContentRole::Kernels) {
            let name = device.installed.name.as_str();
            let hosts = sets.positions_for(device);
            sets.hosts_of.entry(name).or_default();
            for at in &hosts {
                let Some(set) = sets.sets.get_mut(*at) else { continue };
                sets.hosts_of.entry(name).or_default().insert(&set.host.installed.name);
                set.devices.push(device);
            }
            if hosts.is_empty() {
                let stem = name.rsplit_once(DEVICE).map_or(name, |(stem, _)| stem);
                let host = pinned(device).next().unwrap_or_else(|| stem.to_owned());
                sets.without_host.push((device, host));
            }
        }
        sets.prefer_exact_tags();
        sets
    }

    /// Removes device wheels for several Pythons from sets that have one with exactly the tags of the host, which pip
    /// prefers.
    fn prefer_exact_tags(&mut self) {
        let exact = |set: &WheelSet<'a>| -> BTreeSet<&'a str> {
            let own = set.devices.iter().filter(|device| device.tags() == set.host.tags());
            own.map(|device| &*device.installed.name).collect()
        };
        let needed = self.sets.iter().flat_map(|set| {
            let own = exact(set);
            set.devices.iter().filter(move |device| !own.contains(&*device.installed.name))
        });
        let needed: BTreeSet<&str> = needed.map(|device| &*device.installed.file).collect();
        for set in &mut self.sets {
            let (own, tags) = (exact(set), set.host.tags());
            set.devices.retain(|device| {
                let PackageContents { file, name, .. } = &device.installed;
                !own.contains(&**name) || !needed.contains(&**file) || device.tags() == tags
            });
        }
    }

    /// The positions of the sets of a device wheel: of the hosts that it requires, that its name contains, or that
    /// require it; among several the best match. It may be in several sets, each for another Python.
    fn positions_for(&self, device: &Wheel) -> Vec<usize> {
        let pins: BTreeSet<String> = pinned(device).collect();
        let name = device.installed.name.as_str();
        let stem = name.rsplit_once(DEVICE).map(|(stem, _)| stem);
        let mut names: Vec<&str> = pins.iter().map(String::as_str).collect();
        names.retain(|name| self.by_name.contains_key(name));
        if names.is_empty() {
            names.extend(stem.filter(|stem| self.by_name.contains_key(stem)));
        }
        if names.is_empty() && pins.is_empty() {
            names.extend(self.bringing.get(name).into_iter().flatten());
        }
        let version = device.name.parsed_version();
        let candidates = names.into_iter().flat_map(|name| self.of_version(name, version.as_ref()));
        let ranked =
            candidates.filter_map(|at| Some((match_rank(self.sets.get(at)?.host, device), at)));
        // A run may lack some wheels of a copied set.
        let own = ranked.filter(|([_, is_version, is_tagged, _], _)| {
            !device.is_copy || *is_version && *is_tagged
        });
        let own: Vec<([bool; 4], usize)> = own.collect();
        let Some((most, last)) = own.iter().max() else { return Vec::new() };
        let [_, is_version, is_tagged, is_build] = most;
        let is_shared = *is_version && *is_tagged && *is_build;
        let alike =
            own.iter().filter(|(match_rank, at)| match_rank == most && (is_shared || at == last));
        alike.map(|(_, at)| *at).collect()
    }

    /// The positions of the hosts of a project with the version; of all its hosts if none has it.
    fn of_version(&self, project: &str, version: Option<&Version>) -> Vec<usize> {
        let Some(versions) = self.by_name.get(project) else { return Vec::new() };
        let exact = versions.get(&version.cloned());
        exact.cloned().unwrap_or_else(|| versions.values().flatten().copied().collect())
    }
}

fn with_role(wheels: &[Wheel], role: ContentRole) -> impl Iterator<Item = &Wheel> {
    wheels.iter().filter(move |wheel| wheel.installed.role == Some(role))
}

/// Ranks a host for a device wheel by extras, version, tags and build.
fn match_rank(host: &Wheel, device: &Wheel) -> [bool; 4] {
    let brings = brought(host).any(|name| name == device.installed.name);
    let is_version = host.name.parsed_version() == device.name.parsed_version();
    [brings, is_version, serves(device, host), host.name.build == device.name.build]
}

/// Whether a device wheel is for the platforms of its host, and for all its Pythons.
pub(super) fn serves(device: &Wheel, host: &Wheel) -> bool {
    let platforms = |wheel: &Wheel| BTreeSet::from_iter(wheel.name.platforms.clone());
    let own = device.name.tags();
    let is_for = |tag: &Tag| own.iter().any(|own| own.platform == tag.platform && own.covers(tag));
    platforms(device) == platforms(host) && host.name.tags().iter().all(is_for)
}
