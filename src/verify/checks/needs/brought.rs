//! The packages that come with a package.

use std::collections::BTreeSet;

use super::set::{InstalledSet, LinkedFile};
use crate::package::Format;
use crate::verify::own::facts::Class;
use crate::verify::own::installed::Installed;
use crate::verify::own::linked_versions::LinkedVersions;
use crate::verify::paths::folder_of;
use crate::verify::problem::{LibraryLack, PackagePath};

/// How the names of libraries begin that rpm makes capabilities of.
const CAPABILITY_STARTS: [&str; 5] = ["lib", "ld.", "ld-", "ld64.", "ld64-"];

/// The packages that come with a package.
pub(in crate::verify::checks) struct Brought<'a> {
    set: &'a InstalledSet<'a>,
    package: &'a Installed,
    /// Files of the packages.
    files: BTreeSet<&'a str>,
    /// The names that the packages depend on and that nothing in the set offers.
    outside: BTreeSet<&'a str>,
    /// Whether some of it is of the same version as a package of the set: a part of the set is not
    /// here, and nothing is known of what it would bring.
    pub(in crate::verify::checks) is_cut: bool,
}

impl<'a> Brought<'a> {
    pub(in crate::verify::checks) fn of(set: &'a InstalledSet<'a>, package: &'a Installed) -> Self {
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
                let bound = requirement.version.as_ref();
                bound.is_some_and(|(_, version)| set.has_version(version))
                    && !set.offering.contains_key(&*requirement.name)
            });
        }
        brought
    }

    pub(in crate::verify::checks) fn has(&self, package: &Installed) -> bool {
        self.files.contains(package.file.as_str())
    }

    /// Why `user` does not get the library `name`.
    pub(super) fn lack(&self, name: &str, user: &LinkedFile<'_>) -> Option<LibraryLack> {
        let holders = self.set.holders.get(name).map(Vec::as_slice).unwrap_or_default();
        let here: Vec<_> = holders.iter().filter(|(package, _)| self.has(package)).collect();
        if !here.is_empty() {
            let lacks = here.iter().map(|(package, path)| self.unreached(package, path, user));
            let lack = lacks.collect::<Option<Vec<LibraryLack>>>()?.pop()?;
            let is_elsewhere = matches!(lack, LibraryLack::OutOfReach(_))
                && (self.is_cut || self.leads_outside(name, true));
            return Some(lack).filter(|_| !is_elsewhere);
        }
        if self.is_cut || self.leads_outside(name, !holders.is_empty()) {
            return None;
        }
        Some(match holders.first() {
            Some((other, path)) => LibraryLack::NotBrought(PackagePath::new(&other.file, *path)),
            None => LibraryLack::NoDependency,
        })
    }

    /// Why the loader does not find the library at `path` of `holder`: neither a search path nor
    /// its configuration leads there, or that is in a package that does not come along.
    fn unreached(
        &self,
        holder: &Installed,
        path: &str,
        user: &LinkedFile<'_>,
    ) -> Option<LibraryLack> {
        let folder = folder_of(path);
        if self.set.searches(user, folder) {
            return None;
        }
        match self.set.loader.get(folder) {
            Some(tellers) if tellers.iter().any(|teller| self.has(teller)) => None,
            Some(tellers) => tellers.first().map(|t| LibraryLack::Untold(t.file.clone())),
            None if self.set.is_told(folder) => None,
            None => Some(LibraryLack::OutOfReach(PackagePath::new(&holder.file, path))),
        }
    }

    /// The library `name` that comes along, if none that does has `version`.
    pub(super) fn without_version(&self, name: &str, version: &str) -> Option<PackagePath> {
        let holders = self.set.holders.get(name).into_iter().flatten();
        let mut found = None;
        for (package, path) in holders.filter(|(package, _)| self.has(package)) {
            let Some(versions) = versions_of(package, path) else { continue };
            if versions.defined.contains(version) {
                return None;
            }
            found = Some(PackagePath::new(&package.file, *path));
        }
        found
    }

    /// Whether a dependency leads to a library outside of the set, which may have one of that name.
    fn leads_outside(&self, name: &str, is_in_set: bool) -> bool {
        if self.package.format == Some(Format::Rpm) {
            let is_known = CAPABILITY_STARTS.iter().any(|start| name.starts_with(start));
            let is_capability = is_known && name.contains(".so");
            let mut ends = self.all_wishes().filter_map(|wish| wish.strip_prefix(name));
            return !is_capability || ends.any(|end| end.starts_with('('));
        }
        let packages = self.set.tables.get(name);
        if packages.is_none() && !is_in_set {
            return true;
        }
        // What a library in a kernel package needs is its host's.
        let mut own: Box<dyn Iterator<Item = &str>> = if self.package.has_kernels() {
            Box::new(self.outside.iter().copied())
        } else {
            Box::new(self.package.named.iter().map(String::as_str))
        };
        packages.is_some_and(|packages| self.outside.iter().any(|wish| packages.contains(*wish)))
            || own.any(|wish| self.outside.contains(wish) && !self.set.known.contains(wish))
    }

    /// Everything that the packages need.
    fn all_wishes(&self) -> impl Iterator<Item = &str> {
        let packages = self.set.packages.iter().filter(|package| self.has(package));
        packages.flat_map(|package| package.named.iter().map(String::as_str))
    }
}

/// The symbol versions of the library at `path` of `package`.
fn versions_of<'a>(package: &'a Installed, path: &str) -> Option<&'a LinkedVersions> {
    match &package.paths.get(path)?.facts()?.class {
        Class::Host(host) => host.elf.linked.versions.as_ref(),
        _ => None,
    }
}
