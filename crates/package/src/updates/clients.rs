//! Clients of one architecture, which have the newest earlier packages and get the newest later ones.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::offered::OfferedPackage;
use crate::requirement::Requirement;
use crate::resolver::Resolver;
use crate::{Format, RelationKind};
use rockpack_report::{ConflictKind, Misfit};

use RelationKind::{Breaks, Conflicts, Obsoletes, Provides, Replaces};

/// The versions of a name on a client, as positions in the table.
#[derive(Debug, Clone, Copy, Default)]
struct NameOnClient {
    /// The newest earlier version.
    before: Option<usize>,
    /// The version that clients have: the newest earlier one, if it could be installed with the others.
    had: Option<usize>,
    /// The version that an update would install.
    update: Option<usize>,
}

impl NameOnClient {
    fn is_newer(&self, table: &Table<'_, '_>) -> bool {
        let both = self.before.zip(self.update);
        both.is_some_and(|(before, update)| {
            let [before, update] = [before, update].map(|at| &table.resolver.package(at).version);
            table.resolver.format.compare_versions(update, before).is_gt()
        })
    }
}

pub(super) struct Clients<'p, 'a> {
    table: Table<'p, 'a>,
    /// The earlier packages, without those with unmet needs.
    had: PresentPackages,
    /// Earlier packages with unmet needs, with the first such need.
    lacked: BTreeMap<&'p str, &'p Requirement<'a>>,
    offered: PresentPackages,
    places: BTreeMap<&'p str, NameOnClient>,
    /// The number of earlier packages, which is the position of the first later one.
    older: usize,
}

struct Exclusion<'p, 'a> {
    relation: &'p Requirement<'a>,
    by: usize,
    other: usize,
}

impl<'p, 'a> Clients<'p, 'a> {
    /// Clients with the newest packages of `before`, which are offered the newest of `after`.
    pub fn new(
        format: Format,
        before: Vec<&'p OfferedPackage<'a>>,
        after: Vec<&'p OfferedPackage<'a>>,
    ) -> Self {
        let (older, all) = (before.len(), before.len() + after.len());
        let table = Table::new(format, before.into_iter().chain(after).collect());
        let mut had: PresentPackages = (0..all).map(|at| at < older).collect();
        let offered = (0..all).map(|at| at >= older).collect();
        table.drop_replaced(&mut had);
        let lacked = table.drop_misfits(&mut had).into_iter();
        let lacked = lacked.map(|(at, relation)| (table.name(at), relation)).collect();
        let mut places: BTreeMap<&str, NameOnClient> = BTreeMap::new();
        for (at, has) in had.iter().enumerate().take(older) {
            let place = places.entry(table.name(at)).or_default();
            (place.before, place.had) = (Some(at), has.then_some(at));
        }
        for at in older..all {
            places.entry(table.name(at)).or_default().update = Some(at);
        }
        // Updates never downgrade.
        let stays =
            places.values_mut().filter(|place| place.had.is_some() && !place.is_newer(&table));
        stays.for_each(|place| place.update = None);
        Self { table, had, lacked, offered, places, older }
    }

    /// The newest version of every package, without replaced ones, on a client that had all of before.
    fn updated(&self) -> PresentPackages {
        let mut present = vec![false; self.had.len()];
        let newest = self.places.values().filter_map(|place| place.update.or(place.had));
        newest.for_each(|at| present[at] = true);
        self.table.drop_replaced(&mut present);
        present
    }

    /// Packages that cannot be installed together with the newest others, because of a change since before.
    pub fn misfits(&self) -> Vec<Misfit> {
        let (mut offered, mut updated) = (self.offered.clone(), self.updated());
        self.table.drop_replaced(&mut offered);
        let mut found = BTreeMap::new();
        let excluding = self.excluding(0..updated.len(), &updated);
        let lacking = [&mut offered, &mut updated].map(|present| self.table.drop_misfits(present));
        for (at, relation) in lacking.into_iter().flatten().filter(|(at, _)| !self.is_old(*at)) {
            found.entry(self.table.name(at)).or_insert((ConflictKind::Needs, at, relation));
        }
        for Exclusion { relation, by, .. } in excluding {
            found.entry(self.table.name(by)).or_insert((ConflictKind::Excludes, by, relation));
        }
        let found = found.into_values();
        found.map(|(conflict, at, relation)| self.misfit(conflict, at, relation)).collect()
    }

    /// Whether the package lacked the same need before.
    fn is_old(&self, at: usize) -> bool {
        let package = self.table.resolver.package(at);
        self.lacked.get(package.name).is_some_and(|relation| {
            let asks = package.relations.needs().any(|own| own == *relation);
            asks && self.table.holds(relation, &self.offered) == Some(false)
        })
    }

    fn misfit(&self, conflict: ConflictKind, at: usize, relation: &Requirement<'_>) -> Misfit {
        let package = self.table.resolver.package(at);
        let had = self.places.get(package.name).and_then(|place| place.had);
        Misfit {
            package: package.name.into(),
            version: package.version.to_string(),
            architecture: package.arch.to_owned(),
            installed: had
                .is_some_and(|had| self.table.resolver.package(had).version == package.version),
            conflict,
            relation: relation.to_string(),
            offered: self.table.named(relation, &self.offered, conflict),
        }
    }

    /// Exclusions by packages `among` those on a client that were not there before.
    fn excluding(
        &self,
        among: impl IntoIterator<Item = usize>,
        present: &PresentPackages,
    ) -> Vec<Exclusion<'p, 'a>> {
        let among = among.into_iter().filter(|at| present[*at]);
        let all = among.flat_map(|by| {
            self.table.excluded(by).map(move |(relation, other)| Exclusion { relation, by, other })
        });
        all.filter(|found| present[found.other] && self.is_new_exclusion(found.by, found.other))
            .collect()
    }

    fn is_new_exclusion(&self, by: usize, at: usize) -> bool {
        let both = self.had_version(by).zip(self.had_version(at));
        both.is_some_and(|(by, at)| !self.table.excludes(by, at) && !self.table.excludes(at, by))
    }

    fn had_version(&self, at: usize) -> Option<usize> {
        self.places.get(self.table.name(at))?.had
    }

    /// Names of packages that an update leaves on clients although newer ones are offered.
    pub fn held_back(&self) -> impl Iterator<Item = &'p str> {
        let mut present = self.updated();
        let mut next: BTreeSet<usize> = (0..present.len()).collect();
        while !next.is_empty() {
            let before = present.clone();
            self.hold_back_some(&next, &mut present);
            let touched = (0..present.len()).filter(|at| before[*at] != present[*at]);
            next = touched.flat_map(|at| self.table.dependents(at).chain([at])).collect();
        }
        let held = self.places.iter().filter(move |(_, place)| match (place.had, place.update) {
            (Some(had), Some(_)) => present[had],
            _ => false,
        });
        held.map(|(name, _)| *name)
    }

    /// Holds back packages of `among` whose needs are not met, or the others that would break them.
    fn hold_back_some(&self, among: &BTreeSet<usize>, present: &mut PresentPackages) {
        for at in among.iter().copied() {
            while present[at]
                && let Some(relation) = self.table.unmet_need(at, present)
            {
                // A newer package waits. For one that stays, the packages that it needs stay, too.
                let held = self.hold(at, present)
                    || self.table.candidates(relation).into_iter().any(|partner| {
                        self.newer(partner, present).is_some_and(|newer| self.hold(newer, present))
                    });
                if !held {
                    break;
                }
            }
        }
        for Exclusion { by, other, .. } in self.excluding(among.iter().copied(), present) {
            if present[by] && present[other] && !self.hold(by, present) {
                self.hold(other, present);
            }
        }
    }

    /// Positions, among the packages of afterwards, of those that an update downloads: newer versions, and
    /// new packages that they need or that replace packages on clients.
    pub fn downloads(&self) -> Vec<usize> {
        let all = self.updated();
        let mut present: PresentPackages = vec![false; all.len()];
        for (name, place) in &self.places {
            let (is_newer, is_new) = (place.is_newer(&self.table), place.before.is_none());
            let comes = place.update.filter(|by| is_newer || is_new && self.takes_over(name, *by));
            comes.or(place.had).into_iter().for_each(|at| present[at] = all[at]);
        }
        let mut next: BTreeSet<usize> = (0..present.len()).collect();
        while let Some(at) = next.pop_first() {
            while present[at]
                && let Some(relation) = self.table.unmet_need(at, &present)
                && let Some(new) = self
                    .table
                    .candidates(relation)
                    .into_iter()
                    .find(|new| all[*new] && !present[*new])
            {
                present[new] = true;
                next.insert(new);
            }
        }
        (self.older..present.len()).filter(|at| present[*at]).map(|at| at - self.older).collect()
    }

    /// Whether rpm installs a new package in place of one that clients have.
    fn takes_over(&self, name: &str, by: usize) -> bool {
        let mut had = self.table.replaced(by).filter(|at| *at < self.older);
        self.table.resolver.format == Format::Rpm && had.any(|at| self.table.name(at) != name)
    }

    /// The newer package that is there in place of `at`, which clients had.
    fn newer(&self, at: usize, present: &PresentPackages) -> Option<usize> {
        let place = self.places.get(self.table.name(at))?;
        place.update.filter(|update| place.had == Some(at) && present[*update])
    }

    /// Replaces the newer or new package `at` by the version that clients have. Returns whether it did.
    fn hold(&self, at: usize, present: &mut PresentPackages) -> bool {
        let place = self.places.get(self.table.name(at)).copied().unwrap_or_default();
        if place.update != Some(at) || !present[at] {
            return false;
        }
        present[at] = false;
        place.had.into_iter().for_each(|had| present[had] = true);
        true
    }
}

/// Packages of one format, with those that ask for each name.
struct Table<'p, 'a> {
    resolver: Resolver<'p, 'a>,
    /// Name → the packages that need or exclude it.
    dependents: HashMap<&'p str, Vec<usize>>,
}

/// Whether each package of a table is present, by position.
type PresentPackages = Vec<bool>;

impl<'p, 'a> Table<'p, 'a> {
    fn new(format: Format, packages: Vec<&'p OfferedPackage<'a>>) -> Self {
        let mut dependents = HashMap::<_, Vec<_>>::new();
        for (at, package) in packages.iter().copied().enumerate() {
            let excluded = [Conflicts, Breaks].into_iter();
            let excluded = excluded.flat_map(move |kind| package.relations.of_kind(kind));
            for bound in package.relations.needs().chain(excluded).flat_map(Requirement::bounds) {
                dependents.entry(&*bound.name).or_default().push(at);
            }
        }
        Self { resolver: Resolver::new(format, packages), dependents }
    }

    fn name(&self, at: usize) -> &'p str {
        self.resolver.package(at).name
    }

    /// Positions of the packages that meet any part of `requirement`.
    fn candidates(&self, requirement: &Requirement<'_>) -> Vec<usize> {
        requirement.bounds().into_iter().flat_map(|bound| self.resolver.met_by(bound)).collect()
    }

    /// Whether the present packages meet a requirement; `None` if that cannot be judged.
    fn holds(&self, requirement: &Requirement<'_>, present: &PresentPackages) -> Option<bool> {
        self.resolver.holds(requirement, &|at| present[at])
    }

    /// The first need of a package that no present package meets.
    fn unmet_need(&self, at: usize, present: &PresentPackages) -> Option<&'p Requirement<'a>> {
        let package = self.resolver.package(at);
        package.relations.needs().find(|need| self.holds(need, present) == Some(false))
    }

    /// Removes packages until the needs of all that remain are met. Returns the removed packages with the
    /// need that was not met.
    fn drop_misfits(&self, present: &mut PresentPackages) -> BTreeMap<usize, &'p Requirement<'a>> {
        let (mut dropped, mut next) = (BTreeMap::new(), (0..present.len()).collect());
        loop {
            let all = BTreeSet::into_iter(next).filter(|at| present[*at]);
            let misfits: Vec<_> =
                all.filter_map(|at| Some((at, self.unmet_need(at, present)?))).collect();
            if misfits.is_empty() {
                return dropped;
            }
            misfits.iter().for_each(|(at, _)| present[*at] = false);
            next = misfits.iter().flat_map(|(at, _)| self.dependents(*at)).collect();
            dropped.extend(misfits);
        }
    }

    /// Packages with a relation to something that `at` offers.
    fn dependents(&self, at: usize) -> impl Iterator<Item = usize> {
        let package = self.resolver.package(at);
        let names = package.relations.bounds(Provides).map(|bound| &*bound.name);
        let names = names.chain([package.name]);
        names.filter_map(|name| self.dependents.get(name)).flatten().copied()
    }

    fn drop_replaced(&self, present: &mut PresentPackages) {
        let replaced: Vec<usize> = (0..present.len())
            .filter(|at| present[*at])
            .flat_map(|by| self.replaced(by).map(move |at| (by, at)))
            .filter(|(by, at)| self.resolver.format == Format::Rpm || self.excludes(*by, *at))
            .map(|(_, at)| at)
            .collect();
        replaced.into_iter().for_each(|at| present[at] = false);
    }

    /// Packages that `by` replaces, or takes files from.
    fn replaced(&self, by: usize) -> impl Iterator<Item = usize> {
        let related = move |kind| self.resolver.related(by, kind).flat_map(|(_, others)| others);
        [Obsoletes, Replaces].into_iter().flat_map(related)
    }

    /// Packages that `by` excludes, each with the relation.
    fn excluded(&self, by: usize) -> impl Iterator<Item = (&'p Requirement<'a>, usize)> {
        [Conflicts, Breaks].into_iter().flat_map(move |kind| {
            let related = self.resolver.related(by, kind);
            related.flat_map(|(relation, others)| others.into_iter().map(move |at| (relation, at)))
        })
    }

    fn excludes(&self, by: usize, at: usize) -> bool {
        let [by, at] = [by, at].map(|at| self.resolver.package(at));
        by.relates_to(self.resolver.format, &[Conflicts, Breaks], at)
    }

    /// Present packages that `requirement` is about, as `name version`: those that meet a part of an excluding
    /// one, or those that fail a need.
    fn named(
        &self,
        requirement: &Requirement<'_>,
        present: &PresentPackages,
        conflict: ConflictKind,
    ) -> Vec<String> {
        let candidates = self.candidates(requirement);
        self.resolver.offering_any(requirement, |at| {
            present[at] && candidates.contains(&at) == (conflict == ConflictKind::Excludes)
        })
    }
}
