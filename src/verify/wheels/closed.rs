//! Whether the extras of a host wheel and the device wheels beside it are those of each other.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use rockpack_base::formats::wheel::{Condition, Requirement, Version};

use super::set::{ALL, DEVICE, EXTRA, WheelSet, by_extra, device_extras, requirements};
use crate::verify::own::wheel::{Wheel, spaced};
use crate::verify::problem::{ExtraLack, HeaderDifference, PinFault, Problem, Problems};

/// The field with the Pythons that a wheel is for.
const PYTHONS: &str = "Requires-Python";

/// Checks extras, pins, tags and the folder that is installed into.
pub(super) fn check(set: &WheelSet<'_>, problems: &mut Problems) {
    check_extras(set, problems);
    for device in &set.devices {
        check_device(set.host, device, problems);
    }
}

/// Every extra has what it needs, and every device wheel an extra.
fn check_extras(set: &WheelSet<'_>, problems: &mut Problems) {
    let host = &set.host.installed;
    let by_extra = by_extra(set.host);
    let offered: BTreeSet<String> = device_extras(set.host).collect();
    let there: BTreeSet<&str> = set.devices.iter().map(|it| it.installed.name.as_str()).collect();
    let mut add = |wheel: &Wheel, lack| {
        problems.add(Problem::WheelExtra { wheel: wheel.installed.file.clone(), lack });
    };
    for extra in offered.iter().filter(|extra| !by_extra.contains_key(*extra)) {
        add(set.host, ExtraLack::Nothing { extra: extra.clone() });
    }
    for (extra, needed) in &by_extra {
        for requirement in needed {
            let (extra, wheel) = (extra.clone(), requirement.project.clone());
            if !offered.contains(&extra) {
                add(set.host, ExtraLack::NotOffered { extra, wheel });
            } else if !there.contains(wheel.as_str()) {
                add(set.host, ExtraLack::WheelAbsent { extra, wheel });
            }
        }
    }
    let brings = |requirements: &Vec<Requirement>, device: &Wheel| {
        requirements.iter().any(|requirement| requirement.project == device.installed.name)
    };
    for device in &set.devices {
        let name = host.file.clone();
        let mut others = by_extra.iter().filter(|(extra, _)| *extra != ALL);
        if !others.any(|(_, requirements)| brings(requirements, device)) {
            add(device, ExtraLack::NotBrought { host: name.clone() });
        }
        if !by_extra.get(ALL).is_some_and(|requirements| brings(requirements, device)) {
            add(device, ExtraLack::NotInAll { extra: ALL.to_owned(), host: name.clone() });
        }
        let group = device.installed.name.split_once(DEVICE).map(|(_, group)| group);
        let own = group.map(|group| format!("{EXTRA}{group}"));
        if let Some(extra) = own.filter(|extra| offered.contains(extra))
            && !by_extra.get(&extra).is_some_and(|requirements| brings(requirements, device))
        {
            add(device, ExtraLack::NotOwn { extra, host: name });
        }
    }
    let always = requirements(set.host).filter(|it| it.condition == Condition::Always);
    for Requirement { project: wheel, .. } in
        always.filter(|it| there.contains(it.project.as_str()))
    {
        add(set.host, ExtraLack::WithoutExtra { wheel });
    }
    for requirement in by_extra.values().flatten() {
        check_pin(set.host, requirement, set.host.metadata.version(), problems);
    }
}

/// A device wheel is installed with its host and in no other way.
fn check_device(host: &Wheel, device: &Wheel, problems: &mut Problems) {
    let (wheel, name) = (device.installed.file.clone(), host.installed.file.clone());
    let own = requirements(device)
        .filter(|it| it.project == host.installed.name && it.condition == Condition::Always);
    let own: Vec<Requirement> = own.collect();
    for requirement in &own {
        check_pin(device, requirement, host.metadata.version(), problems);
    }
    if own.is_empty() {
        let fault = PinFault::Absent { host: host.installed.name.clone() };
        problems.add(Problem::WheelPin { wheel: wheel.clone(), fault });
    }
    let mut add = |difference| {
        problems.add(Problem::WheelHeaders { wheel: wheel.clone(), difference });
    };
    let (own, hosts) = (device.tags(), host.tags());
    if own != hosts {
        let (own, hosts) = (spaced(&own), spaced(&hosts));
        add(HeaderDifference::HostTags { host: name.clone(), own, hosts });
    }
    let own = device.headers.is_purelib();
    if own != host.headers.is_purelib() {
        add(HeaderDifference::Purelib { host: name.clone(), own });
    }
    let pythons = |wheel: &Wheel| wheel.metadata.get(PYTHONS).unwrap_or("any").to_owned();
    let (own, hosts) = (pythons(device), pythons(host));
    if own != hosts {
        add(HeaderDifference::Pythons { host: name, own, hosts });
    }
}

/// A requirement is of one version, and that is the host's. `== 1.0` would take `1.0+rocm7.1`, too.
fn check_pin(wheel: &Wheel, requirement: &Requirement, version: &str, problems: &mut Problems) {
    let pin = requirement.exact();
    if pin.is_none() || pin != Version::from_str(version).ok().as_ref() {
        let (required, pin) = (requirement.project.clone(), pin.map(ToString::to_string));
        let fault = PinFault::Other { wheel: required, pin, version: version.to_owned() };
        problems.add(Problem::WheelPin { wheel: wheel.installed.file.clone(), fault });
    }
}
