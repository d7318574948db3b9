//! The kernel archives of a set, by install path.
//!
//! Loaders look for an archive where a marker leads, or a manifest lists it, and rockpack puts those
//! into a folder of their own. An archive that lies elsewhere, to which neither leads, and of whose rows
//! no marker asks for any, is one that a component ships itself: its library opens it by its path, and
//! nothing else has to name it.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_elf::kpack::split_key;

use super::listings::listings;
use super::transformed::transformed;
use crate::own::archive::ArchiveFacts;
use crate::own::facts::{Claimed, Class};
use crate::own::installed::Installed;

/// The folder of archives that were split off binaries, unless a configuration names another one.
const KERNEL_FOLDER: &str = ".kpack";

/// The archives of a set by install path.
pub(crate) type Archives<'a> = BTreeMap<&'a str, (&'a Installed, &'a ArchiveFacts)>;

/// The archives of `packages` that were split off binaries.
pub(crate) fn archives<'a>(packages: &[&'a Installed]) -> Archives<'a> {
    let shipped = shipped(packages);
    let files = packages.iter().flat_map(|package| package.files().map(move |f| (*package, f)));
    let archives = files.filter_map(|(package, (path, facts))| match &facts.class {
        Class::Archive(archive) if !shipped.contains(path) => Some((path, (package, archive))),
        _ => None,
    });
    archives.collect()
}

/// The install paths of archives that components of `packages` ship themselves, whether or not they
/// can be read.
pub(crate) fn shipped<'a>(packages: &[&'a Installed]) -> BTreeSet<&'a str> {
    let files = packages.iter().flat_map(|package| package.files());
    let elsewhere = files
        .filter(|(path, facts)| facts.class.claims_to_be_archive() && !is_in_kernel_folder(path));
    let mut found: BTreeMap<&str, Vec<&Class>> = BTreeMap::new();
    for (path, facts) in elsewhere {
        found.entry(path).or_default().push(&facts.class);
    }
    if found.is_empty() {
        return BTreeSet::new();
    }
    let listings = listings(packages);
    for listing in &listings {
        for stated in listing.manifest.archives.values() {
            found.remove(listing.beside(&stated.file).as_str());
        }
    }
    let binaries = transformed(packages);
    let asked: BTreeSet<&str> =
        binaries.iter().map(|binary| binary.marker.kernel_name.as_str()).collect();
    found.retain(|path, classes| {
        let is_asked = classes.iter().any(|class| has_rows_of(class, &asked));
        !is_asked && !binaries.iter().any(|binary| binary.leads_to(path, &listings))
    });
    found.into_keys().collect()
}

/// Whether an archive has rows under any of the kernel names.
fn has_rows_of(class: &Class, names: &BTreeSet<&str>) -> bool {
    let Class::Archive(archive) = class else { return false };
    let mut keys = archive.rows.keys();
    keys.any(|key| names.contains(kernel_name(key)))
}

/// The name of the binary that a key of an archive is for, if it is for one.
pub(crate) fn kernel_name(key: &str) -> &str {
    split_key(key).map_or(key, |(name, _)| name)
}

/// Whether the file at `path` lies where archives lie that were split off binaries.
pub(crate) fn is_in_kernel_folder(path: &str) -> bool {
    path.rsplit('/').nth(1) == Some(KERNEL_FOLDER)
}

/// The install paths of archives that cannot be read. That they are damaged is told once, where
/// they lie: they are not missing.
pub(crate) fn damaged<'a>(packages: &[&'a Installed]) -> BTreeSet<&'a str> {
    let files = packages.iter().flat_map(|package| package.files());
    let damaged =
        files.filter(|(_, facts)| matches!(facts.class, Class::Broken(Claimed::Archive, _)));
    damaged.map(|(path, _)| path).collect()
}
