//! The packages that come with a package.

use std::collections::BTreeSet;

use super::InstalledSet;
use crate::own::installed::Installed;
use rockpack_package::Format;

/// How the names of libraries begin that rpm makes capabilities of.
const CAPABILITY_STARTS: [&str; 5] = ["lib", "ld.", "ld-", "ld64.", "ld64-"];

/// The packages that come with a package.
pub(super) struct Brought<'a> {
    set: &'a InstalledSet<'a>,
    package: &'a Installed,
    /// Positions of the packages.
    packages: BTreeSet<usize>,
    /// All names in their dependencies, including alternatives.
    names: BTreeSet<&'a str>,
    /// Whether some of it is of the same version as a package of the set: a part of the set is not
    /// here, and nothing is known of what it would bring.
    is_cut: bool,
}

impl<'a> Brought<'a> {
    pub(super) fn of(set: &'a InstalledSet<'a>, at: usize) -> Self {
        let (mut packages, mut names) = (BTreeSet::from([at]), BTreeSet::new());
        let (mut open, mut is_cut) = (vec![set.packages[at]], false);
        while let Some(from) = open.pop() {
            for name in from.named().filter(|name| names.insert(*name)) {
                let new = set.resolver.offering(name).filter(|other| packages.insert(*other));
                open.extend(new.map(|other| set.packages[other]));
            }
            is_cut |= from.requires().any(|bound| {
                let version = bound.version.as_ref();
                version.is_some_and(|(_, version)| set.has_version(version))
                    && !set.resolver.knows(&bound.name)
            });
        }
        Self { set, package: set.packages[at], packages, names, is_cut }
    }

    /// Why the package does not get the library `name`.
    pub(super) fn lack(&self, name: &str) -> Option<String> {
        let holders = self.set.holders.get(name).map(Vec::as_slice).unwrap_or_default();
        let comes_along = holders.iter().any(|(at, _)| self.packages.contains(at));
        if comes_along || self.is_cut || self.leads_outside(name, !holders.is_empty()) {
            return None;
        }
        Some(match holders.first() {
            Some((at, path)) => {
                let file = &self.set.packages[*at].file;
                format!("which is {path} of {file}, and no dependency brings that")
            }
            None => "and no dependency is on anything that has it".to_owned(),
        })
    }

    /// Whether a dependency leads to a library outside of the set, which may have one of that name.
    fn leads_outside(&self, name: &str, is_in_set: bool) -> bool {
        if self.set.resolver.format() == Format::Rpm {
            let is_known = CAPABILITY_STARTS.iter().any(|start| name.starts_with(start));
            let is_capability = is_known && name.contains(".so");
            let mut ends = self.names.iter().filter_map(|need| need.strip_prefix(name));
            return !is_capability || ends.any(|end| end.starts_with('('));
        }
        let holders = self.set.tables.get(name);
        if holders.is_none() && !is_in_set {
            return true;
        }
        // What a library in a kernel package needs is its host's.
        let has_kernels = self.package.has_kernels();
        let own: BTreeSet<&str> = self.package.named().collect();
        let mut outside = self.names.iter().filter(|name| !self.set.resolver.knows(name));
        outside.any(|&need| {
            holders.is_some_and(|holders| holders.contains(need))
                || (has_kernels || own.contains(need)) && !self.set.known.contains(need)
        })
    }
}
