//! The content of a file, for people.

mod artifact;
mod code_object;
mod index;
mod package;
mod wheel;

use super::kpm;
use super::units::bytes;
use crate::inspect::{
    ArchiveReport, BundleReport, DeviceCodeState, HostBinaryReport, Inspected, WrapperReport,
};

/// The text that `inspect` prints for a file.
pub fn inspect_text(inspected: &Inspected) -> String {
    match inspected {
        Inspected::Archive(archive) => archive_text(archive),
        Inspected::Manifest(manifest) => kpm::manifest(manifest),
        Inspected::HostBinary(binary) => host_binary_text(binary),
        Inspected::CodeObject(code) => code_object::code_object_text(code),
        Inspected::OffloadBundles { bundles } => bundles_text(bundles),
        Inspected::Artifact(folder) => artifact::artifact_text(folder),
        Inspected::Index(index) => index::index_text(index),
        Inspected::Package(package) => package::package_text(package),
        Inspected::Wheel(wheel) => wheel::wheel_text(wheel),
    }
}

fn archive_text(archive: &ArchiveReport) -> String {
    let ArchiveReport { group_name, gfx_arch_family, .. } = archive;
    let mut text = text_line!("Kernel archive: {group_name} for {gfx_arch_family}");
    text.push_str(&text_line!("Targets: {}", archive.gfx_arches.join(" ")));
    text.push_str(&text_line!("Compression: {}", archive.compression_scheme));
    text.push_str(&text_line!(
        "Code objects: {} ({} in {})",
        archive.code_objects,
        bytes(archive.uncompressed_size),
        bytes(archive.size),
    ));
    for (key, targets) in &archive.rows {
        text.push_str(&text_line!("  {key}"));
        for (target, row) in targets {
            let size = bytes(row.original_size);
            text.push_str(&text_line!("    {target} → code object {} ({size})", row.ordinal));
        }
    }
    text
}

fn host_binary_text(binary: &HostBinaryReport) -> String {
    match binary.state {
        DeviceCodeState::HostOnly => "Host binary: no device code\n".to_owned(),
        DeviceCodeState::SeparateDebug => "Host binary: separate debug file\n".to_owned(),
        DeviceCodeState::Fat => {
            let wrappers = wrappers_text(&binary.wrappers, &|wrapper| {
                wrapper.bundle_offset.map(|offset| format!("bundle at {offset:#x}"))
            });
            format!("Host binary: fat\n{wrappers}{}", bundles_text(&binary.bundles))
        }
        DeviceCodeState::Transformed => transformed_text(binary),
    }
}

fn transformed_text(binary: &HostBinaryReport) -> String {
    let mut text = "Host binary: transformed\n".to_owned();
    let marker = binary.marker.as_ref();
    let kernel_name = marker.and_then(|marker| marker.kernel_name.as_ref());
    if let Some(kernel_name) = kernel_name {
        text.push_str(&text_line!("Kernel name: {kernel_name}"));
    }
    for path in marker.into_iter().flat_map(|marker| &marker.kpack_search_paths) {
        text.push_str(&text_line!("Search path: {path}"));
    }
    text + &wrappers_text(&binary.wrappers, &|wrapper| {
        kernel_name.map(|name| format!("rows of {name}#{}", wrapper.index))
    })
}

/// The wrappers, each with the bundle or rows that it refers to.
fn wrappers_text(
    wrappers: &[WrapperReport],
    leads_to: &dyn Fn(&WrapperReport) -> Option<String>,
) -> String {
    let mut text = text_line!("Wrappers: {}", wrappers.len());
    for wrapper in wrappers {
        let there = leads_to(wrapper).map(|there| format!(" → {there}")).unwrap_or_default();
        text.push_str(&text_line!("  #{}{there}", wrapper.index));
    }
    text
}

fn bundles_text(bundles: &[BundleReport]) -> String {
    let mut text = text_line!("Bundles: {}", bundles.len());
    bundles.iter().for_each(|bundle| text.push_str(&bundle_text(bundle)));
    text
}

fn bundle_text(bundle: &BundleReport) -> String {
    let how = bundle.compression.as_ref().map_or(String::new(), |how| {
        let (version, method) = (how.compressed_version, how.compression_method);
        let size = bytes(how.uncompressed_size);
        format!(", CCOB version {version}, {method}, {size} uncompressed")
    });
    let mut text = text_line!("  at {:#x} ({}{how})", bundle.offset, bytes(bundle.size));
    for entry in &bundle.entries {
        let digest = match entry.size {
            0 => String::new(),
            _ => format!(", SHA-256 {}…", shortened(&entry.sha256.to_string())),
        };
        text.push_str(&text_line!("    {} ({}{digest})", entry.id, bytes(entry.size)));
    }
    text
}

/// Enough digits of a digest to recognise it; JSON has all.
fn shortened(digest: &str) -> &str {
    digest.get(..DIGEST_DIGITS).unwrap_or(digest)
}

/// Hexadecimal digits of a digest that are shown.
const DIGEST_DIGITS: usize = 12;
