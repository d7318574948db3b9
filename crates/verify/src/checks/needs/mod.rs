//! Whether what programs and libraries link to comes with their packages.
//!
//! Each needed library has to be in the package itself or in one that its dependencies bring, or a
//! dependency has to lead out of the set:
//!
//! | | what leads to a library outside of the set |
//! |---|---|
//! | rpm | the library as a capability, `libc.so.6()(64bit)` or one of its versions |
//! | deb | a package that has it in the table of some distribution, or else any that is in none |
//!
//! A `.deb` does not say which package it wants for which library. So a library that neither a
//! table nor the set knows passes, and so does one whose package depends on something that no table
//! knows.
//!
//! The build judges where loaders look and which symbol versions libraries have, and reports it.
//!
//! Findings of the build are taken into account: libraries that it found nowhere (`R070`) or out of
//! reach (`R095`), those that its configuration names no dependency for (`R094`), files that it did not
//! ask (`R093`).

mod brought;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use rockpack_core::error::Result;

use super::excuses::Excuses;
use crate::own::facts::Class;
use crate::own::installed::{Installed, InstalledNode};
use crate::own::linked::Linked;
use crate::paths::name_of;
use crate::problem::{Problem, Problems};
use brought::Brought;
use rockpack_package::Format;
use rockpack_package::dependencies::Distribution;
use rockpack_package::resolver::Resolver;

/// Library → the packages that have it, in all distributions with a table.
type LibraryTables = BTreeMap<String, BTreeSet<String>>;

/// All packages, and who has what.
struct InstalledSet<'a> {
    packages: &'a [&'a Installed],
    /// The same packages.
    resolver: &'a Resolver<'a, 'a>,
    tables: &'a LibraryTables,
    /// Every package that some table names.
    known: BTreeSet<&'a str>,
    /// File name, or soname → the positions of the packages with such a file, and its path.
    holders: BTreeMap<&'a str, Vec<(usize, &'a str)>>,
    /// Versions of the packages, without their releases.
    versions: BTreeSet<&'a str>,
}

/// Checks the packages of a set, all of one format; `resolver` has the same.
pub(super) fn check<'a>(
    packages: &'a [&'a Installed],
    resolver: &'a Resolver<'a, 'a>,
    excuses: &Excuses,
    problems: &mut Problems,
) -> Result<()> {
    let no_tables = LibraryTables::new();
    let tables = if resolver.format() == Format::Deb { tables()? } else { &no_tables };
    let set = InstalledSet::new(packages, resolver, tables);
    for (at, package) in packages.iter().enumerate() {
        let mut users: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (path, linked) in linked(package).filter(|(path, _)| !excuses.asks_nothing_of(path)) {
            linked.needed.iter().for_each(|name| users.entry(name).or_default().push(path));
        }
        if users.is_empty() {
            continue;
        }
        let brought = Brought::of(&set, at);
        for (name, mut users) in users {
            users.retain(|path| !excuses.leaves_open(name, package.format, path));
            let user = users.first().copied();
            if let Some((path, reason)) = user.and_then(|path| Some((path, brought.lack(name)?))) {
                let (package, path) = (package.file.clone(), path.to_owned());
                let library = name.into();
                problems.add(Problem::LibraryMissing { package, path, library, reason });
            }
        }
    }
    Ok(())
}

impl<'a> InstalledSet<'a> {
    fn new(
        packages: &'a [&'a Installed],
        resolver: &'a Resolver<'a, 'a>,
        tables: &'a LibraryTables,
    ) -> Self {
        let mut holders: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
        for (at, package) in packages.iter().enumerate() {
            for (path, node) in &package.paths {
                for name in names_of(path, node) {
                    holders.entry(name).or_default().push((at, path.as_str()));
                }
            }
        }
        let known = tables.values().flatten().map(String::as_str).collect();
        let versions = packages.iter().map(|package| upstream(&package.version)).collect();
        Self { packages, resolver, tables, known, holders, versions }
    }

    /// Whether `version`, which has a release, is that of some package of the set, whatever its release.
    fn has_version(&self, version: &str) -> bool {
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

/// The programs and libraries of a package with their paths. A program that nobody may run is data.
fn linked(package: &Installed) -> impl Iterator<Item = (&str, &Linked)> {
    package.paths.iter().filter_map(|(path, node)| match node {
        InstalledNode::File { mode, facts } => match &facts.class {
            Class::Host(host) if !host.elf.linked.is_program || mode & 0o111 != 0 => {
                Some((path.as_str(), &host.elf.linked))
            }
            _ => None,
        },
        _ => None,
    })
}

/// The tables of all distributions, parsed once.
fn tables() -> Result<&'static LibraryTables> {
    static TABLES: OnceLock<LibraryTables> = OnceLock::new();
    match TABLES.get() {
        Some(tables) => Ok(tables),
        None => parsed().map(|tables| TABLES.get_or_init(|| tables)),
    }
}

fn parsed() -> Result<LibraryTables> {
    let mut tables = LibraryTables::new();
    for name in Distribution::names() {
        for library in Distribution::named(name)?.packages() {
            let (soname, packages) = library?;
            tables.entry(soname.to_owned()).or_default().extend(packages);
        }
    }
    Ok(tables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_names_packages() {
        let tables = tables().unwrap();
        assert!(tables["libc.so.6"].contains("libc6"));
        let elf: Vec<&str> = tables["libelf.so.1"].iter().map(String::as_str).collect();
        assert_eq!(elf, ["libelf1", "libelf1t64"]);
        for packages in tables.values() {
            let mut all = packages.iter().flat_map(|name| name.chars());
            let is_plain = all.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
            assert!(is_plain, "{packages:?}");
        }
    }
}
