//! Indexes packages by the names they offer, and finds which of them fit together.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::super::bounds::Bound;
use super::{Offered, Wish};
use crate::package::{Format, RelationKind};
use crate::report::Discord;

use RelationKind::{Breaks, Conflicts, Depends, Obsoletes, PreDepends, Provides, Replaces};

/// Packages of one format, indexed by the names they offer.
pub(super) struct Table<'p, 'a> {
    format: Format,
    packages: Vec<&'p Offered<'a>>,
    /// Name → the packages that offer it, with the version they offer.
    offers: HashMap<&'p str, Vec<(usize, Option<&'p str>)>>,
    /// Name → the packages that need or exclude it.
    asking: HashMap<&'p str, Vec<usize>>,
}

/// Whether each package of a table is present, by position.
pub(super) type There = Vec<bool>;

impl<'p, 'a> Table<'p, 'a> {
    pub fn new(format: Format, packages: Vec<&'p Offered<'a>>) -> Self {
        let (mut offers, mut asking) =
            (HashMap::<&str, Vec<_>>::new(), HashMap::<_, Vec<_>>::new());
        for (at, package) in packages.iter().enumerate() {
            offers.entry(package.name).or_default().push((at, Some(&*package.version)));
            for bound in bounds(package, &[Provides]).filter(|bound| bound.name != package.name) {
                let version = bound.version.as_ref().map(|(_, version)| &**version);
                offers.entry(&bound.name).or_default().push((at, version));
            }
            let asked = of_kinds(package, &[PreDepends, Depends, Conflicts, Breaks]);
            for bound in asked.flat_map(Wish::bounds) {
                asking.entry(&*bound.name).or_default().push(at);
            }
        }
        let paths = packages.iter().flat_map(|package| &package.paths);
        for path in paths.filter(|path| asking.contains_key(**path)) {
            offers.entry(path).or_default();
        }
        Self { format, packages, offers, asking }
    }

    pub fn format(&self) -> Format {
        self.format
    }

    pub fn package(&self, at: usize) -> &'p Offered<'a> {
        self.packages[at]
    }

    /// Packages that meet `bound`, present or not; `None` if no package offers the name.
    fn met_by(&self, bound: &Bound<'_>) -> Option<impl Iterator<Item = usize>> {
        let offers = self.offers.get(&*bound.name)?.iter();
        let met = offers.filter(move |(_, version)| bound.is_met(self.format, *version));
        Some(met.map(|(at, _)| *at))
    }

    /// Positions of the packages that meet any part of `wish`.
    pub fn partners(&self, wish: &Wish<'_>) -> Vec<usize> {
        wish.bounds().into_iter().filter_map(|bound| self.met_by(bound)).flatten().collect()
    }

    /// Whether the present packages meet a wish; `None` if that cannot be judged.
    pub fn holds(&self, wish: &Wish<'_>, there: &There) -> Option<bool> {
        wish.holds(&|bound| Some(self.met_by(bound)?.any(|at| there[at])))
    }

    /// The first need of a package that no present package meets.
    pub fn lacks(&self, at: usize, there: &There) -> Option<&'p Wish<'a>> {
        let package = self.packages[at];
        of_kinds(package, &[PreDepends, Depends])
            .find(|wish| self.holds(wish, there) == Some(false))
    }

    /// Removes packages until the needs of all that remain are met. Returns the removed packages with the
    /// need that was not met.
    pub fn drop_misfits(&self, there: &mut There) -> BTreeMap<usize, &'p Wish<'a>> {
        let (mut dropped, mut next) = (BTreeMap::new(), (0..there.len()).collect());
        loop {
            let present = BTreeSet::into_iter(next).filter(|at| there[*at]);
            let misfits: Vec<_> =
                present.filter_map(|at| Some((at, self.lacks(at, there)?))).collect();
            if misfits.is_empty() {
                return dropped;
            }
            misfits.iter().for_each(|(at, _)| there[*at] = false);
            next = misfits.iter().flat_map(|(at, _)| self.asking(*at)).collect();
            dropped.extend(misfits);
        }
    }

    /// Packages with a relation to something that `at` offers.
    pub fn asking(&self, at: usize) -> impl Iterator<Item = usize> {
        let package = self.packages[at];
        let provided = bounds(package, &[Provides]).map(|bound| &*bound.name);
        let names = provided.chain([package.name]);
        names.filter_map(|name| self.asking.get(name)).flatten().copied()
    }

    /// Removes packages that other present packages replace.
    pub fn drop_replaced(&self, there: &mut There) {
        let replaced: Vec<usize> = (0..there.len())
            .filter(|at| there[*at])
            .flat_map(|by| self.replaced(by).into_iter().map(move |at| (by, at)))
            .filter(|(by, at)| {
                self.format == Format::Rpm || self.excluded(*by).any(|(_, other)| other == *at)
            })
            .map(|(_, at)| at)
            .collect();
        replaced.into_iter().for_each(|at| there[at] = false);
    }

    /// Packages that `by` replaces, or takes files from. Only their own names count.
    pub fn replaced(&self, by: usize) -> Vec<usize> {
        let package = self.packages[by];
        bounds(package, &[Obsoletes, Replaces])
            .flat_map(|bound| self.replaced_through(bound, package))
            .collect()
    }

    fn replaced_through(&self, bound: &Bound<'_>, package: &Offered<'_>) -> Vec<usize> {
        let named = self.met_by(bound).into_iter().flatten().filter(|at| {
            let other = self.packages[*at];
            *bound.name == *other.name && package.name != other.name
        });
        named.filter(|at| bound.admits(self.format, &self.packages[*at].version)).collect()
    }

    /// Packages that `by` excludes, each with the relation.
    pub fn excluded(&self, by: usize) -> impl Iterator<Item = (&'p Wish<'a>, usize)> {
        let package = self.packages[by];
        of_kinds(package, &[Conflicts, Breaks]).flat_map(move |wish| {
            let met = wish.bound().and_then(|bound| self.met_by(bound)).into_iter().flatten();
            let others = met.filter(move |at| self.packages[*at].name != package.name);
            others.map(move |at| (wish, at))
        })
    }

    /// Present packages that `wish` is about, as `name version`: those that meet a part of an excluding wish,
    /// or those that fail a need.
    pub fn named(&self, wish: &Wish<'_>, there: &There, discord: Discord) -> Vec<String> {
        let partners = self.partners(wish);
        let offers = wish.bounds().into_iter().filter_map(|bound| self.offers.get(&*bound.name));
        let present = offers.flatten().map(|(at, _)| *at).filter(|at| there[*at]);
        let told = present.filter(|at| partners.contains(at) == (discord == Discord::Excludes));
        let mut named: Vec<String> = told
            .map(|at| format!("{} {}", self.packages[at].name, self.packages[at].version))
            .collect();
        named.sort();
        named.dedup();
        named
    }
}

fn of_kinds<'p, 'a>(
    package: &'p Offered<'a>,
    kinds: &'static [RelationKind],
) -> impl Iterator<Item = &'p Wish<'a>> {
    let relations = package.relations.iter();
    relations.filter(|(kind, _)| kinds.contains(kind)).map(|(_, wish)| wish)
}

fn bounds<'p, 'a>(
    package: &'p Offered<'a>,
    kinds: &'static [RelationKind],
) -> impl Iterator<Item = &'p Bound<'a>> {
    of_kinds(package, kinds).filter_map(Wish::bound)
}
