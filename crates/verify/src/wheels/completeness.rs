//! Checks the extras of host wheels against device wheels, device wheels against their host, and paths that wheels of
//! several projects share.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;

use rockpack_archive::python_index::WheelPackage;
use rockpack_archive::wheel::{Condition, Requirement, Version, VersionSpecifiers};
use rockpack_core::gfx::archs_of_label;
use rockpack_package::device_wheel::{ALL, EXTRA, group};
use rockpack_package::releases::{IncompleteExtra, Releases};
use rockpack_report::ExtraGap;

use crate::checks::pairs;
use crate::problem::{OWNED_TWICE, Problem, Problems, SetFault};
use crate::readers::Sha;
use crate::readers::wheel::{Wheel, spaced};
use crate::wheels::set::{WheelSet, WheelSets, requirements, serves};

/// Checks that extras and device wheels install everything that a GPU needs, including device code of other hosts.
pub(super) fn check_gaps(wheels: &[Wheel], copies: &BTreeSet<&str>, problems: &mut Problems) {
    let package = |wheel: &Wheel| {
        let file = &wheel.installed.file;
        (file.clone(), WheelPackage::of(file, &wheel.metadata))
    };
    let packages: BTreeMap<String, WheelPackage> = wheels.iter().map(package).collect();
    let mut open = Releases::of(&packages).incomplete_extras();
    open.retain(|it| it.gap != ExtraGap::Absent && !copies.contains(&*it.wheel));
    for IncompleteExtra { wheel, extra, requires, gap } in open {
        let fault = SetFault::wrong(gap.describe(&extra, &requires));
        problems.add(Problem::WheelExtra { wheel, fault });
    }
}

fn add_extra_fault(wheel: &Wheel, reason: String, problems: &mut Problems) {
    let (wheel, fault) = (wheel.installed.file.clone(), SetFault::wrong(reason));
    problems.add(Problem::WheelExtra { wheel, fault });
}

fn offered(host: &Wheel) -> BTreeSet<String> {
    host.metadata.extras().filter(|extra| extra.starts_with(EXTRA)).collect()
}

/// Checks extras, pins, tags and the root of a set of `sets`: every extra installs its device wheels, and nothing else
/// does.
pub(super) fn check(set: &WheelSet<'_>, sets: &WheelSets<'_>, problems: &mut Problems) {
    let host = &set.host.installed;
    let offered = offered(set.host);
    let there: BTreeSet<&str> = set.devices.iter().map(|it| it.installed.name.as_str()).collect();
    let required: Vec<Requirement> = requirements(set.host).collect();
    let asked: BTreeSet<&String> = required.iter().flat_map(|it| it.condition.extras()).collect();
    for extra in offered.iter().filter(|extra| !asked.contains(extra)) {
        add_extra_fault(set.host, format!("its extra {extra} brings no device wheel"), problems);
    }
    for (extra, needed) in &set.host.extras {
        for requirement in needed {
            let (extra, wheel) = (extra.clone(), requirement.project.clone());
            let hosts = sets.hosts_of.get(wheel.as_str());
            let exists = there.contains(wheel.as_str())
                || sets.unread.contains(&wheel)
                || hosts.is_some_and(|hosts| !hosts.contains(host.name.as_str()));
            if !offered.contains(&extra) {
                let reason = format!(
                    "requires {wheel} for the extra {extra}, but has no such `Provides-Extra`"
                );
                add_extra_fault(set.host, reason, problems);
            } else if !exists {
                let fault = SetFault::absent(format!(
                    "its extra {extra} needs {wheel}, which is missing for its tags"
                ));
                problems.add(Problem::WheelExtra { wheel: host.file.clone(), fault });
            }
            check_pin(set.host, requirement, set.host.metadata.version(), problems);
        }
    }
    for Requirement { project: wheel, condition, extras, .. } in required {
        let brings_all = wheel == host.name && extras.iter().any(|extra| extra.starts_with(EXTRA));
        if condition.extras().is_empty() && (there.contains(wheel.as_str()) || brings_all) {
            let reason =
                format!("requires {wheel} without an extra, so its kernels are always installed");
            add_extra_fault(set.host, reason, problems);
        }
    }
    for device in &set.devices {
        check_brought(set.host, device, sets, problems);
        check_device(set.host, device, &there, problems);
    }
}

/// Checks that `device-all` installs a device wheel, and so do the extras for its group and for each arch of it; the
/// wheel of an arch family must be in every extra for one of its archs. Another project may have these extras instead
/// of the host, as `rocm` does for `rocm-sdk-libraries`.
fn check_brought(host: &Wheel, device: &Wheel, sets: &WheelSets<'_>, problems: &mut Problems) {
    let name = device.installed.name.as_str();
    let brings = |required: &[Requirement]| required.iter().any(|it| it.project == name);
    let bringing = host.extras.iter().filter(|(_, required)| brings(required));
    let by: Vec<&String> = bringing.map(|(extra, _)| extra).collect();
    let mut bringing = sets.bringing.get(name).into_iter().flatten();
    if by.is_empty() && bringing.any(|other| *other != host.installed.name) {
        return;
    }
    let file = &host.installed.file;
    if by.iter().all(|extra| *extra == ALL) {
        add_extra_fault(device, format!("no extra of its host {file} brings it"), problems);
    }
    if !by.iter().any(|extra| *extra == ALL) {
        let reason = format!(
            "the extra {ALL} of its host {file} must bring all device wheels, but not this one"
        );
        add_extra_fault(device, reason, problems);
    }
    for extra in of_its_archs(host, device) {
        if !by.contains(&&extra) {
            let reason = format!(
                "the extra {extra} of its host {file} has the name of its group, but does not bring it"
            );
            add_extra_fault(device, reason, problems);
        }
    }
}

/// The extras of a host that must install a device wheel: the one for its group and those for archs whose code it has;
/// if there is none for its group, those for the archs of its family.
fn of_its_archs(host: &Wheel, device: &Wheel) -> Vec<String> {
    let (mut offered, installed) = (offered(host), &device.installed);
    let own = format!("{EXTRA}{}", group(&installed.name).unwrap_or_default());
    if offered.contains(&own) {
        // Other checks report code in the wrong wheel.
        let code = installed.files().flat_map(|(path, it)| pairs::archs(path, &it.class));
        let stated = code.filter(|arch| installed.states(arch));
        let extras: BTreeSet<String> = stated.map(|arch| format!("{EXTRA}{arch}")).collect();
        offered.retain(|extra| *extra == own || extras.contains(extra));
    } else {
        let archs = installed.stated_archs.as_deref().unwrap_or_default();
        offered.retain(|extra| host.extras.contains_key(extra) && is_for_some_of(archs, extra));
    }
    offered.into_iter().collect()
}

/// Whether an extra is only for `archs`: a group with the name of a family may lack members of it.
fn is_for_some_of(archs: &[String], extra: &str) -> bool {
    let own = archs_of_label(extra.strip_prefix(EXTRA).unwrap_or_default());
    !own.is_empty() && own.iter().all(|arch| archs.iter().any(|it| it == arch.as_str()))
}

/// Checks that a device wheel is installed only together with its host.
fn check_device(host: &Wheel, device: &Wheel, there: &BTreeSet<&str>, problems: &mut Problems) {
    let (wheel, name) = (device.installed.file.clone(), &host.installed.file);
    let tied: Vec<Requirement> = requirements(device)
        .filter(|it| it.project == host.installed.name || there.contains(&*it.project))
        .collect();
    for requirement in &tied {
        check_pin(device, requirement, host.metadata.version(), problems);
    }
    let is_pinned = tied
        .iter()
        .any(|it| it.project == host.installed.name && it.condition == Condition::Always);
    if !is_pinned {
        let reason = format!(
            "does not require {}, its host: pip installs it alone or with another version of the host",
            host.installed.name
        );
        problems.add(Problem::WheelPin { wheel, reason });
    }
    if !serves(device, host) {
        let (own, hosts) = (spaced(&device.tags()), spaced(&host.tags()));
        let reason = format!(
            "is tagged {own}, but its host {name} {hosts}: pip finds no device wheel for some of these"
        );
        add_difference(device, reason, problems);
    }
    let own = device.headers.is_purelib;
    if own != host.headers.is_purelib {
        let reason = format!(
            "states `Root-Is-Purelib: {own}`, but its host {name} the opposite: if the two folders \
             differ, the host does not find its kernels"
        );
        add_difference(device, reason, problems);
    }
    let (own, hosts) = (pythons_of(device), pythons_of(host));
    if own != hosts {
        let reason = format!(
            "states `Requires-Python: {own}`, but its host {name} {hosts}: pip refuses the extra if \
             they differ"
        );
        add_difference(device, reason, problems);
    }
}

fn add_difference(wheel: &Wheel, reason: String, problems: &mut Problems) {
    problems.add(Problem::WheelHeaders { wheel: wheel.installed.file.clone(), reason });
}

fn pythons_of(wheel: &Wheel) -> String {
    let own = wheel.metadata.get("Requires-Python");
    // pip and uv ignore invalid specifiers.
    own.filter(|text| text.parse::<VersionSpecifiers>().is_ok()).unwrap_or("any").to_owned()
}

/// Checks that a requirement is for exactly the version of the host. `== 1.0` would also match `1.0+rocm7.1`.
fn check_pin(wheel: &Wheel, requirement: &Requirement, version: &str, problems: &mut Problems) {
    let pin = requirement.exact();
    if pin.is_none() || pin != Version::from_str(version).ok().as_ref() {
        let pin =
            pin.map_or_else(|| " without an exact version".to_owned(), |pin| format!(" == {pin}"));
        let required = &requirement.project;
        let reason = format!("requires {required}{pin}, but must require == {version}");
        problems.add(Problem::WheelPin { wheel: wheel.installed.file.clone(), reason });
    }
}

/// Digest of a file in the wheels of a project → the first wheel that has it.
type Contents<'a> = BTreeMap<Sha, &'a str>;

type Owners<'a> = BTreeMap<&'a str, BTreeMap<&'a str, Contents<'a>>>;

/// Checks paths that wheels of several projects share. pip and uv install both wheels and keep the last file. Equal
/// content is harmless: packages that share a namespace each have its `__init__.py`. Wheels of one project replace each
/// other.
///
/// Reports each pair of projects once, for the first path where they differ. Two copies are skipped: their input had
/// the same conflict.
pub(super) fn check_between(
    sets: &WheelSets<'_>,
    copies: &BTreeSet<&str>,
    problems: &mut Problems,
) {
    let of_sets = sets.sets.iter().flat_map(|set| {
        let project = set.host.installed.name.as_str();
        set.wheels().map(move |wheel| (project, wheel))
    });
    let others = sets.others.iter().map(|wheel| (wheel.installed.name.as_str(), *wheel));
    let without_host = sets.without_host.iter().map(|(wheel, host)| (host.as_str(), *wheel));
    let mut all = Owners::new();
    for (project, Wheel { installed, .. }) in of_sets.chain(others).chain(without_host) {
        for (path, facts) in installed.files() {
            let owners = all.entry(path).or_default();
            let own: &mut Contents<'_> = owners.entry(project).or_default();
            own.entry(facts.sha256).or_insert(&installed.file);
        }
    }
    let mut reported = BTreeSet::new();
    for (path, owners) in &all {
        let mut owners = owners.iter();
        let Some((first, own)) = owners.next() else { continue };
        for (project, others) in owners {
            if let Some((first_file, second_file)) = differing(own, others)
                && !(copies.contains(first_file) && copies.contains(second_file))
                && reported.insert([*first, *project])
            {
                let reason = format!("{OWNED_TWICE}: {first_file} and {second_file}");
                problems.add(Problem::PathOwnedTwice { path: (*path).to_owned(), reason });
            }
        }
    }
}

/// A wheel of either project with content that no wheel of the other project has, and a wheel of the other. Different
/// versions or Pythons may differ in both projects in the same way.
fn differing<'a>(own: &Contents<'a>, others: &Contents<'a>) -> Option<(&'a str, &'a str)> {
    match only_in(own, others) {
        Some(file) => Some((file, others.values().next().copied()?)),
        None => Some((own.values().next().copied()?, only_in(others, own)?)),
    }
}

/// A wheel of `own` with content that `others` lack.
fn only_in<'a>(own: &Contents<'a>, others: &Contents<'_>) -> Option<&'a str> {
    own.iter().find(|(content, _)| !others.contains_key(*content)).map(|(_, file)| *file)
}
