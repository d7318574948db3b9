//! Checks that the libraries that programs and libraries need are installed with their packages.
//!
//! Each needed library must be in the package itself or in one that its dependencies install, or a dependency must lead
//! out of the set:
//!
//! | | leads to a library outside the set |
//! |---|---|
//! | rpm | the library as a capability, `libc.so.6()(64bit)` or one of its versions |
//! | deb | a package that has it in the table of some distribution, or any package that is in no table |
//!
//! A `.deb` does not state which package it needs for which library. So a library that is in no table and not in the
//! set passes, and so does one whose package depends on a package that is in no table.
//!
//! The build checks search paths and symbol versions. Binaries may need the shim by a path relative to their own
//! folder: that path is checked here, also in wheels. If they need it by its soname, it must be somewhere in the set or
//! the installed prefix.
//!
//! Findings of the build explain libraries that it did not find (`R070`) or that the loader does not reach (`R095`),
//! those without a configured dependency (`R094`) or with a replaced one (`R158`), and ignored files (`R093`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use rockpack_core::tree::TreePath;
use rockpack_distribution::shipped_libraries;
use rockpack_package::Format;
use rockpack_package::resolver::Resolver;
use rockpack_split::host_binary::SHIM;

use crate::checks::excuses::{Excuses, matches_any};
use crate::name_of;
use crate::problem::{Problem, Problems};
use crate::readers::host_elf::DynamicInfo;
use crate::readers::installed::{InstalledNode, PackageContents, files_of};

/// Library → packages that have it, in all distributions with a table.
type LibraryTables = BTreeMap<String, BTreeSet<String>>;

/// All packages, indexed by their files.
struct InstalledSet<'a> {
    packages: &'a [&'a PackageContents],
    resolver: &'a Resolver<'a, 'a>,
    tables: &'a LibraryTables,
    /// Every package in a table.
    known: BTreeSet<&'a str>,
    /// File name or soname → positions of the packages with such a file, and its path.
    holders: BTreeMap<&'a str, Vec<(usize, &'a str)>>,
    /// Versions of the packages, without their releases.
    versions: BTreeSet<&'a str>,
}

/// Checks the packages of a set, all of one format; `resolver` has the same packages.
pub(super) fn check<'a>(
    packages: &'a [&'a PackageContents],
    resolver: &'a Resolver<'a, 'a>,
    excuses: &Excuses,
    problems: &mut Problems,
) {
    let no_tables = LibraryTables::new();
    let tables = if resolver.format == Format::Deb { &*TABLES } else { &no_tables };
    let mut holders: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
    for (at, package) in packages.iter().enumerate() {
        for (path, node) in &package.paths {
            let file_name = (!node.is_folder()).then(|| name_of(path));
            let host = node.facts().and_then(|facts| facts.host());
            let soname = host.and_then(|host| host.elf.linked.soname.as_deref());
            for name in file_name.into_iter().chain(soname) {
                holders.entry(name).or_default().push((at, path.as_str()));
            }
        }
    }
    let known = tables.values().flatten().map(String::as_str).collect();
    let versions = packages.iter().map(|package| upstream(&package.version)).collect();
    let set = InstalledSet { packages, resolver, tables, known, holders, versions };
    check_shim(packages, problems);
    check_has_shim(packages, excuses, problems);
    for (at, package) in packages.iter().enumerate() {
        let mut users: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let asked = linked(package).filter(|(path, _)| !matches_any(&excuses.ignored_files, path));
        for (path, linked) in asked {
            linked.needed.iter().for_each(|name| users.entry(name).or_default().push(path));
        }
        if users.is_empty() {
            continue;
        }
        let brought = DependencyClosure::of(&set, at);
        for (name, mut users) in users {
            users.retain(|path| !excuses.allows_missing_library(name, package.format, path));
            let user = users.first().copied();
            if let Some((path, reason)) =
                user.and_then(|path| Some((path, brought.missing_reason(name)?)))
            {
                let (package, path) = (package.file.clone(), path.to_owned());
                let library = name.into();
                problems.add(Problem::LibraryMissing { package, path, library, reason });
            }
        }
    }
}

/// Checks that the shim is at the path, starting with `$ORIGIN`, by which files of `packages` need it.
pub(crate) fn check_shim(packages: &[&PackageContents], problems: &mut Problems) {
    for (package, path, facts) in files_of(packages) {
        let Some(library) = facts.host().and_then(|host| host.elf.linked.shim()) else { continue };
        let Some(way) = library.strip_prefix("$ORIGIN/") else { continue };
        let own = TreePath::new(path.trim_start_matches('/')).ok();
        let at = own.and_then(|own| own.resolve_link(way)).map(|at| format!("/{at}"));
        let nodes = at.iter().flat_map(|at| packages.iter().filter_map(move |it| it.paths.get(at)));
        let mut hosts = nodes.filter_map(|node| node.facts()?.host());
        if !hosts.any(|host| host.elf.linked.is_shim()) {
            let (package, path) = (package.file.clone(), path.to_owned());
            let (library, reason) = (library.into(), "which is not at that path".to_owned());
            problems.add(Problem::LibraryMissing { package, path, library, reason });
        }
    }
}

/// Checks that the shim is in `set` if files need it by its soname; reports one such file of each package.
pub(crate) fn check_has_shim(set: &[&PackageContents], excuses: &Excuses, problems: &mut Problems) {
    let mut hosts = files_of(set).filter_map(|(_, path, facts)| Some((path, facts.host()?)));
    if excuses.is_part
        || excuses.left_out.iter().any(|path| name_of(path) == SHIM)
        || hosts.any(|(path, host)| name_of(path) == SHIM && host.elf.linked.is_shim())
    {
        return;
    }
    for package in set {
        let user = package.files().find(|(path, facts)| {
            facts.host().is_some_and(|host| host.elf.linked.shim() == Some(SHIM))
                && !matches_any(&excuses.ignored_files, path)
                && !excuses.allows_missing_library(SHIM, package.format, path)
        });
        let Some((path, _)) = user else { continue };
        let (package, path) = (package.file.clone(), path.to_owned());
        let (library, reason) = (SHIM.into(), "which is missing".to_owned());
        problems.add(Problem::LibraryMissing { package, path, library, reason });
    }
}

fn upstream(version: &str) -> &str {
    version.rsplit_once('-').map_or(version, |(upstream, _)| upstream)
}

/// The programs and libraries of a package with their paths. A program without the executable bit is data.
fn linked(package: &PackageContents) -> impl Iterator<Item = (&str, &DynamicInfo)> {
    package.paths.iter().filter_map(|(path, node)| {
        let InstalledNode::File { mode, facts } = node else { return None };
        let linked = &facts.host()?.elf.linked;
        (!linked.is_program || mode & 0o111 != 0).then_some((path.as_str(), linked))
    })
}

/// The tables of all distributions. A test reads each, so none is broken at run time.
static TABLES: LazyLock<LibraryTables> = LazyLock::new(|| shipped_libraries().unwrap_or_default());

/// Prefixes of library names that rpm turns into capabilities.
const CAPABILITY_STARTS: [&str; 5] = ["lib", "ld.", "ld-", "ld64.", "ld64-"];

/// The packages that are installed with a package.
struct DependencyClosure<'a> {
    set: &'a InstalledSet<'a>,
    package: &'a PackageContents,
    packages: BTreeSet<usize>,
    /// All names in their dependencies, including alternatives.
    names: BTreeSet<&'a str>,
    /// Whether a dependency names a version of the set but no package of it: that part of the set was not given, and
    /// its files are unknown.
    is_incomplete: bool,
}

impl<'a> DependencyClosure<'a> {
    fn of(set: &'a InstalledSet<'a>, at: usize) -> Self {
        let (mut packages, mut names) = (BTreeSet::from([at]), BTreeSet::new());
        let (mut open, mut is_incomplete) = (vec![set.packages[at]], false);
        while let Some(from) = open.pop() {
            for name in from.named().filter(|name| names.insert(*name)) {
                let new = set.resolver.offering(name).filter(|other| packages.insert(*other));
                open.extend(new.map(|other| set.packages[other]));
            }
            is_incomplete |= from.requires().any(|bound| {
                let version = bound.version.as_ref();
                let is_of_set = version.is_some_and(|(_, version)| {
                    version.contains('-') && set.versions.contains(upstream(version))
                });
                is_of_set && !set.resolver.knows(&bound.name)
            });
        }
        Self { set, package: set.packages[at], packages, names, is_incomplete }
    }

    /// The reason why the library `name` is not installed with the package.
    fn missing_reason(&self, name: &str) -> Option<String> {
        let holders = self.set.holders.get(name).map(Vec::as_slice).unwrap_or_default();
        let comes_along = holders.iter().any(|(at, _)| self.packages.contains(at));
        if comes_along || self.is_incomplete || self.leads_outside(name, !holders.is_empty()) {
            return None;
        }
        Some(match holders.first() {
            Some((at, path)) => {
                let file = &self.set.packages[*at].file;
                format!("which is {path} of {file}, but no dependency installs that package")
            }
            None => "but no dependency provides it".to_owned(),
        })
    }

    /// Whether a dependency leads to a library of that name outside the set, which may have one as well.
    fn leads_outside(&self, name: &str, is_in_set: bool) -> bool {
        if self.set.resolver.format == Format::Rpm {
            let is_known = CAPABILITY_STARTS.iter().any(|start| name.starts_with(start));
            let is_capability = is_known && name.contains(".so");
            let mut ends = self.names.iter().filter_map(|need| need.strip_prefix(name));
            return !is_capability || ends.any(|end| end.starts_with('('));
        }
        let holders = self.set.tables.get(name);
        if holders.is_none() && !is_in_set {
            return true;
        }
        // The host package has the dependencies of libraries in its kernel packages.
        let has_kernels = self.package.has_kernels();
        let own: BTreeSet<&str> = self.package.named().collect();
        let mut outside = self.names.iter().filter(|name| !self.set.resolver.knows(name));
        outside.any(|&need| {
            holders.is_some_and(|holders| holders.contains(need))
                || (has_kernels || own.contains(need)) && !self.set.known.contains(need)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_names_packages() {
        let tables = shipped_libraries().unwrap();
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
