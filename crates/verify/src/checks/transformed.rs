//! The transformed binaries of a set, and where their markers lead.

use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::TreePath;
use rockpack_elf::marker::{ARCH_PLACEHOLDER, Marker};

use super::listings::ManifestListing;
use crate::own::facts::{Class, HostFacts};
use crate::own::installed::Installed;

/// A transformed binary of a package.
pub(crate) struct TransformedBinary<'a> {
    pub(crate) package: &'a Installed,
    pub(crate) path: &'a str,
    pub(crate) host: &'a HostFacts,
    pub(crate) marker: &'a Marker,
}

/// All transformed binaries of `packages`.
pub(crate) fn transformed<'a>(packages: &[&'a Installed]) -> Vec<TransformedBinary<'a>> {
    let files = packages.iter().flat_map(|package| package.files().map(move |f| (*package, f)));
    let binaries = files.filter_map(|(package, (path, facts))| match &facts.class {
        Class::Host(host) => {
            Some(TransformedBinary { package, path, host, marker: host.marker.as_ref()? })
        }
        _ => None,
    });
    binaries.collect()
}

impl TransformedBinary<'_> {
    /// Whether the marker leads to the archive at this path.
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
        direct.or_else(|| self.finds_listed(archive, listings))
    }

    /// Loaders of a short period looked for a manifest, and in it for the archive.
    fn finds_listed(
        &self,
        archive: &str,
        listings: &[ManifestListing<'_>],
    ) -> Option<Option<BaseArch>> {
        let patterns = &self.marker.kpack_search_paths;
        let mut named = listings.iter().filter(|listing| {
            patterns.iter().any(|p| leads_to(self.path, p, listing.path) == Some(None))
        });
        named.find_map(|listing| {
            let mut files = listing.manifest.archives.iter();
            let (arch, _) = files.find(|(_, stated)| listing.beside(&stated.file) == archive)?;
            Some(arch.parse().ok())
        })
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
