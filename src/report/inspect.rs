//! What is in a file, for people.

use super::kpm;
use super::units::bytes;
use crate::inspect::{Archive, Bundle, HostBinary, Inspected, State};

/// The text that `inspect` prints for a file.
pub fn inspect_text(inspected: &Inspected) -> String {
    match inspected {
        Inspected::Archive(archive) => archive_text(archive),
        Inspected::Manifest(manifest) => kpm::manifest(manifest),
        Inspected::HostBinary(binary) => host_binary_text(binary),
    }
}

fn archive_text(archive: &Archive) -> String {
    let mut text = format!(
        "Kernel archive: {} for {}\nTargets: {}\nCompression: {}\nCode objects: {} ({} in {})\n",
        archive.group_name,
        archive.gfx_arch_family,
        archive.gfx_arches.join(" "),
        archive.compression_scheme,
        archive.code_objects,
        bytes(archive.uncompressed_size),
        bytes(archive.size),
    );
    for (key, targets) in &archive.rows {
        text.push_str(&format!("  {key}\n"));
        for (target, row) in targets {
            let size = bytes(row.original_size);
            text.push_str(&format!("    {target} → code object {} ({size})\n", row.ordinal));
        }
    }
    text
}

fn host_binary_text(binary: &HostBinary) -> String {
    let state = match binary.state {
        State::HostOnly => "host-only",
        State::Fat => "fat",
        State::Transformed => "transformed",
        State::SeparateDebug => "separate debug file",
    };
    let mut text = format!("Host binary: {state}\n");
    if let Some(marker) = &binary.marker {
        if let Some(kernel_name) = &marker.kernel_name {
            text.push_str(&format!("Kernel name: {kernel_name}\n"));
        }
        for path in &marker.kpack_search_paths {
            text.push_str(&format!("Search path: {path}\n"));
        }
    }
    text.push_str(&format!("Wrappers: {}\n", binary.wrappers.len()));
    for wrapper in &binary.wrappers {
        match wrapper.bundle_offset {
            Some(offset) => {
                text.push_str(&format!("  #{} → bundle at {offset:#x}\n", wrapper.index))
            }
            None => text.push_str(&format!("  #{}\n", wrapper.index)),
        }
    }
    if binary.state == State::Fat {
        text.push_str(&format!("Bundles: {}\n", binary.bundles.len()));
        binary.bundles.iter().for_each(|bundle| text.push_str(&bundle_text(bundle)));
    }
    text
}

fn bundle_text(bundle: &Bundle) -> String {
    let how = bundle.compressed_version.map_or(String::new(), |v| format!(", CCOB version {v}"));
    let mut text = format!("  at {:#x} ({}{how})\n", bundle.offset, bytes(bundle.size));
    for entry in &bundle.entries {
        text.push_str(&format!("    {} ({})\n", entry.id, bytes(entry.size)));
    }
    text
}
