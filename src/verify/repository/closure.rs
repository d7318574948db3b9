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
    let mut offers: BTreeMap<&str, Vec<Option<&str>>> = BTreeMap::new();
    for (name, version) in nodes.iter().flat_map(|node| &node.offers) {
        offers.entry(name).or_default().push(version.as_deref());
    }
    let met = |wish: &Wish| {
        let Some(versions) = offers.get(wish.name.as_str()) else {
            return false;
        };
        let Some((sign, bound)) = &wish.bound else {
            return true;
        };
        versions.iter().any(|version| match version {
            Some(version) => sign.holds((rules.compare)(version, bound)),
            None => rules.bare_meets,
        })
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
