//! METADATA and WHEEL of the wheels that are made, and the names of device wheels.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use derive_more::Display;
use rockpack_archive::spdx::is_python_license;
use rockpack_archive::wheel::{Requirement, Version, VersionSpecifiers, WheelName, normalized};
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::tree::TreePath;
use rockpack_package::device_wheel::EXTRA;
use rockpack_plan::config::Config;
use rockpack_split::input::wheel::{Wheel, WheelMember};

use super::code::{DevicePart, Extra};
use super::{FILE_MODE, MemberSource, PlannedMember};
use crate::WheelSettings;

pub(crate) const GENERATOR: &str = concat!("rockpack ", env!("CARGO_PKG_VERSION"));

/// Fields of METADATA that device wheels inherit, in addition to `License-File`.
const CARRIED: &str = "Home-page Download-URL Project-URL Author Author-email Maintainer \
    Maintainer-email License License-Expression Platform Supported-Platform Requires-Python";

pub(crate) const LICENCE_FOLDER: &str = "licenses/";

/// Refuses requirements of the configuration that pip could not read.
pub fn check_requirements(config: &Config, faults: &mut Faults) {
    config.keys.wheels.each_requirement(|place, text| {
        let line = match place {
            [_, "host_requires", ..] => text.to_owned(),
            _ => text.replace(GROUP, "group"),
        };
        let read = Requirement::parse(&line);
        faults.keep(read.map_err(|error| config.located(place, &error)));
    });
}

/// METADATA of the host wheel: that of the input with `extras`.
pub(super) fn host_metadata(
    wheel: &Wheel,
    extras: &[Extra],
    settings: &WheelSettings,
) -> Result<String> {
    let host_requires = &settings.config.keys.wheels.host_requires;
    refuse_device_names(wheel, extras, host_requires)?;
    let (own, version) = (normalized(wheel.metadata.name()), wheel.metadata.version());
    let mut added = String::new();
    for requirement in host_requires {
        // A wheel does not require itself.
        if Requirement::parse(requirement)?.project != own {
            added.push_str(&format!("Requires-Dist: {requirement}\n"));
        }
    }
    for extra in extras {
        let name = &extra.name;
        added.push_str(&format!("Provides-Extra: {name}\n"));
        for device in &extra.requires {
            added.push_str(&format!("Requires-Dist: {device} == {version}; extra == \"{name}\"\n"));
        }
        for requirement in extra.chained(&format!("extra == \"{name}\"")) {
            added.push_str(&format!("Requires-Dist: {requirement}\n"));
        }
    }
    Ok(wheel.metadata.with(&added))
}

/// Refuses an input that uses names of device wheels: an extra with their prefix, or an unconditional requirement of
/// device code. `further` are the requirements of the configuration.
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
        (Some(extra), _) => format!("already has an extra {extra}"),
        (None, Some(it)) => format!("requires device code without an extra, by {}", it.project),
        (None, None) => return Ok(()),
    };
    Err(Error::new(Kind::Conflict, message).file(&wheel.path).hint(
        "a wheel that was split is not split again; extras that begin with `device-` are those of \
         device wheels: name those of the input otherwise",
    ))
}

/// Turns the `dist-info` of the input into that of the host wheel: with other METADATA, with a WHEEL that agrees with
/// the file name, and without RECORD.
pub(super) fn host_files(
    wheel: &Wheel,
    metadata: String,
    members: &mut BTreeMap<String, PlannedMember>,
) {
    let folder = &wheel.dist_info;
    members.remove(&format!("{folder}/RECORD"));
    members.insert(format!("{folder}/METADATA"), text(metadata));
    if !wheel.wheel_file.agrees_with(&wheel.name) {
        let file = wheel.wheel_file.of(&wheel.name, GENERATOR);
        members.insert(format!("{folder}/WHEEL"), text(file));
    }
}

/// METADATA of the device wheel of `part`, which is the distribution `name`; `own` is the extra with its label.
pub(super) fn device_metadata(
    wheel: &Wheel,
    name: &str,
    part: &DevicePart<'_>,
    own: Option<&Extra>,
    settings: &WheelSettings,
) -> Result<String> {
    let (host, version) = (wheel.metadata.name(), wheel.metadata.version());
    let (form, carried) = carried(wheel);
    let groups = part.groups.join(", ");
    let mut text = format!("Metadata-Version: {form}\nName: {name}\nVersion: {version}\n");
    text.push_str(&format!("Summary: GPU code of {host} for {groups}\n{carried}"));
    text.push_str("Description-Content-Type: text/plain\n");
    text.push_str(&format!("Requires-Dist: {host} == {version}\n"));
    // A user who installs it by name gets the same wheels as by the extra.
    let others = own.into_iter().flat_map(|own| &own.requires).filter(|other| *other != name);
    let others = others.map(|other| format!("{other} == {version}"));
    for requirement in others.chain(own.into_iter().flat_map(|own| own.chained(""))) {
        text.push_str(&format!("Requires-Dist: {requirement}\n"));
    }
    // Only a group's own wheel has the group's requirements: extras install it along with each shared wheel.
    let lists = settings.config.keys.wheels.device_lists().into_iter();
    let of_host = lists.filter(|(of, _)| of.is_none_or(|of| normalized(of) == normalized(host)));
    let lines = of_host.flat_map(|(_, list)| list);
    for line in lines.filter(|line| part.group.is_some() || !line.contains(GROUP)) {
        let requirement = line.replace(GROUP, &part.label);
        if is_foreign_requirement(&requirement, name, wheel, settings)? {
            text.push_str(&format!("Requires-Dist: {requirement}\n"));
        }
    }
    let extra = format!("{}[{EXTRA}{}]", normalized(host), part.label);
    let how = if own.is_some_and(|own| own.requires.iter().any(|it| it == name)) {
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

/// The fields of METADATA that a device wheel inherits, and the metadata version that they need.
fn carried(wheel: &Wheel) -> (&'static str, String) {
    let is_carried = |field: &&str| {
        let values: Vec<&str> = wheel.metadata.all(field).collect();
        is_valid(field, &values)
    };
    let fields: Vec<&str> = CARRIED.split(' ').filter(is_carried).collect();
    let files = licence_files(wheel);
    let is_new = !files.is_empty() || fields.contains(&"License-Expression");
    let lines = fields.iter().map(|field| wheel.metadata.lines(field));
    let files = files.keys().map(|file| format!("License-File: {file}\n"));
    (if is_new { "2.4" } else { "2.1" }, lines.chain(files).collect())
}

/// Whether Python's `packaging` accepts the values of a field.
fn is_valid(field: &str, values: &[&str]) -> bool {
    let labels = values.iter().filter_map(|url| url.split(',').next()).map(str::trim);
    match (field, values) {
        ("Platform" | "Supported-Platform", _) => true,
        ("Project-URL", _) => labels.collect::<BTreeSet<_>>().len() == values.len(),
        ("License-Expression", [text]) => is_python_license(text),
        ("Requires-Python", [text]) => text.parse::<VersionSpecifiers>().is_ok(),
        _ => values.len() == 1,
    }
}

/// Whether a requirement of the device wheel `name` is for a wheel other than itself and its host. Refuses one that
/// accepts another version of the host or of a device wheel.
fn is_foreign_requirement(
    text: &str,
    name: &str,
    wheel: &Wheel,
    settings: &WheelSettings,
) -> Result<bool> {
    let needed = Requirement::parse(text)?;
    let (own, version) = (normalized(wheel.metadata.name()), wheel.metadata.version());
    let parsed = version.parse::<Version>().ok();
    let is_itself = needed.project == own || needed.project == normalized(name);
    if is_itself && parsed.as_ref().is_some_and(|version| needed.accepts(version)) {
        return Ok(false);
    }
    let is_other = needed.project != own && !settings.device_name.matches(&needed.project, &own);
    if needed.exact() == parsed.as_ref() || is_other {
        return Ok(true);
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
    let named = licence_files(wheel);
    let unnamed = wheel.members.iter().filter(|_| named.is_empty()).filter_map(|(own, member)| {
        let path = own.strip_prefix(wheel.dist_info.as_str())?.strip_prefix('/')?;
        let name = path.strip_prefix(LICENCE_FOLDER).unwrap_or(path).to_ascii_uppercase();
        let starts = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "AUTHORS"];
        let is_licence = starts.iter().any(|start| name.starts_with(start));
        is_licence.then(|| (path.to_owned(), member))
    });
    let named = named.iter().map(|(file, member)| (format!("{LICENCE_FOLDER}{file}"), *member));
    for (path, member) in unnamed.chain(named) {
        let planned =
            PlannedMember { mode: FILE_MODE, source: MemberSource::Copied(member.clone()) };
        members.insert(format!("{dist_info}/{path}"), planned);
    }
}

/// The licence files that METADATA names, each with its member. Before METADATA 2.4, they had no separate folder.
fn licence_files(wheel: &Wheel) -> BTreeMap<&str, &WheelMember> {
    // A device wheel has its own files of these names, even if METADATA calls them licences.
    let others = ["METADATA", "RECORD", "WHEEL", "entry_points.txt"];
    let named = wheel.metadata.all("License-File").filter(|file| {
        let is_odd = file.contains("..") || file.contains(['\\', ':', '*']);
        !is_odd && TreePath::new(*file).is_ok() && !others.contains(file)
    });
    let found = named.filter_map(|file| {
        let mut places = [LICENCE_FOLDER, ""].into_iter();
        let member = |folder| wheel.members.get(&format!("{}/{folder}{file}", wheel.dist_info));
        Some((file, places.find_map(member)?))
    });
    found.collect()
}

fn text(text: String) -> PlannedMember {
    PlannedMember { mode: FILE_MODE, source: MemberSource::Generated(Content::of_bytes(text)) }
}

const NAME: &str = "{name}";
const GROUP: &str = "{group}";

/// A pattern for the names of device wheels: `{name}` is the host wheel, `{group}` the group. A text without
/// placeholders is an owner's prefix, short for `PREFIX-{name}-device-{group}`.
#[derive(Debug, Clone, PartialEq, Eq, Display)]
pub struct DeviceNamePattern(String);

impl DeviceNamePattern {
    /// The name for a group, by its label, of the distribution `name`.
    pub fn of(&self, name: &str, label: &str) -> Result<String> {
        let made = self.0.replace(NAME, name).replace(GROUP, label);
        if is_name(&made) {
            return Ok(made);
        }
        let message = format!("`{made}`, made by the pattern `{self}`, is not a distribution name");
        Err(Error::new(Kind::Config, message).hint(HINT))
    }

    pub fn is_without_owner(&self) -> bool {
        self.0.starts_with('{')
    }

    /// Whether the normalized name `own` is one for a group of the distribution `host`.
    pub(super) fn matches(&self, own: &str, host: &str) -> bool {
        let pattern = self.0.replace(NAME, host);
        let Some((before, after)) = pattern.split_once(GROUP) else { return false };
        let group = own.strip_prefix(&normalized(before));
        group
            .and_then(|rest| rest.strip_suffix(&normalized(after)))
            .is_some_and(|it| !it.is_empty())
    }
}

const HINT: &str = "names have letters, digits, `-`, `_` and `.`, and begin and end with a letter or \
                    digit: `{name}-device-{group}`, `amd-{name}-device-{group}`, or its prefix `amd`";

impl FromStr for DeviceNamePattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if !text.contains('{') {
            let owner = text.trim_end_matches(['-', '_', '.']);
            return format!("{owner}-{NAME}-device-{GROUP}").parse();
        }
        let is_valid = is_name(&text.replace(NAME, "n").replace(GROUP, "g"));
        let message = match text.contains(GROUP) {
            true if is_valid => return Ok(Self(text.to_owned())),
            true => format!("`{text}` does not give distribution names"),
            false => {
                format!("`{text}` has no {GROUP}, so that all device wheels would have one name")
            }
        };
        Err(Error::new(Kind::Usage, message).hint(HINT))
    }
}

/// Parses the name of a distribution, and normalizes it.
pub fn distribution(text: &str) -> Result<String, String> {
    is_name(text).then(|| normalized(text)).ok_or("not a name of a distribution".to_owned())
}

/// Whether PEP 508 allows the name for a distribution.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_make_names() {
        assert_eq!(name_by("{name}-device-{group}"), "torch-device-gfx942");
        assert_eq!(name_by("amd-{name}-device-{group}"), "amd-torch-device-gfx942");
        assert_eq!(name_by("acme"), "acme-torch-device-gfx942");
        assert_eq!(name_by("acme.ai-"), "acme.ai-torch-device-gfx942");
        assert_eq!(name_by("acme_"), "acme-torch-device-gfx942");
        let amd: DeviceNamePattern = "amd-{name}-device-{group}".parse().unwrap();
        assert!(!amd.is_without_owner());
        let bare: DeviceNamePattern = "{group}-{name}".parse().unwrap();
        assert!(bare.is_without_owner());
        assert!(amd.matches("amd-torch-device-common", "torch"));
        assert!(
            !amd.matches("amd-torch-device", "torch") && !amd.matches("torch-device-x", "torch")
        );
        for bad in [
            "",
            "-",
            "a b",
            "{name}-device",
            "-{group}",
            "{group} x",
            "{other}-{group}",
            "{name}/{group}",
        ] {
            assert!(bad.parse::<DeviceNamePattern>().is_err(), "{bad}");
        }
    }

    fn name_by(pattern: &str) -> String {
        pattern.parse::<DeviceNamePattern>().unwrap().of("torch", "gfx942").unwrap()
    }
}
