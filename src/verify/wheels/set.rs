//! Sets of wheels: a host wheel with the device wheels that belong to it.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_base::formats::wheel::{Condition, Requirement};
use rockpack_base::gfx::{BaseArch, arch_of_sanitized, archs_in, members_of_arch_family};

use crate::verify::checks::set_archives::is_in_kernel_folder;
use crate::verify::own::facts::Class;
use crate::verify::own::installed::Side;
use crate::verify::own::wheel::Wheel;

/// The start of the names of extras that bring device wheels.
pub(super) const EXTRA: &str = "device-";

/// The extra that brings the device wheels of all archs.
pub(super) const ALL: &str = "device-all";

/// The part of a device wheel's name between the distribution and the group.
pub(super) const DEVICE: &str = "-device-";

/// A host wheel with its device wheels.
pub(super) struct WheelSet<'a> {
    pub(super) host: &'a Wheel,
    pub(super) devices: Vec<&'a Wheel>,
}

impl<'a> WheelSet<'a> {
    /// All wheels, the host first.
    pub(super) fn wheels(&self) -> impl Iterator<Item = &'a Wheel> + '_ {
        std::iter::once(self.host).chain(self.devices.iter().copied())
    }
}

/// All wheels, by what they belong to.
#[derive(Default)]
pub(super) struct Sets<'a> {
    pub(super) sets: Vec<WheelSet<'a>>,
    /// Device wheels without a host, each with the name of that.
    pub(super) alone: Vec<(&'a Wheel, String)>,
    /// Fat wheels, and those without device code.
    pub(super) others: Vec<&'a Wheel>,
}

/// The part of a wheel in a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Host,
    Device,
    Other,
}

/// Says of each wheel what may be in it, by what it and the others say.
pub(super) fn take_sides(wheels: &mut [Wheel]) {
    let brought: Vec<String> = wheels.iter().flat_map(brought).collect();
    let companions: Vec<_> = wheels.iter().flat_map(companions).collect();
    for wheel in wheels {
        let role = role(wheel, &brought);
        wheel.installed.side = Some(match role {
            Role::Host => Side::Host,
            Role::Device => Side::Kernels,
            Role::Other => Side::Both,
        });
        if role == Role::Device {
            wheel.installed.stated_archs = archs(&wheel.installed.name);
            let own = companions.iter().filter(|(name, _)| *name == wheel.installed.name);
            wheel.installed.comes_with = own.flat_map(|(_, names)| names.clone()).collect();
        }
    }
}

/// The distributions that the device extras of a wheel need.
fn brought(wheel: &Wheel) -> Vec<String> {
    let of_device = requirements(wheel).filter(|requirement| {
        matches!(&requirement.condition, Condition::Extra(extra) if extra.starts_with(EXTRA))
    });
    of_device.map(|requirement| requirement.project).collect()
}

fn role(wheel: &Wheel, brought: &[String]) -> Role {
    let has = |is_it: fn(&str, &Class) -> bool| {
        wheel.installed.files().any(|(path, facts)| is_it(path, &facts.class))
    };
    let name = &wheel.installed.name;
    if device_extras(wheel).next().is_some() {
        return Role::Host;
    }
    if brought.contains(name) || name.contains(DEVICE) && required_host(wheel).is_some() {
        return Role::Device;
    }
    if has(|_, class| matches!(class, Class::Host(host) if host.claims_to_be_transformed())) {
        return Role::Host;
    }
    match has(|path, class| class.claims_to_be_archive() && is_in_kernel_folder(path)) {
        true => Role::Device,
        false => Role::Other,
    }
}

/// The extras of a wheel that bring device wheels, by their normalized names.
pub(super) fn device_extras(wheel: &Wheel) -> impl Iterator<Item = String> + '_ {
    wheel.metadata.extras().filter(|extra| extra.starts_with(EXTRA))
}

/// The requirements of a wheel.
pub(super) fn requirements(wheel: &Wheel) -> impl Iterator<Item = Requirement> + '_ {
    wheel.metadata.all("Requires-Dist").filter_map(|line| Requirement::parse(line).ok())
}

/// The first distribution that a wheel always needs in one version.
fn required_host(wheel: &Wheel) -> Option<String> {
    let mut always =
        requirements(wheel).filter(|it| it.condition == Condition::Always && it.exact().is_some());
    always.next().map(|requirement| requirement.project)
}

/// The archs that a device wheel says in its name that it is for; none if it says so in words that are
/// those of a configuration.
fn archs(name: &str) -> Option<Vec<String>> {
    let (_, group) = name.split_once(DEVICE)?;
    let names =
        |archs: Vec<BaseArch>| -> Vec<String> { archs.iter().map(ToString::to_string).collect() };
    if let Some(arch) = arch_of_sanitized(&group.replace('-', "_")) {
        // A wheel for a processor may have the variant for strict checks of it.
        return Some(vec![arch.to_string(), format!("{arch}-strict")]);
    }
    let several = names(archs_in(group));
    let all =
        if several.join("-") == group { several } else { names(members_of_arch_family(group)) };
    (!all.is_empty()).then_some(all)
}

/// Distributions that come with each device wheel of a host, by every extra that brings it.
fn companions(host: &Wheel) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (_, requirements) in by_extra(host).into_iter().filter(|(extra, _)| extra != ALL) {
        let names: BTreeSet<String> = requirements.into_iter().map(|it| it.project).collect();
        for name in &names {
            match all.get_mut(name) {
                Some(known) => known.retain(|other| names.contains(other)),
                None => drop(all.insert(name.clone(), names.clone())),
            }
        }
    }
    all
}

impl<'a> Sets<'a> {
    /// Puts together `wheels`, which have sides.
    pub(super) fn of(wheels: &'a [Wheel]) -> Self {
        let mut sets = Self::default();
        let with_side = |side| wheels.iter().filter(move |it| it.installed.side == Some(side));
        sets.sets =
            with_side(Side::Host).map(|host| WheelSet { host, devices: Vec::new() }).collect();
        sets.others = with_side(Side::Both).collect();
        for device in with_side(Side::Kernels) {
            match sets.host_of(device) {
                Some(set) => set.devices.push(device),
                None => {
                    let stem = device.installed.name.split_once(DEVICE).map(|(stem, _)| stem);
                    let named = stem.unwrap_or(&device.installed.name).to_owned();
                    let host = required_host(device).unwrap_or(named);
                    sets.alone.push((device, host));
                }
            }
        }
        sets
    }

    /// The set whose host a device wheel requires, or that brings it; of several, the one that fits best.
    fn host_of(&mut self, device: &Wheel) -> Option<&mut WheelSet<'a>> {
        let required = required_host(device);
        let name = &device.installed.name;
        let fits = |set: &&mut WheelSet<'a>| {
            let host = set.host.installed.name.as_str();
            let is_named = name.split_once(DEVICE).is_some_and(|(stem, _)| stem == host);
            required.as_deref() == Some(host) || is_named || brought(set.host).contains(name)
        };
        let likeness = |set: &&mut WheelSet<'a>| {
            let (host, own) = (&set.host.name, &device.name);
            let is_version = host.parsed_version() == own.parsed_version();
            let is_tagged = set.host.tags() == device.tags();
            (is_version, is_tagged, host.build == own.build)
        };
        self.sets.iter_mut().filter(fits).max_by_key(likeness)
    }
}

/// The requirements of the device extras of a host, by extra.
pub(super) fn by_extra(host: &Wheel) -> BTreeMap<String, Vec<Requirement>> {
    let mut found: BTreeMap<String, Vec<Requirement>> = BTreeMap::new();
    for requirement in requirements(host) {
        if let Condition::Extra(extra) = &requirement.condition
            && extra.starts_with(EXTRA)
        {
            found.entry(extra.clone()).or_default().push(requirement);
        }
    }
    found
}
