//! The effect of packages on clients that have the ones before: which an update holds back, and which
//! it would have to remove.
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
    /// The name.
    pub name: &'a str,
    /// The whole version.
    pub version: Cow<'a, str>,
    /// The architecture.
    pub arch: &'a str,
    /// The relations; of a `.rpm`, what it provides need not have its own name.
    pub relations: Vec<(RelationKind, Wish<'a>)>,
}

/// The effect of an update on clients.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effect {
    /// Packages that do not fit the newest of others, by name and architecture.
    pub misfits: Vec<Misfit>,
    /// Names of those that are held back for that reason.
    pub held_back: BTreeSet<String>,
}

impl Effect {
    /// The effect on clients that have the newest of `before` get from the newest of `after`, all of which are
    /// packages of `format`.
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
            let newest = |packages| newest(format, packages, &[machine, all]);
            let clients = Clients::new(format, newest(before), newest(after));
            let told = clients.misfits();
            let key = |it: &Misfit| (it.package.clone(), it.architecture.clone());
            told.into_iter().for_each(|it| {
                misfits.entry(key(&it)).or_insert(it);
            });
            effect.held_back.extend(clients.held_back().map(str::to_owned));
        }
        Self { misfits: misfits.into_values().collect(), ..effect }
    }

    /// Whether it does nothing to them but good.
    pub fn is_none(&self) -> bool {
        self.misfits.is_empty()
    }
}

/// The architecture of packages for all machines.
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

/// The newest package of each name among those for `archs`.
pub fn newest<'p, 'a>(
    format: Format,
    packages: &'p [Offered<'a>],
    archs: &[&str],
) -> BTreeMap<&'p str, &'p Offered<'a>> {
    let mut newest: BTreeMap<&str, &Offered<'a>> = BTreeMap::new();
    for package in packages.iter().filter(|package| archs.contains(&package.arch)) {
        let best = newest.entry(package.name).or_insert(package);
        if format.compare_versions(&package.version, &best.version).is_gt() {
            *best = package;
        }
    }
    newest
}

#[cfg(test)]
mod tests;
