//! Artifact folders as a tree with sizes.

use std::collections::BTreeMap;

use crate::cli::render::units::bytes;
use crate::inspect::{ArtifactFile, ArtifactFolder};

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
    // A folder's content comes right behind it.
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
