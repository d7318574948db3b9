//! The kernel archives of a set, by install path.

use std::collections::{BTreeMap, BTreeSet};

use crate::verify::own::archive::ArchiveFacts;
use crate::verify::own::facts::{Claimed, Class};
use crate::verify::own::installed::Installed;

/// The archives of a set by install path.
pub(in crate::verify) type Archives<'a> = BTreeMap<&'a str, (&'a Installed, &'a ArchiveFacts)>;

/// The archives of `packages`.
pub(in crate::verify) fn archives<'a>(packages: &[&'a Installed]) -> Archives<'a> {
    let files = packages.iter().flat_map(|package| package.files().map(move |f| (*package, f)));
    let archives = files.filter_map(|(package, (path, facts))| match &facts.class {
        Class::Archive(archive) => Some((path, (package, archive))),
        _ => None,
    });
    archives.collect()
}

/// The install paths of archives that cannot be read. That they are damaged is told once, where
/// they lie: they are not missing.
pub(in crate::verify) fn damaged<'a>(packages: &[&'a Installed]) -> BTreeSet<&'a str> {
    let files = packages.iter().flat_map(|package| package.files());
    let damaged =
        files.filter(|(_, facts)| matches!(facts.class, Class::Broken(Claimed::Archive, _)));
    damaged.map(|(path, _)| path).collect()
}
