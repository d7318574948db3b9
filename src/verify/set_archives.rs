//! The kernel archives of a set, by install path.

use std::collections::{BTreeMap, BTreeSet};

use super::archive::ArchiveFacts;
use super::facts::{Claimed, Class};
use super::installed::Installed;

/// The archives of a set by install path.
pub(super) type Archives<'a> = BTreeMap<&'a str, (&'a Installed, &'a ArchiveFacts)>;

/// The archives of `packages`.
pub(super) fn archives<'a>(packages: &[&'a Installed]) -> Archives<'a> {
    let files = packages.iter().flat_map(|package| package.files().map(move |f| (*package, f)));
    let archives = files.filter_map(|(package, (path, facts))| match &facts.class {
        Class::Archive(archive) => Some((path, (package, archive))),
        _ => None,
    });
    archives.collect()
}

/// The install paths of archives that cannot be read. That they are damaged is told once, where
/// they lie: they are not missing.
pub(super) fn damaged<'a>(packages: &[&'a Installed]) -> BTreeSet<&'a str> {
    let files = packages.iter().flat_map(|package| package.files());
    let damaged =
        files.filter(|(_, facts)| matches!(facts.class, Class::Broken(Claimed::Archive, _)));
    damaged.map(|(path, _)| path).collect()
}
