//! What `inspect` prints for artifacts, packages and wheels: fields, members, and the device code in them.

use std::collections::BTreeMap;

use rockpack_report::words::{counted, list};

use super::render::{TextTable, bytes, words_or};
use crate::inspect::{
    ArtifactFile, ArtifactFolder, Device, MemberInspection, PackageReport, WheelReport,
};

/// Bytes by arch; bytes for every GPU are under `generic`.
type SizesByArch = BTreeMap<String, u64>;

/// The key of bytes for every GPU.
const GENERIC: &str = "generic";

pub(super) fn artifact_text(folder: &ArtifactFolder) -> String {
    let mut text = text_line!("Artifact: {}", folder.name);
    folder.prefixes.iter().for_each(|prefix| text.push_str(&text_line!("Prefix: {prefix}")));
    text.push_str(&text_line!("Generic: {}", bytes(folder.generic_bytes)));
    for (arch, amount) in &folder.device_bytes {
        text.push_str(&text_line!("Device code for {arch}: {}", bytes(*amount)));
    }
    text + &tree_text(folder)
}

/// Every directory with the sums of its files, every file with its own sizes.
fn tree_text(folder: &ArtifactFolder) -> String {
    let mut sums: BTreeMap<&str, SizesByArch> = BTreeMap::new();
    for (path, file) in &folder.files {
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        let paths = ends.filter_map(|end| path.get(..end));
        paths.for_each(|path| join(sums.entry(path).or_default(), file));
    }
    let mut sums: Vec<(&str, SizesByArch)> = sums.into_iter().collect();
    // Puts the content of a folder directly after the folder.
    sums.sort_by(|(one, _), (other, _)| one.split('/').cmp(other.split('/')));
    sums.iter().map(|(path, sizes)| line(path, sizes, folder.files.get(*path))).collect()
}

fn join(sizes: &mut SizesByArch, file: &ArtifactFile) {
    let device = file.device_bytes.iter().map(|(arch, amount)| (arch.as_str(), *amount));
    for (name, amount) in device.chain([(GENERIC, file.generic_bytes)]) {
        if amount > 0 {
            let sum = sizes.entry(name.to_owned()).or_default();
            *sum = sum.saturating_add(amount);
        }
    }
}

fn line(path: &str, sizes: &SizesByArch, file: Option<&ArtifactFile>) -> String {
    let indent = "  ".repeat(path.split('/').count());
    let name = path.rsplit('/').next().unwrap_or_default();
    let end = match file {
        None => "/".to_owned(),
        Some(ArtifactFile { target: Some(target), .. }) => format!(" -> {target}"),
        Some(ArtifactFile { what: "host", .. }) => String::new(),
        Some(file) => format!(" ({})", file.what.replace('-', " ")),
    };
    let sizes: Vec<String> =
        sizes.iter().map(|(name, amount)| format!("{name} {}", bytes(*amount))).collect();
    let sizes = if sizes.is_empty() { String::new() } else { format!(": {}", sizes.join(", ")) };
    text_line!("{indent}{name}{end}{sizes}")
}

pub(super) fn package_text(package: &PackageReport) -> String {
    let mut text = text_line!(
        "Package: .{} ({}, files of {})",
        package.format,
        bytes(package.size),
        bytes(package.installed_size)
    );
    for (name, value) in &package.fields {
        let mut lines = value.trim_end().lines().map(str::trim_end);
        text.push_str(&text_line!("  {name}: {}", lines.next().unwrap_or_default()));
        for line in lines {
            let indent = if line.is_empty() { "" } else { "    " };
            text.push_str(&text_line!("{indent}{line}"));
        }
    }
    if !package.not_utf8.is_empty() {
        text.push_str(&text_line!("Not UTF-8: {}", list(&package.not_utf8)));
    }
    text.push_str(&text_line!("Archs: {}", words_or(&package.archs, "none")));
    if let Some(name) = &package.unread {
        return text + &text_line!("Members: not known, {name} cannot be unpacked");
    }
    text.push_str(&text_line!("Members: {}", package.members.len()));
    text + &members_text(package)
}

fn members_text(package: &PackageReport) -> String {
    let mut table = TextTable::new(["mode", "owner", ">size", "path", "device code"]);
    for member in &package.members {
        let link = member.target.as_ref().map(|target| format!(" -> {target}"));
        let kind = member.special.map(|kind| format!(" ({kind})"));
        table.row([
            member.mode.clone(),
            member.owner.clone(),
            member.size.to_string(),
            member.path.clone() + &link.unwrap_or_default() + &kind.unwrap_or_default(),
            found_text(&member.found),
        ]);
    }
    table.render()
}

fn device_text(device: &Device) -> String {
    let targets: Vec<&str> = device.targets.iter().map(String::as_str).collect();
    let what = device.what.replace('-', " ");
    let size = bytes(device.uncompressed_size);
    match (device.code_objects, targets.is_empty()) {
        (0, true) => what,
        (0, false) => format!("{what} for {}", targets.join(" ")),
        (1, _) => format!("{what} for {}: {size}", targets.join(" ")),
        (count, _) => format!("{what} for {}: {count} code objects, {size}", targets.join(" ")),
    }
}

pub(super) fn wheel_text(wheel: &WheelReport) -> String {
    let mut text = text_line!(
        "Wheel: {} {}, {} ({}, {} installed)",
        wheel.distribution,
        wheel.version,
        wheel.role,
        bytes(wheel.size),
        bytes(wheel.installed_size)
    );
    if let Some(build) = &wheel.build {
        text.push_str(&text_line!("Build: {build}"));
    }
    text.push_str(&text_line!("Tags: {}", wheel.tags.join(" ")));
    text.push_str(&text_line!("Root-Is-Purelib: {}", wheel.is_purelib));
    for requirement in &wheel.requires {
        text.push_str(&text_line!("Requires: {requirement}"));
    }
    for (extra, requirements) in &wheel.extras {
        text.push_str(&text_line!("Extra {extra}: {}", requirements.join(", ")));
    }
    text.push_str(&text_line!("Archs: {}", words_or(&wheel.archs, "none")));
    if let Some(reason) = &wheel.refused {
        text.push_str(&text_line!("Refused by rockpack wheel: {reason}"));
    }
    text.push_str(&text_line!("Members: {}", wheel.members.len()));
    let mut table = TextTable::new(["mode", ">size", ">stored", "path", "device code"]);
    for member in &wheel.members {
        table.row([
            member.mode.clone().unwrap_or_default(),
            member.size.to_string(),
            member.stored_size.to_string(),
            member.path.clone(),
            found_text(&member.found),
        ]);
    }
    text + &table.render()
}

fn found_text(found: &MemberInspection) -> String {
    let wrappers = found.wrappers.map(|count| format!(", {}", counted(count, "wrapper")));
    match (&found.device, &found.fault) {
        (Some(device), _) => device_text(device) + &wrappers.unwrap_or_default(),
        (None, Some(fault)) => format!("unreadable: {fault}"),
        (None, None) => String::new(),
    }
}
