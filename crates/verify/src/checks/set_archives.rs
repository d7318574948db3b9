//! The kernel archives of a set by install path, and the transformed binaries whose markers lead to them.
//!
//! Loaders find an archive by a marker or a manifest, and rockpack puts such archives into a folder of their own. An
//! archive in another folder, to which no marker or manifest leads, and with no rows for any marker, is shipped by a
//! component: its library opens it by its path.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::TreePath;
use rockpack_elf::kpack::split_key;
use rockpack_elf::marker::{ARCH_PLACEHOLDER, Marker};

use crate::checks::manifests::{ManifestListing, listings};
use crate::readers::archive::ArchiveFacts;
use crate::readers::facts::{Claimed, Class, HostFacts};
use crate::readers::installed::{PackageContents, files_of};

/// The folder of archives that were split off binaries, unless a configuration names another one.
const KERNEL_FOLDER: &str = ".kpack";

pub(crate) type Archives<'a> = BTreeMap<&'a str, (&'a PackageContents, &'a ArchiveFacts)>;

/// The archives of `packages` that were split off binaries, without shipped ones.
pub(crate) fn archives<'a>(packages: &[&'a PackageContents]) -> Archives<'a> {
    let shipped = shipped(packages);
    let files = files_of(packages).filter(|(_, path, _)| !shipped.contains(path));
    files.filter_map(|(package, path, facts)| Some((path, (package, facts.archive()?)))).collect()
}

/// The install paths of archives that components of `packages` ship, including unreadable ones.
pub(crate) fn shipped<'a>(packages: &[&'a PackageContents]) -> BTreeSet<&'a str> {
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
            found.remove(listing.sibling_path(&stated.file).as_str());
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

/// The kernel name in a key of an archive, or the whole key if it has none.
pub(crate) fn kernel_name(key: &str) -> &str {
    split_key(key).map_or(key, |(name, _)| name)
}

/// Whether the file at `path` is in a folder for archives that were split off binaries.
pub(crate) fn is_in_kernel_folder(path: &str) -> bool {
    path.rsplit('/').nth(1) == Some(KERNEL_FOLDER)
}

/// The install paths of unreadable archives. They are reported once, as damaged and not as missing.
pub(crate) fn damaged<'a>(packages: &[&'a PackageContents]) -> BTreeSet<&'a str> {
    let files = packages.iter().flat_map(|package| package.files());
    let damaged =
        files.filter(|(_, facts)| matches!(facts.class, Class::Broken(Claimed::Archive, _)));
    damaged.map(|(path, _)| path).collect()
}

pub(crate) struct TransformedBinary<'a> {
    pub(crate) package: &'a PackageContents,
    pub(crate) path: &'a str,
    pub(crate) host: &'a HostFacts,
    pub(crate) marker: &'a Marker,
}

pub(crate) fn transformed<'a>(packages: &[&'a PackageContents]) -> Vec<TransformedBinary<'a>> {
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
        self.match_archive(archive, listings).is_some()
    }

    /// The arch in the name of the archive at this path; the outer `None` means that the marker does not lead there.
    pub(super) fn match_archive(
        &self,
        archive: &str,
        listings: &[ManifestListing<'_>],
    ) -> Option<Option<BaseArch>> {
        let patterns = &self.marker.kpack_search_paths;
        let direct = patterns.iter().find_map(|p| leads_to(self.path, p, archive));
        // Some early loaders looked for a manifest, which listed the archive.
        let mut named = listings.iter().filter(|listing| {
            patterns.iter().any(|p| leads_to(self.path, p, listing.path) == Some(None))
        });
        let listed = |listing: &ManifestListing<'_>| {
            let mut files = listing.manifest.archives.iter();
            let (arch, _) =
                files.find(|(_, stated)| listing.sibling_path(&stated.file) == archive)?;
            Some(arch.parse().ok())
        };
        direct.or_else(|| named.find_map(listed))
    }
}

/// The arch if `pattern`, relative to the directory of the binary at `path`, matches `archive`; the inner `None` if the
/// pattern has no placeholder for one.
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
