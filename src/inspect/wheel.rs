//! Python wheels: their metadata and their members.
//!
//! Members are inspected like those of packages. The role of a wheel in a split set follows from its binaries, extras
//! and requirements. A split without output gives the findings of `rockpack wheel`. `verify` checks wheels.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use derive_more::Display;
use rockpack_archive::wheel::{
    Condition, Metadata, Requirement, WheelArchive, WheelFile, WheelName, normalized,
};
use rockpack_archive::zip::{ZipMember, ZipReader};
use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_core::run::{Budget, threads};
use rockpack_package::device_wheel::{EXTRA, group, is_named_after};
use rockpack_report::{Findings, Silent, found};
use rockpack_split::input::artifact::ScanOptions;
use rockpack_split::input::database::DatabaseRules;
use rockpack_split::input::wheel::{Wheel, read};
use rockpack_split::{SplitArtifact, SplitPolicy, split_alone};
use rockpack_wheel::check_other_folders;
use serde::Serialize;

use super::package::{archs, inspect_member};
use super::{Device, MemberInspection};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WheelReport {
    /// The name of the distribution, as METADATA has it.
    pub distribution: String,
    /// The version, as METADATA has it.
    pub version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// The tags of the file name, or of WHEEL if the file is not named like a wheel.
    pub tags: Vec<String>,
    /// Whether files at the root are installed in the folder for all platforms (purelib).
    pub is_purelib: bool,
    pub role: WheelRole,
    pub size: u64,
    pub installed_size: u64,
    /// The targets of everything inside.
    pub archs: BTreeSet<String>,
    /// The requirements that hold without an extra, as METADATA has them.
    pub requires: Vec<String>,
    /// The requirements of each extra, without their markers.
    pub extras: BTreeMap<String, Vec<String>>,
    /// The files that it installs, in the order of the archive.
    pub members: Vec<WheelMember>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The findings of `rockpack wheel`.
    pub findings: Findings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Display)]
#[display(rename_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum WheelRole {
    /// A wheel with device code in binaries or in files of kernel databases.
    Fat,
    /// A wheel whose binaries refer to kernel archives, or whose extras bring device wheels.
    Host,
    /// A wheel with the code of a host wheel for some GPUs.
    Device,
    /// A wheel without device code and without references to its own.
    Plain,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WheelMember {
    pub path: String,
    /// Permission bits, in octal, where a Unix system made the archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    pub size: u64,
    pub stored_size: u64,
    #[serde(flatten)]
    pub found: MemberInspection,
}

pub(super) fn wheel(content: &Content) -> Result<WheelReport> {
    let WheelArchive { zip, metadata, wheel_file: headers, .. } =
        WheelArchive::open(content.clone())?;
    let files = zip.members().iter().filter(|member| !member.name.ends_with('/'));
    let members: Vec<WheelMember> =
        files.map(|found| member(&zip, found, content)).collect::<Result<_>>()?;
    let (requires, extras) = requirements(&metadata);
    Ok(WheelReport {
        distribution: metadata.name().to_owned(),
        version: metadata.version().to_owned(),
        build: headers.build().map(str::to_owned),
        tags: headers.tags(),
        is_purelib: headers.is_purelib,
        role: role(&metadata, &extras, &members),
        size: content.len(),
        installed_size: members.iter().map(|member| member.size).sum(),
        archs: archs(members.iter().map(|member| &member.found)),
        requires,
        extras,
        members,
        refused: None,
        findings: Findings::default(),
    })
}

impl WheelReport {
    /// Adds the findings of `rockpack wheel` for the wheel at `path`, or the reason why it refuses it.
    pub fn add_split(&mut self, path: &Path, budget: &Budget) -> Result<()> {
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(Ok(name)) = name.map(str::parse::<WheelName>) {
            self.tags = WheelFile::tags_of(&name);
            self.build = name.build;
        }
        match split(path, budget) {
            Ok((wheel, split)) => self.apply_split(&wheel, &split),
            Err(error) if error.is_read_failure() => return Err(error),
            Err(error) => {
                let faults: Vec<String> = error.flattened().map(ToString::to_string).collect();
                self.refused = Some(faults.join("; "));
            }
        }
        Ok(())
    }

    fn apply_split(&mut self, wheel: &Wheel, split: &SplitArtifact) {
        let fat: BTreeMap<_, _> = split.binaries().collect();
        let databases: BTreeMap<_, _> = split.databases.iter().map(|it| (&it.path, it)).collect();
        for member in &mut self.members {
            let own = wheel.members.get(&member.path);
            let Some(path) = own.and_then(|own| own.installed.as_ref()) else { continue };
            match (&mut member.found.device, fat.get(path), databases.get(path)) {
                (Some(device), Some(fat), _) if device.what == "fat-binary" => {
                    let code = fat.code_objects();
                    device.targets = code.map(|code| code.target.to_string()).collect();
                    device.code_objects = fat.code_objects().count() as u64;
                    device.uncompressed_size = fat.code_objects().map(|it| it.content.len()).sum();
                }
                (device, _, Some(file)) if device.as_ref().is_none_or(is_undecided) => {
                    let targets = file.archs.iter().map(ToString::to_string).collect();
                    let new = || Device { what: "kernel-database", ..Device::default() };
                    device.get_or_insert_with(new).targets = targets;
                }
                _ => {}
            }
        }
        self.archs = archs(self.members.iter().map(|member| &member.found));
        if self.role == WheelRole::Plain && !split.databases.is_empty() {
            let mut files = split.host.values().filter_map(|node| node.data());
            let is_device = files.next().is_none() && !wheel.pinned().is_empty();
            self.role = if is_device { WheelRole::Device } else { WheelRole::Fat };
        }
        self.findings.clone_from(&split.findings);
        if fat.is_empty() && databases.is_empty() {
            // A copy has all members.
            self.findings.retain(|it| it.found::<found::WheelMembersDropped>().is_none());
        }
    }
}

/// Whether the file itself does not decide its targets, but other files of the database or the path.
fn is_undecided(device: &Device) -> bool {
    device.targets.is_empty() || device.what == "kernel-index"
}

/// Splits the wheel at `path` by the default configuration, into one artifact with the findings of all of it.
fn split(path: &Path, budget: &Budget) -> Result<(Wheel, SplitArtifact)> {
    let wheel = threads::in_current_pool(|| read(path, &ScanOptions::within(budget), &Silent))?;
    let rules = DatabaseRules::builtin()?;
    let policy = SplitPolicy { keeps_old: true, ..SplitPolicy::strict(&rules) };
    let mut split = split_alone(wheel.artifact()?, &policy)?;
    split.findings.extend(wheel.scan.findings.clone());
    split.findings.extend(check_other_folders(&wheel)?);
    split.findings.sort();
    wheel.scan.inputs.recheck()?;
    Ok((wheel, split))
}

fn member(zip: &ZipReader, member: &ZipMember, content: &Content) -> Result<WheelMember> {
    let mut reader = zip.reader(member)?;
    let found = inspect_member(&member.name, member.size, &mut reader, content.budget());
    let found = found.or_else(|error| match error.is_read_failure() {
        true => Err(error),
        // A damaged member does not keep the others from being shown.
        false => {
            Ok(MemberInspection { fault: Some(error.to_string()), ..MemberInspection::default() })
        }
    })?;
    Ok(WheelMember {
        path: member.name.clone(),
        mode: member.mode.map(|mode| format!("{:04o}", mode & 0o7777)),
        size: member.size,
        stored_size: member.stored.end.saturating_sub(member.stored.start),
        found,
    })
}

/// The requirements without an extra, and those of each extra.
fn requirements(metadata: &Metadata) -> (Vec<String>, BTreeMap<String, Vec<String>>) {
    let mut requires = Vec::new();
    let mut extras: BTreeMap<String, Vec<String>> =
        metadata.extras().map(|extra| (extra, Vec::new())).collect();
    for text in metadata.all("Requires-Dist") {
        match Requirement::parse(text) {
            Ok(Requirement { condition: Condition::Extra(extra), .. }) => {
                let line = text.split(';').next().unwrap_or_default().trim();
                extras.entry(extra).or_default().push(line.to_owned());
            }
            _ => requires.push(text.to_owned()),
        }
    }
    (requires, extras)
}

fn role(
    metadata: &Metadata,
    extras: &BTreeMap<String, Vec<String>>,
    members: &[WheelMember],
) -> WheelRole {
    let own = normalized(metadata.name());
    let parsed = |line: &str| Requirement::parse(line).ok();
    let own_extras = extras.iter().filter(|(extra, _)| extra.starts_with(EXTRA));
    let mut of_extras = own_extras.flat_map(|(_, lines)| lines).filter_map(|line| parsed(line));
    let pins_host = |it: Requirement| {
        let is_pin = it.exact().is_some() && it.condition == Condition::Always;
        is_pin && is_named_after(&own, &it.project)
    };
    if of_extras.any(|it| group(&it.project).is_some()) {
        WheelRole::Host
    } else if metadata.all("Requires-Dist").filter_map(parsed).any(pins_host) {
        WheelRole::Device
    } else if has_device(members, "transformed-binary") {
        WheelRole::Host
    } else if has_device(members, "fat-binary") {
        WheelRole::Fat
    } else if has_device(members, "kernel-archive") {
        WheelRole::Device
    } else {
        WheelRole::Plain
    }
}

fn has_device(members: &[WheelMember], what: &str) -> bool {
    let mut devices = members.iter().filter_map(|member| member.found.device.as_ref());
    devices.any(|device| device.what == what)
}
