//! The effect of packages on clients that have the ones before them: which of them an update holds
//! back, and which it would have to remove.
//!
//! A client has the newest version of each name of before, as far as these go together. The newest of
//! each name afterwards is what an update installs. Judged, for the packages of each architecture and
//! those for all:
//!
//! | | told | not told |
//! |---|---|---|
//! | needs (`Depends`, `Pre-Depends`, `Requires`) | where the newest of others do not meet them | of names that nobody has before or afterwards, which are the distribution's; of paths; where an alternative of the distribution may do |
//! | exclusions (`Conflicts`, `Breaks`) | of the newest version of another, both of which clients have | where both excluded each other before, or the one replaces the other |
//!
//! A package whose relation was not met before and stays as it is is not told, nor one that another
//! replaces (`Obsoletes`; `Replaces` with `Conflicts` or `Breaks`): it is meant to go. What a package
//! that fits no more offers is gone, too. A name that is there no more stays on the clients.

mod clients;
mod facts;
mod table;
mod wish;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

pub use wish::Wish;

use super::{Format, RelationKind};
use crate::report::Misfit;
use clients::Clients;

/// A package that is offered to clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered<'a> {
    /// The package's name.
    pub name: &'a str,
    /// The whole version.
    pub version: Cow<'a, str>,
    /// The architecture.
    pub arch: &'a str,
    /// The relations; its own name need not be among those that it provides.
    pub relations: Vec<(RelationKind, Wish<'a>)>,
}

/// The effect of an update on clients.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effect {
    /// Packages that do not fit the newest of others, by name and architecture.
    pub misfits: Vec<Misfit>,
    /// Names of those that are held back for that reason.
    pub held_back: BTreeSet<String>,
    /// Packages that an update downloads if nothing is held back, for each architecture: positions
    /// among those of afterwards.
    pub downloads: BTreeMap<String, Vec<usize>>,
}

impl Effect {
    /// The effect of the newest of `after` on clients that have the newest of `before`, all of which
    /// are packages of `format`.
    pub fn of(format: Format, before: &[Offered<'_>], after: &[Offered<'_>]) -> Self {
        let all = all_machines(format);
        let archs = before.iter().chain(after).map(|package| package.arch);
        let mut machines: BTreeSet<&str> = archs.filter(|arch| is_machine(arch)).collect();
        if machines.len() > 1 {
            machines.remove(all);
        }
        let mut misfits = BTreeMap::new();
        let mut effect = Self::default();
        for machine in machines {
            let archs = [machine, all];
            let newest = |packages| newest(format, packages, &archs);
            let (older, newer) = (newest(before), newest(after));
            let had = older.values().map(|at| &before[*at]).collect();
            let clients = Clients::new(format, had, newer.values().map(|at| &after[*at]).collect());
            let told = clients.misfits();
            let key = |it: &Misfit| (it.package.clone(), it.architecture.clone());
            told.into_iter().for_each(|it| {
                misfits.entry(key(&it)).or_insert(it);
            });
            effect.held_back.extend(clients.held_back().map(str::to_owned));
            let positions: Vec<usize> = newer.into_values().collect();
            let downloads = clients.downloads().into_iter().map(|at| positions[at]).collect();
            effect.downloads.insert(machine.to_owned(), downloads);
        }
        Self { misfits: misfits.into_values().collect(), ..effect }
    }

    /// Whether it does nothing to them but good.
    pub fn is_none(&self) -> bool {
        self.misfits.is_empty()
    }
}

/// The name of the architecture of packages for all machines.
fn all_machines(format: Format) -> &'static str {
    match format {
        Format::Deb => "all",
        Format::Rpm => "noarch",
    }
}

/// Whether packages of an architecture are installed anywhere; source packages are not.
fn is_machine(arch: &str) -> bool {
    !["src", "nosrc"].contains(&arch)
}

/// Positions of the newest package of each name among those for `archs`.
fn newest<'p>(
    format: Format,
    packages: &'p [Offered<'_>],
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

#[cfg(test)]
mod tests;
