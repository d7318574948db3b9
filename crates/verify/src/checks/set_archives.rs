//! The kernel archives of a set, by install path, and the transformed binaries whose markers lead to them.
//!
//! Loaders look for an archive where a marker leads, or a manifest lists it, and rockpack puts those
//! into a folder of their own. An archive that lies elsewhere, to which neither leads, and of whose rows
//! no marker asks for any, is one that a component ships itself: its library opens it by its path, and
//! nothing else has to name it.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::TreePath;
use rockpack_elf::kpack::split_key;
use rockpack_elf::marker::{ARCH_PLACEHOLDER, Marker};

use crate::checks::manifests::{ManifestListing, listings};
use crate::own::archive::ArchiveFacts;
use crate::own::facts::{Claimed, Class, HostFacts};
use crate::own::installed::{Installed, files_of};

/// The folder of archives that were split off binaries, unless a configuration names another one.
const KERNEL_FOLDER: &str = ".kpack";

/// The archives of a set by install path.
pub(crate) type Archives<'a> = BTreeMap<&'a str, (&'a Installed, &'a ArchiveFacts)>;

/// The archives of `packages` that were split off binaries.
pub(crate) fn archives<'a>(packages: &[&'a Installed]) -> Archives<'a> {
    let shipped = shipped(packages);
    let files = files_of(packages).filter(|(_, path, _)| !shipped.contains(path));
    files.filter_map(|(package, path, facts)| Some((path, (package, facts.archive()?)))).collect()
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

pub(crate) fn has_rows_of(class: &Class, names: &BTreeSet<&str>) -> bool {
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

pub(crate) struct TransformedBinary<'a> {
    pub(crate) package: &'a Installed,
    pub(crate) path: &'a str,
    pub(crate) host: &'a HostFacts,
    pub(crate) marker: &'a Marker,
}

pub(crate) fn transformed<'a>(packages: &[&'a Installed]) -> Vec<TransformedBinary<'a>> {
    let binaries = files_of(packages).filter_map(|(package, path, facts)| {
        let host = facts.host()?;
        Some(TransformedBinary { package, path, host, marker: host.marker.as_ref()? })
    });
    binaries.collect()
}

impl TransformedBinary<'_> {
    pub(super) fn key(&self, wrapper: usize) -> String {
        format!("{}#{wrapper}", self.marker.kernel_name)
    }

    pub(crate) fn leads_to(&self, archive: &str, listings: &[ManifestListing<'_>]) -> bool {
        self.finds_one(archive, listings).is_some()
    }

    /// The arch in the name of the archive at this path, if the marker leads there.
    pub(super) fn finds_one(
        &self,
        archive: &str,
        listings: &[ManifestListing<'_>],
    ) -> Option<Option<BaseArch>> {
        let patterns = &self.marker.kpack_search_paths;
        let direct = patterns.iter().find_map(|p| leads_to(self.path, p, archive));
        // Loaders of a short period looked for a manifest, and in it for the archive.
        let mut named = listings.iter().filter(|listing| {
            patterns.iter().any(|p| leads_to(self.path, p, listing.path) == Some(None))
        });
        let listed = |listing: &ManifestListing<'_>| {
            let mut files = listing.manifest.archives.iter();
            let (arch, _) = files.find(|(_, stated)| listing.beside(&stated.file) == archive)?;
            Some(arch.parse().ok())
        };
        direct.or_else(|| named.find_map(listed))
    }
}

/// Whether `pattern`, relative to the directory of the binary at `path`, names `archive`, and if
/// so, for which arch; a pattern without a placeholder names none.
fn leads_to(path: &str, pattern: &str, archive: &str) -> Option<Option<BaseArch>> {
    let binary = TreePath::new(path.trim_start_matches('/')).ok()?;
    let resolved = binary.resolve_link(pattern)?;
    let archive = archive.trim_start_matches('/');
    match resolved.as_str().split_once(ARCH_PLACEHOLDER) {
        Some((before, after)) => {
            let arch = archive.strip_prefix(before)?.strip_suffix(after)?;
            arch.parse().ok().map(Some)
        }
        None => (archive == resolved.as_str()).then_some(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_names_the_archives_of_its_own_component() {
        for (archive, expected) in [
            ("/opt/r/lib/.kpack/blas_lib_gfx90a.kpack", Some("gfx90a".parse().ok())),
            ("/opt/r/lib/.kpack/sparse_lib_gfx90a.kpack", None),
            ("/opt/r/lib/.kpack/blas_lib_x.kpack", None),
        ] {
            let pattern = ".kpack/blas_lib_@GFXARCH@.kpack";
            assert_eq!(leads_to("/opt/r/lib/liba.so", pattern, archive), expected, "{archive}");
        }
        let binary = "/opt/r/bin/a";
        let archive = "/opt/r/lib/.kpack/b_gfx1100.kpack";
        let found = leads_to(binary, "../lib/.kpack/b_@GFXARCH@.kpack", archive);
        assert_eq!(found, Some("gfx1100".parse().ok()));
        assert_eq!(leads_to(binary, "../lib/.kpack/b_gfx1100.kpack", archive), Some(None));
        assert_eq!(leads_to(binary, "../../../../etc/@GFXARCH@", archive), None);
    }
}
