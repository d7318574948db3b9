//! The effect of a publication on clients that have the earlier packages: packages that an update holds back,
//! and packages that it would have to remove.
//!
//! A client has the newest earlier version of each package, if these can be installed together. An update
//! installs the newest version of each package. Checked for each architecture, with packages for all:
//!
//! | | reported if | not reported |
//! |---|---|---|
//! | needs (`Depends`, `Pre-Depends`, `Requires`) | the newest versions of other packages do not meet them | names that no package has before or afterwards, because the distribution has them; paths that `primary` lists; needs with an alternative that the distribution may have |
//! | exclusions (`Conflicts`, `Breaks`) | the newest version of another package is excluded, and clients have both | packages that excluded each other before, or replace one another |
//!
//! A relation that was already not met before is not reported. Neither is a package that another replaces
//! (`Obsoletes`; `Replaces` with `Conflicts` or `Breaks`), because it is meant to go. A package that no
//! longer fits offers nothing to others. A name that is no longer offered stays on the clients.

mod clients;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use super::Format;
use super::offered::OfferedPackage;
use super::resolver::{for_all_machines, machines};
use clients::Clients;
use rockpack_report::{Finding, Misfit, found};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effect {
    /// Packages that cannot be installed with the newest others, by name and architecture.
    pub misfits: Vec<Misfit>,
    /// Names of packages that an update therefore holds back.
    pub held_back: BTreeSet<String>,
    /// Architecture → packages that an update downloads if nothing is held back, as positions in `after`.
    pub downloads: BTreeMap<String, Vec<usize>>,
}

impl Effect {
    /// The effect that the newest of `after` have on clients with the newest of `before`. All packages are of
    /// `format`.
    pub fn of(format: Format, before: &[OfferedPackage<'_>], after: &[OfferedPackage<'_>]) -> Self {
        let mut misfits = BTreeMap::new();
        let mut effect = Self::default();
        let archs = before.iter().chain(after).map(|package| package.arch);
        for machine in machines(format, archs) {
            let archs = [machine, for_all_machines(format)];
            let older = newest(format, before, &archs);
            let newer = newest(format, after, &archs);
            let had = older.values().map(|at| &before[*at]).collect();
            let clients = Clients::new(format, had, newer.values().map(|at| &after[*at]).collect());
            for it in clients.misfits() {
                misfits.entry((it.package.clone(), it.architecture.clone())).or_insert(it);
            }
            effect.held_back.extend(clients.held_back().map(str::to_owned));
            let positions: Vec<usize> = newer.into_values().collect();
            let downloads = clients.downloads().into_iter().map(|at| positions[at]).collect();
            effect.downloads.insert(machine.to_owned(), downloads);
        }
        Self { misfits: misfits.into_values().collect(), ..effect }
    }
}

/// Positions of the newest package of each name, among those for `archs`.
fn newest<'p>(
    format: Format,
    packages: &'p [OfferedPackage<'_>],
    archs: &[&str],
) -> BTreeMap<&'p str, usize> {
    let mut newest: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, package) in packages.iter().enumerate().filter(|(_, it)| archs.contains(&it.arch)) {
        let best = newest.entry(package.name).or_insert(at);
        if format.compare_versions(&package.version, &packages[*best].version).is_gt() {
            *best = at;
        }
    }
    newest
}

/// Names of packages by the former and the new vendor. An empty text stands for no vendor.
///
/// libzypp updates a package only to one of the same vendor, unless it is told otherwise; it compares vendors
/// without regard to upper and lower case, and takes a package without a vendor for one of another vendor. dnf and
/// apt know no such rule.
#[derive(Debug, Default)]
pub struct VendorChanges(BTreeMap<[String; 2], BTreeSet<String>>);

impl VendorChanges {
    /// Adds the package `name` if its vendor changes.
    pub fn add(&mut self, name: &str, from: &str, to: &str) {
        if !from.eq_ignore_ascii_case(to) {
            let vendors = [from, to].map(str::to_owned);
            self.0.entry(vendors).or_default().insert(name.to_owned());
        }
    }

    /// One finding for each pair of vendors.
    pub fn into_findings(self) -> impl Iterator<Item = Finding> {
        self.0.into_iter().map(|([from, to], names)| {
            let packages = names.into_iter().collect();
            Finding::from(found::VendorChanged { from, to, packages })
        })
    }
}
