//! Plans the wheels that are made of one wheel, and their content.
//!
//! ```text
//! one component ─ code       which groups need which code ─► labels of device wheels, extras
//!               ─ input      the folder of the kernel archives, and the runtime that loads the code
//!               ─ chains     which extras of other wheels come with those of this one
//!               ─ texts      METADATA and WHEEL
//!               ─► a host wheel with every other member, device wheels
//! ```
//!
//! The host wheel has the name, the tags and the members of the input, except device code. Code of one group
//! is in the device wheel of that group. Files of an arch family, and others that several groups read, are in
//! separate device wheels, or in that of a group with the name of the family: no path is in two wheels. The
//! extras of groups, and of their archs, require all wheels with their code, also that of a generic target, or of
//! SPIR-V, if a wrapper has code for these archs only there.

mod chains;
mod code;
mod input;
mod texts;

use std::collections::BTreeMap;

use rockpack_archive::wheel::{WheelName, escaped};
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::TreePath;
use rockpack_package::device_wheel::EXTRA;
use rockpack_package::receipt::CodeObjectRecord;
use rockpack_package::receipt::wheels::{WheelKind, WheelRecord};
use rockpack_plan::Shim;
use rockpack_plan::recombine::{Component, Recombined};
use rockpack_report::Findings;
use rockpack_split::HostBinary;
use rockpack_split::host_binary::SHIM;
use rockpack_split::input::wheel::{Wheel, WheelMember};

use crate::WheelSettings;
use code::{DeviceCode, DevicePart, Extra};

pub(crate) use chains::SplitHosts;
pub use input::check_other_folders;
pub(crate) use input::{is_device_wheel, is_unchanged};
pub use texts::{DeviceNamePattern, check_requirements, distribution};
pub(crate) use texts::{GENERATOR, LICENCE_FOLDER};

pub(crate) const FILE_MODE: u32 = 0o644;

/// The wheels that one input wheel is split into, without the content that packing makes.
#[derive(Debug)]
pub struct WheelPlan {
    /// The folder of the kernel archives, relative to site-packages.
    pub folder: TreePath,
    pub host: PlannedWheel,
    /// The device wheels, in the order of groups.
    pub devices: Vec<PlannedWheel>,
    pub findings: Findings,
}

#[derive(Debug)]
pub struct PlannedWheel {
    /// Its record, still without sizes and digest.
    pub record: WheelRecord,
    pub dist_info: String,
    /// The members except RECORD. Packing adds kernel archives, whose names are known only then.
    pub members: BTreeMap<String, PlannedMember>,
    pub archives: Vec<BaseArch>,
    pub code_objects: Vec<CodeObjectRecord>,
}

#[derive(Debug, Clone)]
pub struct PlannedMember {
    /// The mode, 0644 or 0755.
    pub mode: u32,
    pub source: MemberSource,
}

#[derive(Debug, Clone)]
pub enum MemberSource {
    /// A member of the input, unchanged.
    Copied(WheelMember),
    /// The fat binary at this path in site-packages, which packing transforms.
    Fat(TreePath),
    /// Bytes that are already compressed.
    Stored(Content),
    /// Other bytes that are in no input.
    Generated(Content),
}

/// The record of a copy of `wheel`, still without sizes and digest.
pub(crate) fn record_of_copy(wheel: &Wheel) -> WheelRecord {
    WheelRecord {
        file_name: wheel.name.to_string(),
        made_of: wheel.name.to_string(),
        role: WheelKind::Copy,
        distribution: wheel.metadata.name().to_owned(),
        version: wheel.metadata.version().to_owned(),
        ..WheelRecord::default()
    }
}

/// Plans the wheels for `wheel`, whose device code is the one component of `recombined`. Its requirements may include
/// some of `hosts`, to which it is added.
pub fn plan(
    wheel: &Wheel,
    recombined: &Recombined,
    settings: &WheelSettings,
    hosts: &mut SplitHosts,
) -> Result<WheelPlan> {
    let [component] = recombined.components.as_slice() else {
        return Err(Error::bug("a wheel is one component"));
    };
    let mut findings = Findings::default();
    input::check_runtime(wheel, component, &settings.runtime, &mut findings)?;
    let groups = code::groups(&recombined.groups, &settings.config.grouping);
    let code = DeviceCode::of(component, &groups)?;
    let files = wheel.members.iter().filter(|(name, _)| !wheel.is_dist_info(name));
    let installed = files.filter_map(|(_, member)| Some((member.installed.as_ref()?, member)));
    let made =
        WheelPlanner { wheel, component, code: &code, installed: installed.collect(), settings };
    let plan = findings.explain(made.plan(hosts))?;
    Ok(WheelPlan { findings, ..plan })
}

/// Plans the wheels of one input wheel.
struct WheelPlanner<'a> {
    wheel: &'a Wheel,
    component: &'a Component,
    code: &'a DeviceCode<'a>,
    /// The members by path in site-packages.
    installed: BTreeMap<&'a TreePath, &'a WheelMember>,
    settings: &'a WheelSettings,
}

impl WheelPlanner<'_> {
    fn plan(&self, hosts: &mut SplitHosts) -> Result<WheelPlan> {
        let Self { wheel, component, settings, .. } = self;
        let distributions = self.distributions()?;
        let mut extras = self.code.extras(&distributions);
        hosts.extend(&mut extras, wheel, settings)?;
        let parts = self.code.parts.iter().zip(&distributions);
        let devices = parts
            .map(|(part, distribution)| self.device(part, distribution, &extras))
            .collect::<Result<Vec<_>>>()?;
        let folder = input::archive_folder(wheel, component)?;
        let mut host = self.host(&extras)?;
        if let Some(shim) = settings.runtime.shim() {
            self.add_shim(shim, &folder, &mut host)?;
        }
        Ok(WheelPlan { folder, host, devices, findings: Findings::default() })
    }

    fn distributions(&self) -> Result<Vec<String>> {
        let own = self.wheel.metadata.name();
        let mut taken = BTreeMap::from([(escaped(own), own.to_owned())]);
        let mut names = Vec::new();
        for part in &self.code.parts {
            let name = self.settings.device_name.of(own, &part.label)?;
            if let Some(other) = taken.insert(escaped(&name), part.label.clone()) {
                let message = format!(
                    "the device wheel of {} would be called {name}, like that of {other}",
                    part.label
                );
                let hint = "name the groups otherwise, and none `common`, whose files several groups read; \
                            or give another pattern for their names";
                return Err(Error::new(Kind::Conflict, message).hint(hint));
            }
            names.push(name);
        }
        Ok(names)
    }

    /// The host wheel: everything except device code.
    fn host(&self, extras: &[Extra]) -> Result<PlannedWheel> {
        let Self { wheel, component, .. } = self;
        let mut members = BTreeMap::new();
        for (name, member) in &wheel.members {
            let installed = member.installed.as_ref().filter(|_| !wheel.is_dist_info(name));
            let source = match installed {
                None => MemberSource::Copied(member.clone()),
                Some(path) => match component.host.get(path).and_then(|node| node.data()) {
                    Some(file) if file.fat().is_some() => MemberSource::Fat(path.clone()),
                    Some(_) => MemberSource::Copied(member.clone()),
                    // Device code: it is in a device wheel, or a finding says why it is left out.
                    None => continue,
                },
            };
            members.insert(name.clone(), PlannedMember { mode: member.mode, source });
        }
        let metadata = texts::host_metadata(wheel, extras, self.settings)?;
        texts::host_files(wheel, metadata, &mut members);
        Ok(PlannedWheel {
            record: WheelRecord { role: WheelKind::Host, ..record_of_copy(wheel) },
            dist_info: wheel.dist_info.clone(),
            members,
            archives: Vec::new(),
            code_objects: Vec::new(),
        })
    }

    /// Adds the library with which binaries register to the host wheel, in the folder of the kernel archives, with its
    /// licence.
    fn add_shim(&self, shim: &Shim, folder: &TreePath, host: &mut PlannedWheel) -> Result<()> {
        let mut binaries = self.component.host.values().filter_map(|node| node.data()?.fat());
        if !binaries.any(|fat| matches!(fat.binary, HostBinary::Fat(_))) {
            return Ok(());
        }
        let name = &self.wheel.name;
        if name.platforms.iter().any(|platform| platform.starts_with("musllinux")) {
            let message = format!("the wheel is for musl, but {SHIM} needs glibc");
            let hint = "build the wheel for glibc (manylinux), or split it for runtimes that read archives \
                        (--hip-runtime own)";
            return Err(Error::unsupported(message).hint(hint));
        }
        if let (Some(least), Some(needed)) = (name.glibc(), shim.glibc)
            && least < needed
        {
            let [least, needed] = [least, needed].map(|(major, minor)| format!("{major}.{minor}"));
            let message = format!("the wheel is for glibc {least}, but {SHIM} needs {needed}");
            let hint = format!(
                "build the library with `cargo zigbuild --release -p rocm-kpack-shim --target \
                 x86_64-unknown-linux-gnu.{least}`, and give its file with --hip-shim"
            );
            return Err(Error::unsupported(message).hint(hint));
        }
        let licence = Content::of_bytes(Shim::LICENCE_TEXT);
        for (name, content, mode) in [
            (SHIM, shim.content.clone(), 0o755),
            ("librocm_kpack_shim.LICENSE", licence, FILE_MODE),
        ] {
            let path = folder.join(name)?.to_string();
            let member = PlannedMember { mode, source: MemberSource::Generated(content) };
            if host.members.insert(path.clone(), member).is_some() {
                let message = format!("has a file {path} already");
                return Err(Error::new(Kind::Conflict, message).file(&self.wheel.path));
            }
        }
        Ok(())
    }

    fn device(
        &self,
        part: &DevicePart<'_>,
        distribution: &str,
        extras: &[Extra],
    ) -> Result<PlannedWheel> {
        let Self { wheel, .. } = self;
        let name = WheelName { distribution: escaped(distribution), ..wheel.name.clone() };
        let dist_info = name.dist_info();
        let mut members = BTreeMap::new();
        for file in &part.databases {
            let own = self.installed.get(&file.path).ok_or_else(|| {
                Error::bug("a database file is no member").structure(file.path.as_str())
            })?;
            let source = MemberSource::Copied((*own).clone());
            members.insert(file.path.to_string(), PlannedMember { mode: file.mode, source });
        }
        let extra = format!("{EXTRA}{}", part.label);
        // Shared wheels require the host alone.
        let own = part.group.and_then(|_| extras.iter().find(|it| it.name == extra));
        let metadata = texts::device_metadata(wheel, distribution, part, own, self.settings)?;
        texts::device_files(wheel, &dist_info, &name, metadata, &mut members);
        let record = WheelRecord {
            file_name: name.to_string(),
            role: WheelKind::Device,
            distribution: distribution.to_owned(),
            groups: part.groups.clone(),
            archs: part.archs(),
            ..record_of_copy(wheel)
        };
        let archives = part.archives.iter().cloned().collect();
        Ok(PlannedWheel { record, dist_info, members, archives, code_objects: Vec::new() })
    }
}
