//! Finds which packages of a set or a repository meet a requirement.
//!
//! | | a name is | with a bound |
//! |---|---|---|
//! | dpkg | that of a package or in `Provides` | `Provides` without a version meets none (Debian policy 7.5) |
//! | rpm | in `Provides`, or that of a package | `Provides` without a version meets every one |
//!
//! `Obsoletes` and `Replaces` apply to names of packages alone.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::offered::OfferedPackage;
use super::requirement::{Bound, Requirement, compare_with_limit};
use super::{Comparison, Format, RelationKind};

/// Packages of one format that can be installed together, by the names that they offer.
pub struct Resolver<'p, 'a> {
    pub format: Format,
    packages: Vec<&'p OfferedPackage<'a>>,
    /// All offered names in order. Of one name, those without a version come first, then versions without a
    /// release, then versions with one, each in order: not every comparison of a version with and one
    /// without a release looks at releases.
    offers: Vec<ProvidedName<'p>>,
    /// The paths that packages have, and need not provide.
    paths: HashSet<&'p str>,
}

/// The name of a package, or of a capability that it provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProvidedName<'p> {
    name: &'p str,
    version: Option<&'p str>,
    package: usize,
}

impl ProvidedName<'_> {
    /// The rank among offers of one name: without a version, with a version without a release, or with both.
    fn class(&self) -> u8 {
        self.version.map_or(0, |version| 1 + u8::from(version.contains('-')))
    }

    fn order(&self, other: &Self, format: Format) -> Ordering {
        let order = self.name.cmp(other.name).then_with(|| self.class().cmp(&other.class()));
        let versions = || match (self.version, other.version) {
            (Some(version), Some(other)) => compare_with_limit(format, version, other),
            _ => Ordering::Equal,
        };
        order.then_with(versions).then_with(|| self.package.cmp(&other.package))
    }
}

/// The origin of a package that would meet a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The same source: exactly one version is required, which is that of the package itself, or of a name
    /// that packages of the repository offer in others.
    SameSource,
    /// The same repository: its packages offer the name in other versions or for other architectures, or
    /// exactly one version is required, as packages of one set do of each other.
    Repository,
    /// Another repository: no package of this one offers the name.
    Elsewhere,
}

#[derive(Debug, Clone, Copy)]
pub struct Unmet<'p, 'a> {
    /// The position of the package that has it.
    pub package: usize,
    pub requirement: &'p Requirement<'a>,
    /// The origin of a package that would meet it.
    pub origin: Origin,
}

/// Calls `found` with the requirements that no package of a repository meets, for each of the machines with the
/// positions of the packages that it can install.
pub fn each_unmet<'p, 'a>(
    format: Format,
    packages: &'p [OfferedPackage<'a>],
    machines: &BTreeMap<&str, Vec<usize>>,
    mut found: impl FnMut(&str, Unmet<'p, 'a>),
) {
    let repository = Resolver::new(format, packages.iter().collect());
    for (&machine, positions) in machines {
        let together = Resolver::new(format, positions.iter().map(|at| &packages[*at]).collect());
        for unmet in together.unmet(&repository) {
            found(machine, Unmet { package: positions[unmet.package], ..unmet });
        }
    }
}

/// The positions of the packages that each machine can install.
pub fn by_machine<'a>(
    format: Format,
    packages: &[OfferedPackage<'a>],
) -> BTreeMap<&'a str, Vec<usize>> {
    let machines = machines(format, packages.iter().map(|package| package.arch));
    let positions = |machine: &str| {
        let archs = [machine, for_all_machines(format)];
        (0..packages.len()).filter(|at| archs.contains(&packages[*at].arch)).collect()
    };
    machines.into_iter().map(|machine| (machine, positions(machine))).collect()
}

/// The architecture of packages for all machines.
pub fn for_all_machines(format: Format) -> &'static str {
    format.select("all", "noarch")
}

/// The machines that packages of these architectures are for. Source packages are never installed.
pub fn machines<'s>(format: Format, archs: impl Iterator<Item = &'s str>) -> BTreeSet<&'s str> {
    let mut machines: BTreeSet<&str> =
        archs.filter(|arch| !["src", "nosrc"].contains(arch)).collect();
    if machines.len() > 1 {
        machines.remove(for_all_machines(format));
    }
    machines
}

impl<'p, 'a> Resolver<'p, 'a> {
    /// Indexes packages of a format.
    pub fn new(format: Format, packages: Vec<&'p OfferedPackage<'a>>) -> Self {
        let mut offers = Vec::new();
        for (package, offered) in packages.iter().copied().enumerate() {
            let version = Some(&*offered.version);
            offers.push(ProvidedName { name: offered.name, version, package });
            offers.extend(offered.relations.bounds(RelationKind::Provides).map(|bound| {
                let version = bound.version.as_ref().map(|(_, version)| &**version);
                ProvidedName { name: &bound.name, version, package }
            }));
        }
        offers.sort_unstable_by(|one, other| one.order(other, format));
        offers.dedup();
        offers.shrink_to_fit();
        let paths = packages.iter().flat_map(|offered| offered.paths.iter().copied()).collect();
        Self { format, packages, offers, paths }
    }

    pub fn package(&self, at: usize) -> &'p OfferedPackage<'a> {
        self.packages[at]
    }

    /// Whether a package has the name, as its own, as a capability, or as a path.
    pub fn knows(&self, name: &str) -> bool {
        !self.named(name).is_empty() || self.paths.contains(name)
    }

    /// Positions of the packages that offer the name.
    pub fn offering(&self, name: &str) -> impl Iterator<Item = usize> {
        self.named(name).iter().map(|offer| offer.package)
    }

    /// Positions of the packages that meet `bound`.
    pub fn met_by(&self, bound: &Bound<'_>) -> impl Iterator<Item = usize> {
        self.meeting(bound).into_iter().flatten().map(|offer| offer.package)
    }

    /// Whether present packages meet a requirement; `None` if that depends on names that no package offers.
    pub fn holds(
        &self,
        requirement: &Requirement<'_>,
        is_present: &dyn Fn(usize) -> bool,
    ) -> Option<bool> {
        requirement.holds(&|bound| {
            let is_met = self.met_by(bound).any(is_present);
            (is_met || self.knows(&bound.name)).then_some(is_met)
        })
    }

    /// The positions of `packages` and of all that they need, as far as these packages have it.
    pub fn with_needs(&self, packages: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
        let (mut waiting, mut found) = (Vec::from_iter(packages), BTreeSet::new());
        while let Some(at) = waiting.pop() {
            if !found.insert(at) {
                continue;
            }
            for requirement in self.packages[at].relations.needs() {
                let is_taken = |other: usize| found.contains(&other) || waiting.contains(&other);
                if self.holds(requirement, &is_taken) == Some(true) {
                    continue;
                }
                let mut ways = requirement.alternatives().iter().map(|way| {
                    let met = way.bounds().into_iter().filter_map(|it| self.met_by(it).next());
                    met.collect::<Vec<usize>>()
                });
                waiting.extend(ways.find(|met| !met.is_empty()).unwrap_or_default());
            }
        }
        found
    }

    /// The packages that offer a name of `requirement` and are meant, as `name version`.
    pub fn offering_any(
        &self,
        requirement: &Requirement<'_>,
        is_meant: impl Fn(usize) -> bool,
    ) -> Vec<String> {
        let bounds = requirement.bounds().into_iter();
        let meant = bounds.flat_map(|bound| self.offering(&bound.name)).filter(|at| is_meant(*at));
        let named = meant.map(|at| self.packages[at].name_and_version());
        named.collect::<BTreeSet<String>>().into_iter().collect()
    }

    fn meets(&self, bound: &Bound<'_>) -> bool {
        self.meeting(bound).iter().any(|offers| !offers.is_empty())
    }

    /// The packages with other names that relations of `by` of a kind are about, by relation.
    pub fn related(
        &self,
        by: usize,
        kind: RelationKind,
    ) -> impl Iterator<Item = (&'p Requirement<'a>, BTreeSet<usize>)> {
        let package = self.packages[by];
        package.relations.of_kind(kind).filter_map(move |requirement| {
            let bound = requirement.bound()?;
            let others = self.met_by(bound).filter(|at| {
                let other = self.packages[*at];
                let is_named =
                    || *bound.name == *other.name && bound.admits(self.format, &other.version);
                other.name != package.name && (!names_packages(kind) || is_named())
            });
            Some((requirement, others.collect()))
        })
    }

    /// The requirements of the packages that none of them meets. `repository` has all packages that may be
    /// known, for other architectures, too. Required paths are left out.
    fn unmet(&self, repository: &Self) -> impl Iterator<Item = Unmet<'p, 'a>> {
        self.packages.iter().copied().enumerate().flat_map(move |(package, offered)| {
            offered.relations.needs().filter_map(move |requirement| {
                let origin = self.origin(requirement, offered, repository)?;
                Some(Unmet { package, requirement, origin })
            })
        })
    }

    /// The origin of a package that would meet a requirement of `package`; `None` if one of these meets it.
    fn origin(
        &self,
        requirement: &Requirement<'a>,
        package: &OfferedPackage<'_>,
        repository: &Self,
    ) -> Option<Origin> {
        if requirement.bound().is_some_and(|bound| bound.name.starts_with('/'))
            || !self.fails(requirement, &|_| true)
        {
            return None;
        }
        let is_known = |bound: &Bound<'_>| repository.knows(&bound.name);
        let is_own =
            |version: &str| compare_with_limit(self.format, &package.version, version).is_eq();
        let is_of_source = |bound: &Bound<'_>| {
            bound.exact().is_some_and(|version| is_own(version) || is_known(bound))
        };
        Some(if self.fails(requirement, &is_of_source) {
            Origin::SameSource
        } else if self.fails(requirement, &|it| it.exact().is_some() || is_known(it)) {
            Origin::Repository
        } else {
            Origin::Elsewhere
        })
    }

    /// Whether no package meets a requirement, whatever the bounds are met by that are not judged.
    fn fails(&self, requirement: &Requirement<'a>, is_judged: &dyn Fn(&Bound<'a>) -> bool) -> bool {
        requirement.holds(&|bound| is_judged(bound).then(|| self.meets(bound))) == Some(false)
    }

    fn named(&self, name: &str) -> &[ProvidedName<'p>] {
        let start = self.offers.partition_point(|offer| offer.name < name);
        let rest = self.offers.get(start..).unwrap_or_default();
        rest.get(..rest.partition_point(|offer| offer.name == name)).unwrap_or_default()
    }

    /// The offers that meet `bound`, by their class.
    fn meeting(&self, bound: &Bound<'_>) -> [&[ProvidedName<'p>]; 3] {
        let named = self.named(&bound.name);
        [0_u8, 1, 2].map(|class| {
            let start = named.partition_point(|offer| offer.class() < class);
            let end = named.partition_point(|offer| offer.class() <= class);
            let offers = named.get(start..end).unwrap_or_default();
            match &bound.version {
                Some((sign, limit)) if class > 0 => within(offers, *sign, |offer| {
                    compare_with_limit(self.format, offer.version.unwrap_or_default(), limit)
                }),
                Some(_) if self.format == Format::Deb => Default::default(),
                _ => offers,
            }
        })
    }
}

/// Whether relations of a kind apply to names of packages alone.
pub(super) fn names_packages(kind: RelationKind) -> bool {
    matches!(kind, RelationKind::Obsoletes | RelationKind::Replaces)
}

/// The sorted offers that are within a bound; `order` is the order of one relative to it.
fn within<'o, 'p>(
    offers: &'o [ProvidedName<'p>],
    sign: Comparison,
    order: impl Fn(&ProvidedName<'p>) -> Ordering,
) -> &'o [ProvidedName<'p>] {
    let first = offers.partition_point(|offer| order(offer).is_lt());
    let end = offers.partition_point(|offer| order(offer).is_le());
    let range = match sign {
        Comparison::Less => 0..first,
        Comparison::LessEqual => 0..end,
        Comparison::Equal => first..end,
        Comparison::GreaterEqual => first..offers.len(),
        Comparison::Greater => end..offers.len(),
    };
    offers.get(range).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::requirement::Relations;
    use super::*;

    fn package<'a>(name: &'a str, version: &'a str, fields: [&'a str; 2]) -> OfferedPackage<'a> {
        let [depends, provides] = fields;
        let relations = Relations::of_control(|name| match name {
            "Depends" => depends,
            "Provides" => provides,
            _ => "",
        });
        OfferedPackage { name, version: version.into(), arch: "x", relations, paths: Vec::new() }
    }

    fn bounded<'a>(name: &'a str, version: Option<(Comparison, &'a str)>) -> Bound<'a> {
        Bound { name: name.into(), version: version.map(|(sign, version)| (sign, version.into())) }
    }

    /// Each offer on its own is the judge.
    #[test]
    fn an_offer_of_many_meets_what_it_meets_alone() {
        let versions = ["1", "1-1", "1-2", "1.5~rc1-1", "2", "2-1", "1:0.1", "1:1-3", "10-1", "3"];
        let signs = ["LT", "LE", "EQ", "GE", "GT"].map(|word| Comparison::of_index(word).unwrap());
        let others = ["m", "o"].map(|name| package(name, "1", ["", ""]));
        let all = versions.map(|version| package("n", version, ["", ""]));
        for format in Format::ALL {
            for chosen in 0..1_u32 << versions.len() {
                let offered: Vec<usize> =
                    (0..versions.len()).filter(|at| chosen >> at & 1 == 1).collect();
                let own = offered.iter().rev().map(|at| &all[*at]);
                let resolver = Resolver::new(format, own.chain(&others).collect());
                for (sign, limit) in signs.iter().flat_map(|s| versions.map(|v| (*s, v))) {
                    let bound = bounded("n", Some((sign, limit)));
                    let is_met = |at: &&usize| bound.is_met(format, Some(versions[**at]));
                    let expected = offered.iter().filter(is_met).count();
                    assert_eq!(resolver.met_by(&bound).count(), expected, "{offered:?} {bound:?}");
                    assert_eq!(resolver.meets(&bound), expected > 0, "{offered:?} {bound:?}");
                }
            }
        }
    }

    #[test]
    fn what_has_no_version_meets_bounds_for_rpm_alone() {
        let one = package("o", "1", ["", "n"]);
        for (format, version, expected) in [
            (Format::Rpm, Some((Comparison::Less, "1")), true),
            (Format::Deb, Some((Comparison::Less, "1")), false),
            (Format::Deb, None, true),
        ] {
            let resolver = Resolver::new(format, vec![&one]);
            assert_eq!(resolver.meets(&bounded("n", version)), expected);
            assert!(!["a", "p"].iter().any(|name| resolver.meets(&bounded(name, version))));
        }
    }

    #[test]
    fn what_only_the_own_source_has_is_not_elsewhere() {
        let depends =
            "libc6 (>= 2), absent (= 1-1), other (= 7), a (= 2), b (>= 2), b, c (= 1-1) | d";
        let packages = [
            package("a", "1-1", [depends, ""]),
            package("b", "1", ["v (= 1) | w, a, v (>= 2)", "v (= 1)"]),
            OfferedPackage { arch: "y", ..package("e", "1", ["b", ""]) },
            OfferedPackage { arch: "all", ..package("f", "1", ["b, a:y", ""]) },
        ];
        let (machines, mut told) = (by_machine(Format::Deb, &packages), Vec::new());
        each_unmet(Format::Deb, &packages, &machines, |_, it| {
            let Unmet { package, requirement, origin } = it;
            told.push(format!("{} {requirement} {origin:?}", packages[package].name));
        });
        let expected = [
            "a a = 2 SameSource",
            "a absent = 1-1 SameSource",
            "a b >= 2 Repository",
            "a libc6 >= 2 Elsewhere",
            "a other = 7 Repository",
            "a c = 1-1 or d Elsewhere",
            "b v >= 2 Repository",
            "e b Repository",
            "f b Repository",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn thousands_of_versions_take_no_time() {
        let versions: Vec<String> = (0..20_000).map(|at| at.to_string()).collect();
        let depends = (0..500).map(|at| format!("n (= {at}.5)")).collect::<Vec<_>>().join(", ");
        let packages: Vec<OfferedPackage<'_>> =
            versions.iter().map(|version| package("n", version, ["", ""])).collect();
        let asking = package("m", "1", [&depends, ""]);
        let all: Vec<&OfferedPackage<'_>> = packages.iter().chain([&asking]).collect();
        let resolver = Resolver::new(Format::Deb, all);
        assert_eq!(resolver.unmet(&resolver).count(), 500);
    }
}
