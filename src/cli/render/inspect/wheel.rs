//! Python wheels: metadata, members, and their device code.

use super::package::device_text;
use crate::cli::render::table::TextTable;
use crate::cli::render::units::bytes;
use crate::inspect::{WheelMember, WheelReport};
use rockpack_report::words::counted;

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
    let archs: Vec<&str> = wheel.archs.iter().map(String::as_str).collect();
    let archs = if archs.is_empty() { "none".to_owned() } else { archs.join(" ") };
    text.push_str(&text_line!("Archs: {archs}"));
    text.push_str(&text_line!("Members: {}", wheel.members.len()));
    text + &members_text(&wheel.members)
}

fn members_text(members: &[WheelMember]) -> String {
    let mut table = TextTable::new(["mode", ">size", ">stored", "path", "device code"]);
    for member in members {
        table.row([
            member.mode.clone().unwrap_or_default(),
            member.size.to_string(),
            member.stored_size.to_string(),
            member.path.clone(),
            about_device(member),
        ]);
    }
    table.render()
}

fn about_device(member: &WheelMember) -> String {
    let wrappers = member.wrappers.map(|count| format!(", {}", counted(count, "wrapper")));
    match (&member.device, &member.fault) {
        (Some(device), _) => device_text(device) + &wrappers.unwrap_or_default(),
        (None, Some(fault)) => format!("unreadable: {fault}"),
        (None, None) => String::new(),
    }
}
