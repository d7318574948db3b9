//! Dependencies within a repository.
//!
//! A dependency counts as one within the repository if the suite, or the rpm repository, has a package or
//! capability of that name at all, or if it asks for exactly one version, as packages of one set do of each
//! other. It must then be met by a package for the same architecture, in the same suite. All
//! others are on packages of the distribution, and are counted.

use std::cmp::Ordering;

use rockpack_base::error::{Error, Kind, Result};

use crate::package::bounds::compare_with_limit;
use crate::package::{Comparison, Format};
use crate::verify::problem::MOST_TOLD;

/// Bytes that a relation takes at least, on the average of a list of packages: lists of distributions
/// have more than a hundred. In memory it takes some hundred.
const SHORTEST: usize = 32;

/// Relations that any list may have, and those of one package: ten and more times what packages have.
const ASIDE: usize = 100_000;

/// Alternatives that are told of one.
const ALTERNATIVES_TOLD: usize = 100;

/// Relations that a list of packages can still have.
pub(super) struct RelationsLeft(usize);

impl RelationsLeft {
    /// The bounds for a list of `len` bytes.
    pub fn of(len: usize) -> Self {
        Self(len / SHORTEST + ASIDE)
    }

    /// Takes one.
    pub fn take(&mut self) -> Result<()> {
        self.0 = self.0.checked_sub(1).ok_or_else(|| {
            let message = "states more relations of packages than its bytes can describe";
            Error::new(Kind::Limit, message).hint(
                "whoever made it wants to use up memory, or repeats relations: publish it again",
            )
        })?;
        Ok(())
    }
}

/// One package or capability that is asked for.
#[derive(Debug, Clone)]
pub(super) struct Wish<'a> {
    pub name: &'a str,
    pub bound: Option<(Comparison, &'a str)>,
    /// Whether the one before it would do instead.
    pub is_alternative: bool,
}

/// The name of a package or of what it provides, with a version or without.
pub(super) type Offer<'a> = (&'a str, Option<&'a str>);

/// A package for its dependencies.
#[derive(Debug, Clone)]
pub(super) struct PackageNode<'a> {
    pub path: &'a str,
    pub offers: Vec<Offer<'a>>,
    /// The alternatives of each dependency, one dependency after the other.
    pub wishes: Vec<Wish<'a>>,
}

/// A dependency that nothing meets.
pub(super) struct OpenWish {
    /// The package that has it.
    pub path: String,
    /// The alternatives that would meet it, in words.
    pub alternatives: Vec<String>,
}

/// Names that a suite, or an rpm repository, offers.
pub(super) struct KnownNames<'a>(Vec<&'a str>);

impl<'a> KnownNames<'a> {
    pub fn of<'n>(nodes: impl Iterator<Item = &'n PackageNode<'a>>) -> Self
    where
        'a: 'n,
    {
        let mut names: Vec<&str> =
            nodes.flat_map(|node| &node.offers).map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        Self(names)
    }

    fn has(&self, name: &str) -> bool {
        self.0.binary_search(&name).is_ok()
    }
}

/// The dependencies among packages that nothing meets.
#[derive(Default)]
pub(super) struct OpenWishes {
    /// The first of them.
    pub told: Vec<OpenWish>,
    /// How many more there are.
    pub more: usize,
    /// Dependencies on packages elsewhere.
    pub elsewhere: usize,
}

/// Open dependencies of `nodes`, which can be installed together, by package.
pub(super) fn open(
    nodes: &[&PackageNode<'_>],
    known: &KnownNames<'_>,
    format: Format,
) -> OpenWishes {
    let offers = Offers::of(nodes.iter().flat_map(|node| &node.offers).copied(), format);
    let mut open = OpenWishes::default();
    for node in nodes {
        let groups = node.wishes.chunk_by(|_, next| next.is_alternative);
        for wishes in groups.filter(|wishes| !wishes.iter().any(|wish| offers.meet(wish))) {
            if !wishes.iter().any(|wish| is_within(wish, known)) {
                open.elsewhere += 1;
            } else if open.told.len() < MOST_TOLD {
                let alternatives = wishes.iter().take(ALTERNATIVES_TOLD).map(words).collect();
                open.told.push(OpenWish { path: node.path.to_owned(), alternatives });
            } else {
                open.more += 1;
            }
        }
    }
    open
}

fn is_within(wish: &Wish<'_>, known: &KnownNames<'_>) -> bool {
    known.has(wish.name) || wish.bound.is_some_and(|(sign, _)| sign == Comparison::Equal)
}

/// All offered capabilities by name. Within a name come those without a version, then versions without a
/// release, then versions with one, each in order. Not every comparison of a version with and one without
/// a release looks at releases.
struct Offers<'a> {
    sorted: Vec<Offer<'a>>,
    format: Format,
}

impl<'a> Offers<'a> {
    fn of(offers: impl Iterator<Item = Offer<'a>>, format: Format) -> Self {
        let mut sorted: Vec<Offer<'a>> = offers.collect();
        sorted.sort_unstable_by(|(one, version), (other, other_version)| {
            let order = one.cmp(other).then_with(|| class(*version).cmp(&class(*other_version)));
            order.then_with(|| match (version, other_version) {
                (Some(version), Some(other)) => compare_with_limit(format, version, other),
                _ => Ordering::Equal,
            })
        });
        Self { sorted, format }
    }

    /// Whether any meets a wish: if one does, the lowest or the highest does, or an equal one. One without a
    /// version meets every bound for rpm, and no bound for dpkg.
    fn meet(&self, wish: &Wish<'_>) -> bool {
        let start = self.sorted.partition_point(|(name, _)| *name < wish.name);
        let rest = self.sorted.get(start..).unwrap_or_default();
        let named =
            rest.get(..rest.partition_point(|(name, _)| *name == wish.name)).unwrap_or_default();
        let Some((sign, bound)) = wish.bound else { return !named.is_empty() };
        [0, 1, 2].into_iter().any(|of_class| {
            let start = named.partition_point(|(_, version)| class(*version) < of_class);
            let rest = named.get(start..).unwrap_or_default();
            let end = rest.partition_point(|(_, version)| class(*version) == of_class);
            let versions = rest.get(..end).unwrap_or_default();
            if of_class == 0 {
                return self.format == Format::Rpm && !versions.is_empty();
            }
            let ends = [versions.first(), versions.last()];
            ends.into_iter().flatten().any(|offer| sign.holds(self.compare(offer, bound)))
                || (sign == Comparison::Equal
                    && versions.binary_search_by(|offer| self.compare(offer, bound)).is_ok())
        })
    }

    fn compare(&self, (_, version): &Offer<'_>, bound: &str) -> Ordering {
        compare_with_limit(self.format, version.unwrap_or(""), bound)
    }
}

/// The rank of a version among those of one name: no version, a version without a release, or with one.
fn class(version: Option<&str>) -> u8 {
    version.map_or(0, |version| 1 + u8::from(version.contains('-')))
}

/// How messages name one.
fn words(wish: &Wish<'_>) -> String {
    match &wish.bound {
        Some((sign, version)) => format!("{} {sign} {version}", wish.name),
        None => wish.name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each offer on its own is the judge.
    #[test]
    fn an_offer_of_many_meets_what_it_meets_alone() {
        let versions = ["1", "1-1", "1-2", "1.5~rc1-1", "2", "2-1", "1:0.1", "1:1-3", "10-1", "3"];
        let signs = ["LT", "LE", "EQ", "GE", "GT"].map(|word| Comparison::of_index(word).unwrap());
        for format in Format::ALL {
            for chosen in 0..1_u32 << versions.len() {
                let offered: Vec<&str> = (0..versions.len())
                    .filter(|at| chosen >> at & 1 == 1)
                    .map(|at| versions[at])
                    .collect();
                let others = [("m", None), ("o", Some("1")), ("o", None)];
                let own = offered.iter().rev().map(|version| ("n", Some(*version)));
                let offers = Offers::of(own.chain(others), format);
                for (sign, bound) in signs.iter().flat_map(|s| versions.map(|v| (*s, v))) {
                    let order = |version: &&str| compare_with_limit(format, version, bound);
                    let expected = offered.iter().any(|version| sign.holds(order(version)));
                    let bound = Some((sign, bound));
                    let wish = Wish { name: "n", bound, is_alternative: false };
                    assert_eq!(offers.meet(&wish), expected, "{offered:?} {bound:?}");
                }
            }
        }
    }

    #[test]
    fn what_has_no_version_meets_bounds_for_rpm_alone() {
        for (format, bound, expected) in [
            (Format::Rpm, Some((Comparison::Less, "1")), true),
            (Format::Deb, Some((Comparison::Less, "1")), false),
            (Format::Deb, None, true),
        ] {
            let offers = Offers::of([("n", None), ("o", Some("1"))].into_iter(), format);
            assert_eq!(offers.meet(&wish("n", bound)), expected);
            assert!(!offers.meet(&wish("a", bound)) && !offers.meet(&wish("p", bound)));
        }
    }

    fn wish<'a>(name: &'a str, bound: Option<(Comparison, &'a str)>) -> Wish<'a> {
        Wish { name, bound, is_alternative: false }
    }

    #[test]
    fn of_many_open_dependencies_some_are_told() {
        let others = (0..4 * MOST_TOLD + 2).map(|at| numbered_wish(at + 2));
        let wishes = others.chain([numbered_wish(0)]).collect();
        let node = PackageNode { path: "p", offers: vec![("p", None)], wishes };
        let open = open(&[&node], &KnownNames::of([&node].into_iter()), Format::Deb);
        assert_eq!((open.told.len(), open.more, open.elsewhere), (MOST_TOLD, MOST_TOLD + 1, 1));
        assert_eq!(open.told[0].alternatives, ["x = 1", "x = 1"]);
    }

    /// The wish of a number: that of 0 is for a package elsewhere, those of odd ones are alternatives.
    fn numbered_wish(at: usize) -> Wish<'static> {
        Wish {
            name: if at == 0 { "elsewhere" } else { "x" },
            bound: Some((if at == 0 { Comparison::Less } else { Comparison::Equal }, "1")),
            is_alternative: at % 2 == 1,
        }
    }
}
