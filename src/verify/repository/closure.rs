//! Dependencies within a repository.
//!
//! A dependency counts as one within the repository if the repository has a package or capability
//! of that name at all, or if it asks for exactly one version, as packages of one set do of each
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
pub(super) struct Node {
    pub path: String,
    /// Its own name and what it provides, each with a version or without.
    pub offers: Vec<(String, Option<String>)>,
    /// For each dependency, the alternatives.
    pub wishes: Vec<Vec<Wish>>,
}

/// Versions in the order of a format; and whether a capability without a version meets a bound.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    pub compare: fn(&str, &str) -> Ordering,
    pub bare_meets: bool,
}

/// Open dependencies of `nodes`, which can be installed together, by package; and how many are on
/// packages elsewhere. `known` are the names that the whole repository offers.
pub(super) fn open(
    nodes: &[&Node],
    known: &BTreeSet<&str>,
    rules: Rules,
) -> (Vec<(String, String)>, usize) {
    let Rules { compare, bare_meets } = rules;
    let mut offers: BTreeMap<&str, Offers<'_>> = BTreeMap::new();
    for (name, offered) in nodes.iter().flat_map(|node| &node.offers) {
        offers
            .entry(name)
            .or_default()
            .add(offered.as_deref().map(|text| Version { text, compare }));
    }
    let met = |wish: &Wish| match (offers.get(wish.name.as_str()), &wish.bound) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(offers), Some((sign, bound))) => {
            offers.bare && bare_meets || offers.meet(*sign, Version { text: bound, compare })
        }
    };
    let (mut found, mut elsewhere) = (Vec::new(), 0);
    for node in nodes {
        for wishes in node.wishes.iter().filter(|wishes| !wishes.iter().any(met)) {
            let exact = |wish: &Wish| wish.bound.as_ref().is_some_and(|b| b.0 == Sign::Equal);
            let within = |wish: &Wish| known.contains(wish.name.as_str()) || exact(wish);
            match wishes.iter().any(within) {
                true => found.push((node.path.clone(), words(wishes))),
                false => elsewhere += 1,
            }
        }
    }
    (found, elsewhere)
}

/// A version in the order of its format.
#[derive(Clone, Copy)]
struct Version<'a> {
    text: &'a str,
    compare: fn(&str, &str) -> Ordering,
}

impl Ord for Version<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.compare)(self.text, other.text)
    }
}

impl PartialOrd for Version<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Version<'_> {}

/// What is offered of a name. Many versions of it may be, and as many asked for: none is compared
/// with all others.
#[derive(Default)]
struct Offers<'a> {
    /// Whether one has no version.
    bare: bool,
    /// Those without release and those with one. rpm takes one without for equal to all that have
    /// one, so that they are in one order only apart.
    versions: [BTreeSet<Version<'a>>; 2],
}

impl<'a> Offers<'a> {
    fn add(&mut self, version: Option<Version<'a>>) {
        let [without, with] = &mut self.versions;
        match version {
            None => self.bare = true,
            Some(version) if version.text.contains('-') => drop(with.insert(version)),
            Some(version) => drop(without.insert(version)),
        }
    }

    /// Whether a version is one that a bound asks for.
    fn meet(&self, sign: Sign, bound: Version<'_>) -> bool {
        self.versions.iter().any(|versions| {
            let end = match sign {
                Sign::Less | Sign::LessEqual => versions.first(),
                Sign::Equal => return versions.contains(&bound),
                Sign::GreaterEqual | Sign::Greater => versions.last(),
            };
            end.is_some_and(|version| sign.holds(version.cmp(&bound)))
        })
    }
}

fn words(wishes: &[Wish]) -> String {
    let one = |wish: &Wish| match &wish.bound {
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
    };
    wishes.iter().map(one).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the release only where both have one, as rpm does.
    fn compare(left: &str, right: &str) -> Ordering {
        let parts = |text: &str| {
            let (version, release) = text.split_once('-').unwrap_or((text, ""));
            (version.to_owned(), release.to_owned())
        };
        let ((version, release), (other, others)) = (parts(left), parts(right));
        let releases = if release.is_empty() || others.is_empty() {
            Ordering::Equal
        } else {
            release.cmp(&others)
        };
        version.cmp(&other).then(releases)
    }

    #[test]
    fn a_bound_is_met_by_any_version_of_a_name() {
        const VERSIONS: [&str; 7] = ["1", "1-1", "1-3", "2-2", "3", "3-1", "4"];
        for offered in 0..1_u32 << VERSIONS.len() {
            let offered = VERSIONS.iter().enumerate().filter(|(at, _)| offered >> at & 1 == 1);
            let offered: Vec<&str> = offered.map(|(_, version)| *version).collect();
            let mut offers = Offers::default();
            for text in &offered {
                offers.add(Some(Version { text, compare }));
            }
            for sign in ["<<", "<=", "=", ">=", ">>"].map(|sign| Sign::of(sign).unwrap()) {
                for bound in VERSIONS {
                    let expected = offered.iter().any(|text| sign.holds(compare(text, bound)));
                    let met = offers.meet(sign, Version { text: bound, compare });
                    assert_eq!(met, expected, "{sign:?} {bound} of {offered:?}");
                }
            }
        }
    }
}
