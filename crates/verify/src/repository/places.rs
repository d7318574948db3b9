//! Packages that are at two places of a repository.

use std::collections::BTreeMap;

use super::context::Context;
use crate::problem::NamedVersion;

/// The identity of a package for those who install it: name, architecture, version.
pub(super) type PackageIdentity<'a> = (&'a str, &'a str, &'a str);

/// An epoch of zero is that of a version without one.
pub(super) fn identity<'a>(name: &'a str, arch: &'a str, version: &'a str) -> PackageIdentity<'a> {
    (name, arch, version.strip_prefix("0:").unwrap_or(version))
}

/// The place of a package in an index.
#[derive(Clone, Copy)]
pub(super) struct IndexedVersion<'a> {
    pub identity: PackageIdentity<'a>,
    pub path: &'a str,
    /// SHA-256 of the package.
    pub digest: &'a str,
}

/// A version of a package is one file: of two, some clients install the one and some the other.
pub(super) fn check<'a>(
    context: &mut Context<'_>,
    places: impl Iterator<Item = IndexedVersion<'a>>,
) {
    let mut first = BTreeMap::new();
    for place in places {
        let other: IndexedVersion<'_> = *first.entry(place.identity).or_insert(place);
        if other.digest != place.digest {
            let (name, arch, version) = place.identity;
            let identity = NamedVersion::new(name, version, arch);
            let reason = format!("is {identity}, and so is {} with other content", other.path);
            context.contradicts(place.path, reason);
        }
    }
}
