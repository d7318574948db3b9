//! `.deb` and `.rpm` packages: their fields and their files.
//!
//! Members with device code, references to it or indexes of it are opened. A member that looks like one of these and
//! cannot be read is listed with its fault; the others are still shown. Packages in packages are not opened, because
//! nesting has no limit. `verify` checks packages.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, Read};

use rockpack_archive::ar;
use rockpack_archive::package_file::PackageReader;
use rockpack_archive::payload::{PayloadEntryKind, ReadEntry, SpecialKind};
use rockpack_archive::rpm::{LEAD_MAGIC, sign};
use rockpack_core::compression;
use rockpack_core::content::Content;
use rockpack_core::error::{Kind, Result};
use rockpack_core::gfx::Target;
use rockpack_core::hold::hold;
use rockpack_core::run::Budget;
use rockpack_elf::{ccob, code_object, kpack, offload_binary, offload_bundle};
use rockpack_package::Format;
use rpm::{Dependency, PackageMetadata};
use serde::Serialize;

use super::binary::{BundleReport, targets};
use super::{DeviceCodeState, Inspected};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PackageReport {
    pub format: Format,
    pub size: u64,
    /// The fields of a control file, or the tags of a header, by the names that `dpkg-deb -I` and
    /// `rpm -qi` give them; relations are lists with commas.
    pub fields: BTreeMap<String, String>,
    /// The targets of everything inside.
    pub archs: BTreeSet<String>,
    pub installed_size: u64,
    /// The files, links and directories, in the order of the payload.
    pub members: Vec<PackageMember>,
    /// The name of the data archive of a `.deb`, if that cannot be unpacked: no members are shown then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Names of the fields of an `.rpm` whose texts are not UTF-8; they are shown with U+FFFD.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_utf8: Vec<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PackageMember {
    pub path: String,
    /// The kind of the entry, e.g. `file` or `hard-link`.
    pub kind: &'static str,
    /// The description of a kind that rockpack never writes.
    #[serde(skip)]
    pub special: Option<&'static str>,
    pub mode: String,
    /// Owner and group, e.g. `root/root`.
    pub owner: String,
    pub size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    #[serde(flatten)]
    pub found: MemberInspection,
}

/// Device code in a member of a package or wheel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MemberInspection {
    /// The number of wrappers of a binary in a wheel with device code, or whose code is in archives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrappers: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<Device>,
    /// The reason why a file with device code cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Device {
    /// `kernel-archive`, `kernel-manifest`, `kernel-index`, `kernel-database` (another file of one, in wheels),
    /// `code-object`, `offload-bundles`, `fat-binary` or `transformed-binary`.
    pub what: &'static str,
    /// The targets that it holds code for, or that it names.
    pub targets: BTreeSet<String>,
    /// Code objects in it; of an archive, distinct ones.
    pub code_objects: u64,
    /// Bytes of these, uncompressed.
    pub uncompressed_size: u64,
}

pub(super) fn package(content: &Content) -> Result<PackageReport> {
    let reader = PackageReader::open(content.clone())?;
    let (format, fields) = match &reader {
        PackageReader::Deb(deb) => (Format::Deb, deb.fields.to_map()),
        PackageReader::Rpm(rpm) => (Format::Rpm, rpm_fields(&rpm.metadata)),
    };
    let (unread, not_utf8) = match &reader {
        PackageReader::Deb(deb) => (deb.unread().map(str::to_owned), Vec::new()),
        PackageReader::Rpm(rpm) => (None, rpm.not_utf8().collect()),
    };
    let mut members: Vec<PackageMember> = Vec::new();
    if unread.is_none() {
        reader.visit(&mut |entry, bytes| {
            members.push(member(entry, bytes, content.budget())?);
            Ok(())
        })?;
    }
    Ok(PackageReport {
        format,
        size: content.len(),
        fields,
        archs: archs(members.iter().map(|member| &member.found)),
        installed_size: members.iter().map(|member| member.size).sum(),
        members,
        unread,
        not_utf8,
    })
}

/// The targets of everything that was found.
pub(super) fn archs<'a>(found: impl Iterator<Item = &'a MemberInspection>) -> BTreeSet<String> {
    let devices = found.filter_map(|found| found.device.as_ref());
    devices.flat_map(|device| device.targets.iter().cloned()).collect()
}

fn member(read: &ReadEntry, content: &mut dyn Read, budget: &Budget) -> Result<PackageMember> {
    let entry = &read.entry;
    let special = match &entry.kind {
        PayloadEntryKind::Special(kind) => Some(kind),
        _ => None,
    };
    let (kind, target) = match (&entry.kind, special) {
        (_, Some(SpecialKind::HardLink { target })) => ("hard-link", Some(format!("/{target}"))),
        (_, Some(SpecialKind::Pipe)) => ("pipe", None),
        (_, Some(SpecialKind::CharacterDevice)) => ("character-device", None),
        (_, Some(SpecialKind::BlockDevice)) => ("block-device", None),
        (PayloadEntryKind::Directory, None) => ("directory", None),
        (PayloadEntryKind::File, None) => ("file", None),
        (_, None) => ("link", entry.target().map(str::to_owned)),
    };
    let found = match entry.is_file() {
        true => inspect_member(&entry.path, entry.size, content, budget)?,
        false => MemberInspection::default(),
    };
    Ok(PackageMember {
        path: format!("/{}", entry.path),
        kind,
        special: special.map(SpecialKind::as_str),
        mode: format!("{:04o}", entry.mode),
        owner: format!("{}/{}", read.user, read.group),
        size: entry.size,
        target,
        found: MemberInspection { wrappers: None, ..found },
    })
}

/// Bytes that decide whether a file is inspected: an ELF header, which is longer than every magic.
const HEAD_LENGTH: u64 = 64;

/// Name endings of files with or about device code that have no magic.
const NAME_ENDINGS: [&str; 3] = [".kpm", ".dat", ".dat.zlib"];

/// Opens a file of `size` bytes that may have device code or refer to some. An error is about the package.
pub(super) fn inspect_member(
    path: &str,
    size: u64,
    content: &mut dyn Read,
    budget: &Budget,
) -> Result<MemberInspection> {
    let mut head = Vec::new();
    content.take(HEAD_LENGTH).read_to_end(&mut head).map_err(compression::decoder_fault)?;
    let known =
        [&kpack::MAGIC[..], b"\x7fELF", ccob::MAGIC, offload_binary::MAGIC, offload_bundle::MAGIC];
    let is_package = head.starts_with(ar::MAGIC) || head.starts_with(&LEAD_MAGIC);
    let named = !is_package && NAME_ENDINGS.iter().any(|ending| path.ends_with(ending));
    if !named && !known.iter().any(|magic| head.starts_with(magic)) {
        return Ok(MemberInspection::default());
    }
    let start = Content::of_bytes(head.clone());
    if let Ok(true) = code_object::is_code_object(&start) {
        // Its header has all that is shown here.
        let target = code_object::read_header(&start)?.target;
        return Ok(MemberInspection {
            device: Some(code(target, size)),
            ..MemberInspection::default()
        });
    }
    let whole = hold(&mut Cursor::new(head).chain(content), size, budget)?;
    Ok(match super::inspect(&whole) {
        Ok(inspected) => {
            let device = summary(&inspected);
            let wrappers = match &inspected {
                Inspected::HostBinary(binary) if device.is_some() => {
                    Some(binary.wrappers.len() as u64)
                }
                _ => None,
            };
            MemberInspection { wrappers, device, fault: None }
        }
        // Object files and ELF files for other machines have nothing to show here.
        Err(fault) if fault.kind() == Kind::Unsupported => MemberInspection::default(),
        Err(fault) => {
            MemberInspection { fault: Some(fault.to_string()), ..MemberInspection::default() }
        }
    })
}

fn summary(inspected: &Inspected) -> Option<Device> {
    match inspected {
        Inspected::Archive(archive) => Some(Device {
            what: "kernel-archive",
            targets: archive.gfx_arches.iter().cloned().collect(),
            code_objects: archive.code_objects as u64,
            uncompressed_size: archive.uncompressed_size,
        }),
        Inspected::Manifest(manifest) => Some(Device {
            what: "kernel-manifest",
            targets: manifest.archives.keys().cloned().collect(),
            ..Device::default()
        }),
        Inspected::OffloadBundles { bundles } => {
            Some(device_of_bundles("offload-bundles", bundles))
        }
        Inspected::HostBinary(binary) => match binary.state {
            DeviceCodeState::Fat => Some(device_of_bundles("fat-binary", &binary.bundles)),
            DeviceCodeState::Transformed => Some(device_of_bundles("transformed-binary", &[])),
            DeviceCodeState::HostOnly | DeviceCodeState::SeparateDebug => None,
        },
        Inspected::Index(index) => Some(Device {
            what: "kernel-index",
            targets: index.description.archs.iter().map(ToString::to_string).collect(),
            ..Device::default()
        }),
        Inspected::CodeObject(_)
        | Inspected::Package(_)
        | Inspected::Artifact(_)
        | Inspected::Wheel(_)
        | Inspected::Receipt { .. } => None,
    }
}

/// A single code object of `size` bytes.
fn code(target: Option<Target>, size: u64) -> Device {
    Device {
        what: "code-object",
        targets: target.iter().map(Target::to_string).collect(),
        code_objects: 1,
        uncompressed_size: size,
    }
}

/// The code objects of `bundles`, which make up a file of this kind.
pub(crate) fn device_of_bundles(what: &'static str, bundles: &[BundleReport]) -> Device {
    let entries = bundles.iter().flat_map(|bundle| &bundle.entries);
    let code: Vec<u64> =
        entries.filter(|e| e.target.is_some() && e.size > 0).map(|e| e.size).collect();
    Device {
        what,
        targets: targets(bundles),
        code_objects: code.len() as u64,
        uncompressed_size: code.iter().sum(),
    }
}

/// The tags of a header under the names of `rpm -qi`, without absent ones.
fn rpm_fields(metadata: &PackageMetadata) -> BTreeMap<String, String> {
    let tags = [
        ("Name", text_value(metadata.get_name())),
        ("Epoch", text_value(metadata.get_epoch())),
        ("Version", text_value(metadata.get_version())),
        ("Release", text_value(metadata.get_release())),
        ("Architecture", text_value(metadata.get_arch())),
        ("Group", text_value(metadata.get_group())),
        ("Size", text_value(metadata.get_installed_size())),
        ("License", text_value(metadata.get_license())),
        ("Source RPM", text_value(metadata.get_source_rpm())),
        ("Build Date", text_value(metadata.get_build_time())),
        ("Build Host", text_value(metadata.get_build_host())),
        ("Packager", text_value(metadata.get_packager())),
        ("Vendor", text_value(metadata.get_vendor())),
        ("URL", text_value(metadata.get_url())),
        ("Summary", text_value(metadata.get_summary())),
        ("Description", text_value(metadata.get_description())),
        ("Provides", relation_list(metadata.get_provides())),
        ("Requires", relation_list(metadata.get_requires())),
        ("Conflicts", relation_list(metadata.get_conflicts())),
        ("Obsoletes", relation_list(metadata.get_obsoletes())),
        ("Recommends", relation_list(metadata.get_recommends())),
        ("Suggests", relation_list(metadata.get_suggests())),
        ("Supplements", relation_list(metadata.get_supplements())),
        ("Enhances", relation_list(metadata.get_enhances())),
    ];
    tags.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn text_value(value: std::result::Result<impl ToString, rpm::Error>) -> Option<String> {
    value.ok().map(|value| value.to_string())
}

fn relation_list(list: std::result::Result<Vec<Dependency>, rpm::Error>) -> Option<String> {
    let list = list.ok().filter(|list| !list.is_empty())?;
    Some(list.iter().map(relation).collect::<Vec<_>>().join(", "))
}

/// A relation as `rpm -q --requires` shows it.
fn relation(dependency: &Dependency) -> String {
    let Dependency { name, flags, version } = dependency;
    match sign(*flags).as_str() {
        "" => name.clone(),
        sign => format!("{name} {sign} {version}"),
    }
}
