//! The programs and libraries of a set, and which package has what.

use std::collections::{BTreeMap, BTreeSet};

use super::LibraryTables;
use crate::package::RelationKind;
use crate::verify::checks::excuses::Excuses;
use crate::verify::own::facts::Class;
use crate::verify::own::installed::{Installed, InstalledNode};
use crate::verify::own::linked::Linked;
use crate::verify::paths::name_of;

/// A program or library.
pub(super) struct LinkedFile<'a> {
    pub(super) package: &'a Installed,
    pub(super) path: &'a str,
    pub(super) linked: &'a Linked,
}

/// All packages, and who has what.
pub(super) struct InstalledSet<'a> {
    pub(super) packages: &'a [&'a Installed],
    pub(super) tables: &'a LibraryTables,
    /// All programs and libraries whose needs count.
    pub(super) linked: Vec<LinkedFile<'a>>,
    /// Every package that some table names.
    pub(super) known: BTreeSet<&'a str>,
    /// Package or capability → the packages that are it or provide it.
    pub(super) offering: BTreeMap<&'a str, Vec<&'a Installed>>,
    /// File name, or soname → the packages with such a file, and its path.
    pub(super) holders: BTreeMap<&'a str, Vec<(&'a Installed, &'a str)>>,
    /// Versions of the packages, without their releases.
    versions: BTreeSet<&'a str>,
}

impl<'a> InstalledSet<'a> {
    pub(super) fn new(
        packages: &'a [&'a Installed],
        tables: &'a LibraryTables,
        excuses: &Excuses,
    ) -> Self {
        let (mut offering, mut holders) = (BTreeMap::new(), BTreeMap::new());
        for &package in packages {
            let provided = package.declared.bounds(RelationKind::Provides);
            let provided = provided.map(|offer| &*offer.name);
            for name in provided.chain([package.name.as_str()]) {
                offering.entry(name).or_insert_with(Vec::new).push(package);
            }
            for (path, node) in &package.paths {
                for name in names_of(path, node) {
                    holders.entry(name).or_insert_with(Vec::new).push((package, path.as_str()));
                }
            }
        }
        let linked = packages.iter().flat_map(|package| linked(package));
        Self {
            packages,
            tables,
            linked: linked.filter(|file| !excuses.asks_nothing_of(file.path)).collect(),
            known: tables.values().flatten().map(String::as_str).collect(),
            offering,
            holders,
            versions: packages.iter().map(|package| upstream(&package.version)).collect(),
        }
    }

    /// Whether `version`, which has a release, is that of some package of the set, whatever its release.
    pub(super) fn has_version(&self, version: &str) -> bool {
        version.contains('-') && self.versions.contains(upstream(version))
    }
}

/// The file name, unless it is that of a folder, and the soname of what is at `path`.
fn names_of<'a>(path: &'a str, node: &'a InstalledNode) -> impl Iterator<Item = &'a str> {
    let file_name = (!matches!(node, InstalledNode::Directory { .. })).then(|| name_of(path));
    let soname = node.facts().and_then(|facts| match &facts.class {
        Class::Host(host) => host.elf.linked.soname.as_deref(),
        _ => None,
    });
    file_name.into_iter().chain(soname)
}

/// A version without its release.
fn upstream(version: &str) -> &str {
    version.rsplit_once('-').map_or(version, |(upstream, _)| upstream)
}

/// The programs and libraries of a package. A program that nobody may run is data.
fn linked(package: &Installed) -> impl Iterator<Item = LinkedFile<'_>> {
    package.paths.iter().filter_map(|(path, node)| match node {
        InstalledNode::File { mode, facts } => match &facts.class {
            Class::Host(host) if !host.elf.linked.is_program || mode & 0o111 != 0 => {
                Some(LinkedFile { package, path, linked: &host.elf.linked })
            }
            _ => None,
        },
        _ => None,
    })
}
