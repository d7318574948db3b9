//! The packages that come with a package.

use std::collections::BTreeSet;

use super::set::InstalledSet;
use crate::package::Format;
use crate::verify::own::installed::Installed;
use crate::verify::problem::{LibraryLack, PackagePath};

/// How the names of libraries begin that rpm makes capabilities of.
const CAPABILITY_STARTS: [&str; 5] = ["lib", "ld.", "ld-", "ld64.", "ld64-"];

/// The packages that come with a package.
pub(super) struct Brought<'a> {
    set: &'a InstalledSet<'a>,
    package: &'a Installed,
    /// Files of the packages.
    files: BTreeSet<&'a str>,
    /// The names that the packages depend on and that nothing in the set offers.
    outside: BTreeSet<&'a str>,
    /// Whether some of it is of the same version as a package of the set: a part of the set is not
    /// here, and nothing is known of what it would bring.
    is_cut: bool,
}

impl<'a> Brought<'a> {
    pub(super) fn of(set: &'a InstalledSet<'a>, package: &'a Installed) -> Self {
        let mut brought = Self {
            set,
            package,
            files: BTreeSet::from([package.file.as_str()]),
            outside: BTreeSet::new(),
            is_cut: false,
        };
        let mut open = vec![package];
        while let Some(from) = open.pop() {
            for name in from.named() {
                let offering = set.offering.get(name);
                if offering.is_none() {
                    brought.outside.insert(name);
                }
                for other in offering.into_iter().flatten() {
                    if brought.files.insert(&other.file) {
                        open.push(other);
                    }
                }
            }
            brought.is_cut |= from.requires().any(|requirement| {
                let bound = requirement.version.as_ref();
                bound.is_some_and(|(_, version)| set.has_version(version))
                    && !set.offering.contains_key(&*requirement.name)
            });
        }
        brought
    }

    fn has(&self, package: &Installed) -> bool {
        self.files.contains(package.file.as_str())
    }

    /// Why the package does not get the library `name`.
    pub(super) fn lack(&self, name: &str) -> Option<LibraryLack> {
        let holders = self.set.holders.get(name).map(Vec::as_slice).unwrap_or_default();
        let comes_along = holders.iter().any(|(package, _)| self.has(package));
        if comes_along || self.is_cut || self.leads_outside(name, !holders.is_empty()) {
            return None;
        }
        Some(match holders.first() {
            Some((other, path)) => LibraryLack::NotBrought(PackagePath::new(&other.file, *path)),
            None => LibraryLack::NoDependency,
        })
    }

    /// Whether a dependency leads to a library outside of the set, which may have one of that name.
    fn leads_outside(&self, name: &str, is_in_set: bool) -> bool {
        if self.package.format == Some(Format::Rpm) {
            let is_known = CAPABILITY_STARTS.iter().any(|start| name.starts_with(start));
            let is_capability = is_known && name.contains(".so");
            let mut ends = self.all_needs().filter_map(|need| need.strip_prefix(name));
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
            Box::new(self.package.named())
        };
        packages.is_some_and(|packages| self.outside.iter().any(|need| packages.contains(*need)))
            || own.any(|need| self.outside.contains(need) && !self.set.known.contains(need))
    }

    /// The names in all dependencies of the packages.
    fn all_needs(&self) -> impl Iterator<Item = &str> {
        let packages = self.set.packages.iter().filter(|package| self.has(package));
        packages.flat_map(|package| package.named())
    }
}
