//! Packages: fields, members, and their device code.

use crate::cli::render::table::TextTable;
use crate::cli::render::units::bytes;
use crate::inspect::{Device, PackageReport};
use rockpack_report::words::list;

pub(super) fn package_text(package: &PackageReport) -> String {
    let mut text = text_line!(
        "Package: .{} ({}, {} installed)",
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
    let archs: Vec<&str> = package.archs.iter().map(String::as_str).collect();
    let archs = if archs.is_empty() { "none".to_owned() } else { archs.join(" ") };
    text.push_str(&text_line!("Archs: {archs}"));
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
        let device = match (&member.device, &member.fault) {
            (Some(device), _) => device_text(device),
            (None, Some(fault)) => format!("unreadable: {fault}"),
            (None, None) => String::new(),
        };
        table.row([
            member.mode.clone(),
            member.owner.clone(),
            member.size.to_string(),
            member.path.clone() + &link.unwrap_or_default() + &kind.unwrap_or_default(),
            device,
        ]);
    }
    table.render()
}

pub(super) fn device_text(device: &Device) -> String {
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
