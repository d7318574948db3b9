//! METADATA and WHEEL of the wheels that are made.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_base::error::{Error, Faults, Kind, Result};
use rockpack_base::formats::wheel::{Requirement, Version, WheelFile, WheelName, normalized};

use super::code::{DevicePart, Extra};
use super::device_name::GROUP;
use super::{MemberSource, PlannedMember, WheelSettings};
use crate::config::{Config, WheelKeys};
use crate::input::wheel::Wheel;
use crate::package::device_wheel::EXTRA;

/// The program that WHEEL names.
const GENERATOR: &str = concat!("rockpack ", env!("CARGO_PKG_VERSION"));

/// The mode of texts.
const MODE: u32 = 0o644;

/// Files of `dist-info` that are made anew or left out.
const MADE: [&str; 2] = ["METADATA", "RECORD"];

/// Files of `dist-info` that are no licences in a device wheel, even if METADATA calls them that.
const NO_LICENCES: [&str; 4] = ["METADATA", "RECORD", "WHEEL", "entry_points.txt"];

/// Fields of METADATA that apply to device wheels as well.
const CARRIED: [&str; 13] = [
    "Home-page",
    "Download-URL",
    "Project-URL",
    "Author",
    "Author-email",
    "Maintainer",
    "Maintainer-email",
    "License",
    "License-Expression",
    "License-File",
    "Platform",
    "Supported-Platform",
    "Requires-Python",
];

/// Prefixes of the names of licence files in `dist-info`, used if METADATA names none.
const LICENCES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "AUTHORS"];

/// Refuses requirements of the configuration that pip could not read.
pub fn check_requirements(config: &Config, faults: &mut Faults) {
    let WheelKeys { device_requires, host_requires, .. } = &config.keys.wheels;
    for (key, list) in [("device_requires", device_requires), ("host_requires", host_requires)] {
        for (index, text) in list.iter().enumerate() {
            let place = ["wheels", key, &index.to_string()];
            let line = match key {
                "device_requires" => text.replace(GROUP, "group"),
                _ => text.clone(),
            };
            let read = Requirement::parse(&line);
            faults.keep(read.map_err(|error| config.located(&place, &error)));
        }
    }
}

/// METADATA of the host wheel: those of the input with `extras`.
pub(super) fn host_metadata(
    wheel: &Wheel,
    extras: &[Extra],
    settings: &WheelSettings,
) -> Result<String> {
    let host_requires = &settings.config.keys.wheels.host_requires;
    refuse_device_names(wheel, extras, host_requires)?;
    let version = wheel.metadata.version();
    let mut added = String::new();
    for requirement in host_requires {
        added.push_str(&format!("Requires-Dist: {requirement}\n"));
    }
    for Extra { name, requires } in extras {
        added.push_str(&format!("Provides-Extra: {name}\n"));
        for device in requires {
            added.push_str(&format!("Requires-Dist: {device} == {version}; extra == \"{name}\"\n"));
        }
    }
    Ok(wheel.metadata.with(&added))
}

/// Refuses an input that uses names of device wheels: an extra that begins like theirs, or a requirement by which
/// everybody would get device code. `further` are the requirements of the configuration.
fn refuse_device_names(wheel: &Wheel, extras: &[Extra], further: &[String]) -> Result<()> {
    let own = normalized(wheel.metadata.name());
    let devices: BTreeSet<String> =
        extras.iter().flat_map(|extra| &extra.requires).map(|name| normalized(name)).collect();
    let lines = wheel.metadata.all("Requires-Dist").chain(further.iter().map(String::as_str));
    let required = lines.map(Requirement::parse).collect::<Result<Vec<_>>>()?;
    let named = required.iter().flat_map(|it| it.condition.extras().to_vec());
    let extra = wheel.metadata.extras().chain(named).find(|extra| extra.starts_with(EXTRA));
    let brings = |it: &&Requirement| {
        let is_alias = it.project == own && it.extras.iter().any(|extra| extra.starts_with(EXTRA));
        it.condition.extras().is_empty() && (is_alias || devices.contains(&it.project))
    };
    let message = match (extra, required.iter().find(brings)) {
        (Some(extra), _) => format!("has an extra {extra} already"),
        (None, Some(it)) => format!("requires device code without an extra, by {}", it.project),
        (None, None) => return Ok(()),
    };
    Err(Error::new(Kind::Conflict, message).file(&wheel.path).hint(
        "a wheel that was split is not split again; extras that begin with `device-` are those of \
         device wheels: name those of the input otherwise",
    ))
}

/// Adds the files of `dist-info` of the host wheel: those of the input, with other METADATA, and WHEEL by the
/// file name.
pub(super) fn host_files(
    wheel: &Wheel,
    metadata: String,
    members: &mut BTreeMap<String, PlannedMember>,
) {
    let folder = &wheel.dist_info;
    for (name, member) in &wheel.members {
        let own = name.strip_prefix(folder.as_str()).and_then(|rest| rest.strip_prefix('/'));
        if own.is_some_and(|own| !MADE.contains(&own)) {
            let source = MemberSource::Kept(name.clone());
            members.insert(name.clone(), PlannedMember { mode: member.mode, source });
        }
    }
    members.insert(format!("{folder}/METADATA"), text(metadata));
    let tags = wheel.wheel_file.tags();
    let build = wheel.wheel_file.build();
    if tags != WheelFile::tags_of(&wheel.name) || build != wheel.name.build.as_deref() {
        let file = wheel.wheel_file.of(&wheel.name, GENERATOR);
        members.insert(format!("{folder}/WHEEL"), text(file));
    }
}

/// METADATA of the device wheel of `part`, which is the distribution `name`.
pub(super) fn device_metadata(
    wheel: &Wheel,
    name: &str,
    part: &DevicePart<'_>,
    settings: &WheelSettings,
) -> Result<String> {
    let (host, version) = (wheel.metadata.name(), wheel.metadata.version());
    let (major, minor) = wheel.metadata.form().max((2, 1));
    let groups = part.groups.join(", ");
    let mut text = format!("Metadata-Version: {major}.{minor}\nName: {name}\nVersion: {version}\n");
    text.push_str(&format!("Summary: GPU code of {host} for {groups}\n"));
    for field in CARRIED {
        text.push_str(&wheel.metadata.lines(field));
    }
    text.push_str("Description-Content-Type: text/plain\n");
    text.push_str(&format!("Requires-Dist: {host} == {version}\n"));
    // Only a group's own wheel has the group's requirements: extras install it along with each shared wheel.
    let lines = settings.config.keys.wheels.device_requires.iter();
    for requirement in lines.filter(|line| part.is_of_one_group() || !line.contains(GROUP)) {
        let requirement = requirement.replace(GROUP, &part.label);
        refuse_loose(&requirement, wheel, settings)?;
        text.push_str(&format!("Requires-Dist: {requirement}\n"));
    }
    let extra = format!("{}[{EXTRA}{}]", normalized(host), part.label);
    let how = if part.is_of_one_group() {
        format!("`pip install \"{extra}=={version}\"` installs it with {host}.")
    } else {
        format!("The extras of {host} for these GPUs install it.")
    };
    text.push_str(&format!(
        "\nCode for AMD GPUs ({groups}) that {host} {version} loads. It is of no use without that \
         package, in exactly this version.\n\n{how}\n"
    ));
    Ok(text)
}

/// Refuses a requirement of device wheels that takes another version of the host, or of a device wheel.
fn refuse_loose(text: &str, wheel: &Wheel, settings: &WheelSettings) -> Result<()> {
    let needed = Requirement::parse(text)?;
    let (own, version) = (normalized(wheel.metadata.name()), wheel.metadata.version());
    let is_pin = needed.exact() == version.parse::<Version>().ok().as_ref();
    let is_other = needed.project != own && !settings.device_name.makes(&needed.project, &own);
    if is_pin || is_other {
        return Ok(());
    }
    let message = format!("`{text}` of device_requires takes other versions than {version}");
    let hint = "host and device wheels are of one version: leave it out, or give that with `==`";
    Err(Error::new(Kind::Conflict, message).file(&wheel.path).hint(hint))
}

/// Adds the files of `dist-info` of a device wheel: METADATA, WHEEL and the host's licences.
pub(super) fn device_files(
    wheel: &Wheel,
    dist_info: &str,
    name: &WheelName,
    metadata: String,
    members: &mut BTreeMap<String, PlannedMember>,
) {
    members.insert(format!("{dist_info}/METADATA"), text(metadata));
    members.insert(format!("{dist_info}/WHEEL"), text(wheel.wheel_file.of(name, GENERATOR)));
    for licence in licences(wheel) {
        let path = format!("{}/{licence}", wheel.dist_info);
        if wheel.members.contains_key(&path) {
            let planned = PlannedMember { mode: MODE, source: MemberSource::Kept(path) };
            members.insert(format!("{dist_info}/{licence}"), planned);
        }
    }
}

/// The paths of the licence files in the `dist-info` folder.
fn licences(wheel: &Wheel) -> BTreeSet<String> {
    let named: BTreeSet<&str> = wheel.metadata.all("License-File").collect();
    let own = wheel
        .members
        .keys()
        .filter_map(|name| name.strip_prefix(wheel.dist_info.as_str())?.strip_prefix('/'));
    let licences = own.filter(|path| !NO_LICENCES.contains(path)).filter(|path| {
        // Since METADATA 2.4, licence files are in a folder of their own.
        let plain = path.strip_prefix("licenses/").unwrap_or(path);
        match named.is_empty() {
            false => named.contains(plain),
            true => LICENCES.iter().any(|start| plain.to_ascii_uppercase().starts_with(start)),
        }
    });
    licences.map(str::to_owned).collect()
}

fn text(text: String) -> PlannedMember {
    PlannedMember { mode: MODE, source: MemberSource::Text(text) }
}
