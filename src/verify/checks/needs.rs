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
//! Where a library of the set lies in a folder that the loader is told of, the package that tells
//! the loader has to come with it. Whatever loads a file may have loaded its libraries before: a
//! library in a folder of its own that no search path names passes, if it comes with the package.
//!
//! Findings of the build are taken into account: libraries that it found nowhere (`R070`), those
//! that its configuration names no dependency for (`R094`), files that it did not ask (`R093`).

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use super::excuses::Excuses;
use crate::dependencies::Distribution;
use crate::error::Result;
use crate::package::Format;
use crate::verify::own::facts::Class;
use crate::verify::own::installed::{Installed, InstalledNode};
use crate::verify::own::linked::Linked;
use crate::verify::problem::{LibraryLack, PackagePath, Problem, Problems};

/// Library → the packages that have it, in all distributions with a table.
type LibraryTables = BTreeMap<String, BTreeSet<String>>;

/// The longest path that Linux opens.
const PATH_MAX: usize = 4096;

/// How the names of libraries begin that rpm makes capabilities of.
const CAPABILITY_STARTS: [&str; 5] = ["lib", "ld.", "ld-", "ld64.", "ld64-"];

/// Checks the packages of a set, all of one format.
pub(in crate::verify) fn check(
    packages: &[&Installed],
    excuses: &Excuses,
    problems: &mut Problems,
) -> Result<()> {
    let is_deb = packages.iter().any(|package| package.format == Some(Format::Deb));
    let tables = if is_deb { tables()? } else { LibraryTables::new() };
    let set = InstalledSet::new(packages, &tables);
    for package in packages {
        let users = linked(package).filter(|(path, _)| !excuses.asks_nothing_of(path));
        let users: Vec<User<'_>> = users.map(|(path, linked)| User::new(path, linked)).collect();
        let mut needs: BTreeMap<&str, Vec<&User<'_>>> = BTreeMap::new();
        for user in &users {
            for name in &user.linked.needed {
                needs.entry(name).or_default().push(user);
            }
        }
        if needs.is_empty() {
            continue;
        }
        let brought = Brought::of(&set, package);
        for (name, users) in needs {
            if excuses.leaves_open(name, package.format) {
                continue;
            }
            let lack = users.iter().find_map(|user| Some((user.path, brought.lack(name, user)?)));
            if let Some((path, lack)) = lack {
                let [package, path, library] =
                    [&package.file, path, name].map(|text: &str| text.to_owned());
                problems.add(Problem::LibraryMissing { package, path, library, lack });
            }
        }
    }
    Ok(())
}

fn tables() -> Result<LibraryTables> {
    let mut tables = LibraryTables::new();
    for name in Distribution::names() {
        for library in Distribution::named(name)?.packages() {
            let (soname, packages) = library?;
            tables.entry(soname.to_owned()).or_default().extend(packages);
        }
    }
    Ok(tables)
}

/// The programs and libraries of a package. A program that nobody may run is data.
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

/// A file that needs libraries.
struct User<'a> {
    path: &'a str,
    linked: &'a Linked,
    /// The folders of its search path, once they are asked for: there may be thousands.
    searched: OnceCell<BTreeSet<String>>,
}

impl<'a> User<'a> {
    fn new(path: &'a str, linked: &'a Linked) -> Self {
        Self { path, linked, searched: OnceCell::new() }
    }

    fn searches(&self, folder: &str) -> bool {
        let own = split(self.path).0;
        // Nothing is opened by a longer path, and a part may say `$ORIGIN` as often as it likes.
        let fits =
            |part: &&str| part.len() + part.matches("ORIGIN").count() * own.len() <= PATH_MAX;
        let parts = || {
            let parts = self.linked.search.split(':').filter(fits);
            parts.map(|part| resolved(part, own)).collect()
        };
        self.searched.get_or_init(parts).contains(folder)
    }
}

/// All packages, and who has what.
struct InstalledSet<'a> {
    packages: &'a [&'a Installed],
    tables: &'a LibraryTables,
    /// Every package that some table names.
    known: BTreeSet<&'a str>,
    /// Package or capability → the packages that are it or provide it.
    offering: BTreeMap<&'a str, Vec<&'a Installed>>,
    /// File name, or soname → the packages with such a file, and its path.
    holders: BTreeMap<&'a str, Vec<(&'a Installed, &'a str)>>,
    /// Folder → the packages that tell the loader of it.
    loader: BTreeMap<&'a str, Vec<&'a Installed>>,
    /// Versions of the packages.
    versions: BTreeSet<&'a str>,
}

impl<'a> InstalledSet<'a> {
    fn new(packages: &'a [&'a Installed], tables: &'a LibraryTables) -> Self {
        let known = tables.values().flatten().map(String::as_str).collect();
        let (mut offering, mut holders) = (BTreeMap::new(), BTreeMap::new());
        let mut loader: BTreeMap<&str, Vec<&Installed>> = BTreeMap::new();
        for &package in packages {
            let provided = package.provides.iter().map(|offer| offer.name.as_str());
            for name in provided.chain([package.name.as_str()]) {
                offering.entry(name).or_insert_with(Vec::new).push(package);
            }
            for (path, node) in &package.paths {
                let mut hold = |name: &'a str| {
                    holders.entry(name).or_insert_with(Vec::new).push((package, path.as_str()));
                };
                if !matches!(node, InstalledNode::Directory { .. }) {
                    hold(split(path).1);
                }
                let InstalledNode::File { facts, .. } = node else { continue };
                match &facts.class {
                    Class::Host(host) => host.elf.linked.soname.iter().for_each(|name| hold(name)),
                    Class::LoaderFolders(folders) => folders
                        .iter()
                        .for_each(|folder| loader.entry(folder).or_default().push(package)),
                    _ => {}
                }
            }
        }
        let versions = packages.iter().map(|package| package.version.as_str()).collect();
        Self { packages, tables, known, offering, holders, loader, versions }
    }
}

/// What comes with a package.
struct Brought<'a> {
    set: &'a InstalledSet<'a>,
    package: &'a Installed,
    /// Files of the packages.
    files: BTreeSet<&'a str>,
    /// What they need that the set does not have.
    outside: BTreeSet<&'a str>,
    /// Whether some of it is of the same version as a package of the set: a part of the set is not
    /// here, and nothing is known of what it would bring.
    is_cut: bool,
}

impl<'a> Brought<'a> {
    fn of(set: &'a InstalledSet<'a>, package: &'a Installed) -> Self {
        let mut brought = Self {
            set,
            package,
            files: BTreeSet::from([package.file.as_str()]),
            outside: BTreeSet::new(),
            is_cut: false,
        };
        let mut open = vec![package];
        while let Some(from) = open.pop() {
            for name in &from.named {
                let offering = set.offering.get(name.as_str());
                if offering.is_none() {
                    brought.outside.insert(name);
                }
                for other in offering.into_iter().flatten() {
                    if brought.files.insert(&other.file) {
                        open.push(other);
                    }
                }
            }
            brought.is_cut |= from.requires.iter().any(|requirement| {
                let version = requirement.exact.as_deref();
                version.is_some_and(|version| set.versions.contains(version))
                    && !set.offering.contains_key(requirement.name.as_str())
            });
        }
        brought
    }

    fn has(&self, package: &Installed) -> bool {
        self.files.contains(package.file.as_str())
    }

    /// Why `user` does not get the library `name`.
    fn lack(&self, name: &str, user: &User<'_>) -> Option<LibraryLack> {
        let holders = self.set.holders.get(name).map(Vec::as_slice).unwrap_or_default();
        let here: Vec<_> = holders.iter().filter(|(package, _)| self.has(package)).collect();
        if !here.is_empty() {
            let told = |(_, path): &&(&Installed, &str)| self.untold(path, user);
            let untold: Option<Vec<LibraryLack>> = here.iter().map(told).collect();
            return untold?.pop();
        }
        if self.is_cut || self.leads_outside(name, !holders.is_empty()) {
            return None;
        }
        Some(match holders.first() {
            Some((other, path)) => LibraryLack::NotBrought(PackagePath::new(&other.file, *path)),
            None => LibraryLack::NoDependency,
        })
    }

    /// Why the loader does not find the library at `path`, if it lies where it is told to look by
    /// a package that does not come along.
    fn untold(&self, path: &str, user: &User<'_>) -> Option<LibraryLack> {
        let (folder, _) = split(path);
        let tellers = self.set.loader.get(folder)?;
        if tellers.iter().any(|teller| self.has(teller)) || user.searches(folder) {
            return None;
        }
        tellers.first().map(|teller| LibraryLack::Untold(teller.file.clone()))
    }

    /// Whether a dependency leads to a library outside of the set, which may have one of that name.
    fn leads_outside(&self, name: &str, is_in_set: bool) -> bool {
        if self.package.format == Some(Format::Rpm) {
            let is_known = CAPABILITY_STARTS.iter().any(|start| name.starts_with(start));
            let is_capability = is_known && name.contains(".so");
            let named = |wish: &&str| wish.strip_prefix(name).is_some_and(|r| r.starts_with('('));
            return !is_capability || self.all_wishes().any(|wish| named(&wish));
        }
        let packages = self.set.tables.get(name);
        if packages.is_none() && !is_in_set {
            return true;
        }
        let is_strange = |wish: &str| !self.set.known.contains(wish);
        // What a library in a kernel package needs is its host's.
        let mut own: Box<dyn Iterator<Item = &str>> = if self.package.has_kernels() {
            Box::new(self.outside.iter().copied())
        } else {
            Box::new(self.package.named.iter().map(String::as_str))
        };
        let has = |wish: &str| packages.is_some_and(|packages| packages.contains(wish));
        self.outside.iter().any(|wish| has(wish))
            || own.any(|wish| self.outside.contains(wish) && is_strange(wish))
    }

    /// Everything that the packages need.
    fn all_wishes(&self) -> impl Iterator<Item = &str> {
        let packages = self.set.packages.iter().filter(|package| self.has(package));
        packages.flat_map(|package| package.named.iter().map(String::as_str))
    }
}

/// Folder and name of an absolute path.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// The folder that a part of a search path means for a file in `own`, as far as that is the same
/// on every system.
fn resolved(part: &str, own: &str) -> String {
    let text = part.replace("${ORIGIN}", own).replace("$ORIGIN", own);
    let mut parts = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_paths_are_resolved_where_the_file_lies() {
        for (part, folder) in [
            ("$ORIGIN/../lib", "/opt/r/lib"),
            ("${ORIGIN}", "/opt/r/bin"),
            ("/opt/r/lib/./x/..", "/opt/r/lib"),
            ("$ORIGIN/../../../../..", "/"),
        ] {
            assert_eq!(resolved(part, "/opt/r/bin"), folder);
        }
    }

    #[test]
    fn every_table_names_packages() {
        let tables = tables().unwrap();
        assert!(tables["libc.so.6"].contains("libc6"));
        let elf: Vec<&str> = tables["libelf.so.1"].iter().map(String::as_str).collect();
        assert_eq!(elf, ["libelf1", "libelf1t64"]);
        for packages in tables.values() {
            let plain = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
            assert!(packages.iter().all(|name| name.chars().all(plain)), "{packages:?}");
        }
    }
}
