//! Wheels that are installed in a folder `site-packages`, by the metadata that installers keep there.

use std::collections::BTreeSet;

use rockpack_archive::wheel::{Metadata, Requirement, Version, normalized};
use rockpack_core::content::Content;
use rockpack_core::tree::Node;

use super::folders::FilesByPath;
use rockpack_package::device_wheel::EXTRA;

/// The end of the paths of METADATA.
const METADATA: &str = ".dist-info/METADATA";

/// The longest METADATA that is read, in bytes.
const LIMIT: u64 = 16 << 20;

/// Tells if all is installed that extras for devices bring, in exactly one version, of what is installed.
/// Users install a wheel with some of its extras. Unreadable METADATA count as complete.
pub(super) fn are_all_there(files: &FilesByPath) -> bool {
    let installed: Vec<Metadata> =
        files.iter().filter(|(path, _)| path.ends_with(METADATA)).filter_map(metadata).collect();
    let there: BTreeSet<String> = installed.iter().map(|it| normalized(it.name())).collect();
    installed.iter().flat_map(of_devices).all(|needed| there.contains(&needed))
}

/// The distributions that extras of a wheel require in exactly its own version.
fn of_devices(wheel: &Metadata) -> impl Iterator<Item = String> {
    let needed = wheel.all("Requires-Dist").filter_map(|line| Requirement::parse(line).ok());
    let own: Option<Version> = wheel.version().parse().ok();
    let of_devices = needed.filter(move |needed| {
        let extra = needed.condition.extras().first();
        extra.is_some_and(|extra| extra.starts_with(EXTRA))
            && needed.exact().is_some_and(|pin| own.as_ref() == Some(pin))
    });
    of_devices.map(|needed| needed.project)
}

fn metadata((_, node): (&String, &Node<Content>)) -> Option<Metadata> {
    match node {
        Node::File { data, .. } => {
            let bytes = data.read_vec(0..data.len(), LIMIT, "METADATA").ok()?;
            Metadata::parse(&bytes).ok()
        }
        _ => None,
    }
}
