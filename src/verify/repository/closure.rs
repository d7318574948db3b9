//! Dependencies within a repository.
//!
//! A dependency counts as one within the repository if the suite, or the rpm repository, has a package or
//! capability of that name at all, or if it asks for exactly one version, as packages of one set do of each
//! other. It must then be met by a package for the same architecture, in the same suite. All
//! others are on packages of the distribution, and are counted.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// How a bound compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Less,
    LessEqual,
    Equal,
    GreaterEqual,
    Greater,
}

impl Sign {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Less => order == Ordering::Less,
            Self::LessEqual => order != Ordering::Greater,
            Self::Equal => order == Ordering::Equal,
            Self::GreaterEqual => order != Ordering::Less,
            Self::Greater => order == Ordering::Greater,
        }
    }

    /// By its spelling in a control file or in `primary`.
    pub fn of(text: &str) -> Option<Self> {
        Some(match text {
            "<<" | "LT" => Self::Less,
            "<=" | "LE" => Self::LessEqual,
            "=" | "EQ" => Self::Equal,
            ">=" | "GE" => Self::GreaterEqual,
            ">>" | "GT" => Self::Greater,
            _ => return None,
        })
    }
}

/// One package or capability that is asked for.
#[derive(Debug, Clone)]
pub(super) struct Wish {
    pub name: String,
    pub bound: Option<(Sign, String)>,
}

/// A package for its dependencies.
#[derive(Debug, Clone)]
pub(super) struct PackageNode {
    pub path: String,
    /// Its own name and what it provides, each with a version or without.
    pub offers: Vec<(String, Option<String>)>,
    /// For each dependency, the alternatives.
    pub wishes: Vec<Vec<Wish>>,
}

/// A dependency that nothing meets.
pub(super) struct OpenWish {
    /// The package that has it.
    pub path: String,
    /// What would do, each in words.
    pub alternatives: Vec<String>,
}

/// Versions in the order of a format; and whether a capability without a version meets a bound.
#[derive(Clone, Copy)]
pub(super) struct VersionRules {
    pub compare: fn(&str, &str) -> Ordering,
    pub bare_meets: bool,
}

/// Open dependencies of `nodes`, which can be installed together, by package; and how many are on
/// packages elsewhere. `known` are the names that the suite, or the rpm repository, offers.
pub(super) fn open(
    nodes: &[&PackageNode],
    known: &BTreeSet<&str>,
    rules: VersionRules,
) -> (Vec<OpenWish>, usize) {
    let mut offers: BTreeMap<&str, Offers<'_>> = BTreeMap::new();
    for (name, version) in nodes.iter().flat_map(|node| &node.offers) {
        offers.entry(name).or_default().add(version.as_deref());
    }
    offers.values_mut().for_each(|offers| offers.sort(rules));
    let met = |wish: &Wish| {
        let offers = offers.get(wish.name.as_str());
        offers.is_some_and(|offers| offers.meet(wish.bound.as_ref(), rules))
    };
    let (mut found, mut elsewhere) = (Vec::new(), 0);
    for node in nodes {
        for wishes in node.wishes.iter().filter(|wishes| !wishes.iter().any(met)) {
            let exact = |wish: &Wish| wish.bound.as_ref().is_some_and(|b| b.0 == Sign::Equal);
            let within = |wish: &Wish| known.contains(wish.name.as_str()) || exact(wish);
            if wishes.iter().any(within) {
                let alternatives = wishes.iter().map(words).collect();
                found.push(OpenWish { path: node.path.clone(), alternatives });
            } else {
                elsewhere += 1
            }
        }
    }
    (found, elsewhere)
}

/// The versions that one name is offered in. Those with a release and those without one have an
/// order each; between the two, releases are not compared everywhere.
#[derive(Default)]
struct Offers<'a> {
    bare: bool,
    with_release: Vec<&'a str>,
    without: Vec<&'a str>,
}

impl<'a> Offers<'a> {
    fn add(&mut self, version: Option<&'a str>) {
        match version {
            Some(version) if version.contains('-') => self.with_release.push(version),
            Some(version) => self.without.push(version),
            None => self.bare = true,
        }
    }

    fn sort(&mut self, rules: VersionRules) {
        for versions in [&mut self.with_release, &mut self.without] {
            versions.sort_by(|one, other| (rules.compare)(one, other));
        }
    }

    /// Whether any meets a bound: if one does, the lowest or the highest does, or an equal one.
    fn meet(&self, bound: Option<&(Sign, String)>, rules: VersionRules) -> bool {
        let Some((sign, bound)) = bound else {
            return true;
        };
        let order = |version: &&str| (rules.compare)(version, bound);
        let meets = |versions: &Vec<&str>| {
            let ends = [versions.first(), versions.last()];
            ends.into_iter().flatten().any(|version| sign.holds(order(version)))
                || (*sign == Sign::Equal && versions.binary_search_by(order).is_ok())
        };
        (self.bare && rules.bare_meets)
            || [&self.with_release, &self.without].into_iter().any(meets)
    }
}

/// How messages name one.
fn words(wish: &Wish) -> String {
    match &wish.bound {
        Some((sign, version)) => {
            let sign = match sign {
                Sign::Less => "<",
                Sign::LessEqual => "<=",
                Sign::Equal => "=",
                Sign::GreaterEqual => ">=",
                Sign::Greater => ">",
            };
            format!("{} {sign} {version}", wish.name)
        }
        None => wish.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{deb, rpm};

    /// Each offer on its own is the judge.
    #[test]
    fn an_offer_of_many_meets_what_it_meets_alone() {
        let compare = |one: &str, other: &str| {
            let bare = |version: &str| version.split('-').next().unwrap().to_owned();
            if one.contains('-') && other.contains('-') {
                rpm::compare_versions(one, other)
            } else {
                rpm::compare_versions(&bare(one), &bare(other))
            }
        };
        let rpm = VersionRules { compare, bare_meets: true };
        let deb = VersionRules { compare: deb::compare_versions, bare_meets: false };
        let versions = ["1", "1-1", "1-2", "1.5~rc1-1", "2", "2-1", "1:0.1", "1:1-3", "10-1", "3"];
        let signs = [Sign::Less, Sign::LessEqual, Sign::Equal, Sign::GreaterEqual, Sign::Greater];
        for rules in [rpm, deb] {
            for chosen in 0..1_u32 << versions.len() {
                let offered: Vec<&str> = (0..versions.len())
                    .filter(|at| chosen >> at & 1 == 1)
                    .map(|at| versions[at])
                    .collect();
                let mut offers = Offers::default();
                offered.iter().rev().for_each(|version| offers.add(Some(version)));
                offers.sort(rules);
                for (sign, bound) in signs.iter().flat_map(|s| versions.map(|v| (*s, v))) {
                    let meets = |version: &&str| sign.holds((rules.compare)(version, bound));
                    let expected = offered.iter().any(meets);
                    let bound = (sign, bound.to_owned());
                    assert_eq!(offers.meet(Some(&bound), rules), expected, "{offered:?} {bound:?}");
                }
            }
        }
    }
}
