//! The manifests of a set, and which files lie where they say.

use rockpack_elf::kpm::Manifest;

use crate::own::facts::Class;
use crate::own::installed::Installed;

/// The name of the install prefix in a manifest whose folder is right below it.
const PREFIX_ITSELF: &str = ".";

/// A manifest of a package.
pub(crate) struct ManifestListing<'a> {
    pub(crate) package: &'a Installed,
    pub(crate) path: &'a str,
    pub(crate) manifest: &'a Manifest,
}

/// All manifests of `packages`.
pub(crate) fn listings<'a>(packages: &[&'a Installed]) -> Vec<ManifestListing<'a>> {
    let files = packages.iter().flat_map(|package| package.files().map(move |f| (*package, f)));
    let listings = files.filter_map(|(package, (path, facts))| match &facts.class {
        Class::Manifest(manifest) => Some(ManifestListing { package, path, manifest }),
        _ => None,
    });
    listings.collect()
}

impl ManifestListing<'_> {
    /// The install path of a file beside the manifest.
    pub(crate) fn beside(&self, file: &str) -> String {
        let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{folder}/{file}")
    }

    /// The install prefix, if the manifest lies where it says. What the folder of kernel archives
    /// itself is called, no manifest says: mostly `.kpack`.
    pub(crate) fn prefix(&self) -> Option<&str> {
        let Manifest { component_name, prefix, .. } = self.manifest;
        let folder = self.path.strip_suffix(&format!("/{component_name}.kpm"))?;
        let (above, _) = folder.rsplit_once('/')?;
        match prefix.as_str() {
            PREFIX_ITSELF => Some(above),
            prefix => above.strip_suffix(&format!("/{prefix}")),
        }
    }
}
