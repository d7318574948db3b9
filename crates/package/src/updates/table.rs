//! Finds which packages of before and afterwards fit together.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::offered::Offered;
use crate::requirement::Requirement;
use crate::resolver::Resolver;
use crate::{Format, RelationKind};
use rockpack_report::Discord;

use RelationKind::{Breaks, Conflicts, Obsoletes, Provides, Replaces};

/// Packages of one format, with those that ask for each name.
pub(super) struct Table<'p, 'a> {
    pub resolver: Resolver<'p, 'a>,
    /// Name → the packages that need or exclude it.
    asking: HashMap<&'p str, Vec<usize>>,
}

/// Whether each package of a table is present, by position.
pub(super) type PresentPackages = Vec<bool>;

impl<'p, 'a> Table<'p, 'a> {
    pub fn new(format: Format, packages: Vec<&'p Offered<'a>>) -> Self {
        let mut asking = HashMap::<_, Vec<_>>::new();
        for (at, package) in packages.iter().copied().enumerate() {
            let excluded = [Conflicts, Breaks].into_iter();
            let excluded = excluded.flat_map(move |kind| package.relations.of_kind(kind));
            for bound in package.relations.needs().chain(excluded).flat_map(Requirement::bounds) {
                asking.entry(&*bound.name).or_default().push(at);
            }
        }
        Self { resolver: Resolver::new(format, packages), asking }
    }

    /// The name of the package at a position.
    pub fn name(&self, at: usize) -> &'p str {
        self.resolver.package(at).name
    }

    /// Positions of the packages that meet any part of `requirement`.
    pub fn partners(&self, requirement: &Requirement<'_>) -> Vec<usize> {
        requirement.bounds().into_iter().flat_map(|bound| self.resolver.met_by(bound)).collect()
    }

    /// Whether the present packages meet a requirement; `None` if that cannot be judged.
    pub fn holds(&self, requirement: &Requirement<'_>, present: &PresentPackages) -> Option<bool> {
        self.resolver.holds(requirement, &|at| present[at])
    }

    /// The first need of a package that no present package meets.
    pub fn lacks(&self, at: usize, present: &PresentPackages) -> Option<&'p Requirement<'a>> {
        let package = self.resolver.package(at);
        package.relations.needs().find(|need| self.holds(need, present) == Some(false))
    }

    /// Removes packages until the needs of all that remain are met. Returns the removed packages with the
    /// need that was not met.
    pub fn drop_misfits(
        &self,
        present: &mut PresentPackages,
    ) -> BTreeMap<usize, &'p Requirement<'a>> {
        let (mut dropped, mut next) = (BTreeMap::new(), (0..present.len()).collect());
        loop {
            let all = BTreeSet::into_iter(next).filter(|at| present[*at]);
            let misfits: Vec<_> =
                all.filter_map(|at| Some((at, self.lacks(at, present)?))).collect();
            if misfits.is_empty() {
                return dropped;
            }
            misfits.iter().for_each(|(at, _)| present[*at] = false);
            next = misfits.iter().flat_map(|(at, _)| self.asking(*at)).collect();
            dropped.extend(misfits);
        }
    }

    /// Packages with a relation to something that `at` offers.
    pub fn asking(&self, at: usize) -> impl Iterator<Item = usize> {
        let package = self.resolver.package(at);
        let names = package.relations.bounds(Provides).map(|bound| &*bound.name);
        let names = names.chain([package.name]);
        names.filter_map(|name| self.asking.get(name)).flatten().copied()
    }

    /// Removes packages that other present packages replace.
    pub fn drop_replaced(&self, present: &mut PresentPackages) {
        let replaced: Vec<usize> = (0..present.len())
            .filter(|at| present[*at])
            .flat_map(|by| self.replaced(by).map(move |at| (by, at)))
            .filter(|(by, at)| self.resolver.format() == Format::Rpm || self.excludes(*by, *at))
            .map(|(_, at)| at)
            .collect();
        replaced.into_iter().for_each(|at| present[at] = false);
    }

    /// Packages that `by` replaces, or takes files from.
    pub fn replaced(&self, by: usize) -> impl Iterator<Item = usize> {
        let related = move |kind| self.resolver.related(by, kind).flat_map(|(_, others)| others);
        [Obsoletes, Replaces].into_iter().flat_map(related)
    }

    /// Packages that `by` excludes, each with the relation.
    pub fn excluded(&self, by: usize) -> impl Iterator<Item = (&'p Requirement<'a>, usize)> {
        [Conflicts, Breaks].into_iter().flat_map(move |kind| {
            let related = self.resolver.related(by, kind);
            related.flat_map(|(relation, others)| others.into_iter().map(move |at| (relation, at)))
        })
    }

    /// Whether `by` excludes `at`.
    pub fn excludes(&self, by: usize, at: usize) -> bool {
        let [by, at] = [by, at].map(|at| self.resolver.package(at));
        by.relates_to(self.resolver.format(), &[Conflicts, Breaks], at)
    }

    /// Present packages that `requirement` is about, as `name version`: those that meet a part of an excluding
    /// one, or those that fail a need.
    pub fn named(
        &self,
        requirement: &Requirement<'_>,
        present: &PresentPackages,
        discord: Discord,
    ) -> Vec<String> {
        let partners = self.partners(requirement);
        self.resolver.offering_any(requirement, |at| {
            present[at] && partners.contains(&at) == (discord == Discord::Excludes)
        })
    }
}
