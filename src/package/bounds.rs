//! Relations of packages as indexes and receipts have them. There may be many, so names and versions are
//! borrowed from the text that was read.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::iter;

use rockpack_base::formats::deb::{DebRelation, relations};

use super::{Comparison, Format, Relation, RelationKind};

/// A package or capability with a bound on its version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bound<'a> {
    /// The name of the package or capability.
    pub name: Cow<'a, str>,
    /// The comparison and the version to compare with; any version if unset.
    pub version: Option<(Comparison, Cow<'a, str>)>,
}

impl Bound<'_> {
    /// Whether `version`, of a package or capability of this name, is within the bound.
    pub fn admits(&self, format: Format, version: &str) -> bool {
        let Some((comparison, limit)) = &self.version else { return true };
        comparison.holds(compare_with_limit(format, version, limit))
    }

    /// The version, if exactly one is within the bound.
    pub fn exact(&self) -> Option<&str> {
        match &self.version {
            Some((Comparison::Equal, version)) => Some(version),
            _ => None,
        }
    }

    /// Whether a package or capability of this name with `version` meets the bound. Without a version, it
    /// meets every bound for rpm, and no bound for dpkg.
    pub fn is_met(&self, format: Format, version: Option<&str>) -> bool {
        match version {
            Some(version) => self.admits(format, version),
            None => self.version.is_none() || format == Format::Rpm,
        }
    }

    /// Copies borrowed texts.
    pub fn into_owned(self) -> Bound<'static> {
        let version = self.version.map(|(sign, version)| (sign, version.into_owned().into()));
        Bound { name: self.name.into_owned().into(), version }
    }
}

/// Compares a version with the limit of a bound. In rpm, releases count only if both have one.
pub fn compare_with_limit(format: Format, version: &str, limit: &str) -> Ordering {
    let whole = format == Format::Deb || (version.contains('-') && limit.contains('-'));
    let compared = |text| if whole { text } else { without_release(text) };
    format.compare_versions(compared(version), compared(limit))
}

/// The version up to the first dash, behind which rpm writes the release.
fn without_release(version: &str) -> &str {
    version.split('-').next().unwrap_or_default()
}

/// The relations of a package without duplicates, sorted by kind and name.
#[derive(Debug, Clone, Default, PartialEq, Eq, derive_more::IntoIterator)]
pub struct Relations<'a>(Vec<(RelationKind, Bound<'a>)>);

impl<'a> Relations<'a> {
    /// Sorts `relations` and removes duplicates.
    pub fn of(relations: impl IntoIterator<Item = (RelationKind, Bound<'a>)>) -> Self {
        let mut relations: Vec<_> = relations.into_iter().collect();
        relations.sort_unstable();
        relations.dedup();
        relations.shrink_to_fit();
        Self(relations)
    }

    /// The relations of a kind.
    pub fn of_kind(&self, kind: RelationKind) -> &[(RelationKind, Bound<'a>)] {
        self.between(|(own, _)| *own < kind, |(own, _)| *own == kind)
    }

    /// The relations of a kind with a name.
    pub fn named(&self, kind: RelationKind, name: &str) -> &[(RelationKind, Bound<'a>)] {
        self.between(
            |(own, bound)| (*own, &*bound.name) < (kind, name),
            |(own, bound)| (*own, &*bound.name) == (kind, name),
        )
    }

    fn between(
        &self,
        is_before: impl Fn(&(RelationKind, Bound<'a>)) -> bool,
        is_in: impl Fn(&(RelationKind, Bound<'a>)) -> bool,
    ) -> &[(RelationKind, Bound<'a>)] {
        let rest = self.0.get(self.0.partition_point(is_before)..).unwrap_or_default();
        rest.get(..rest.partition_point(is_in)).unwrap_or_default()
    }
}

/// The bounds in a field of a control file, without alternatives.
pub fn deb_bounds(list: &str) -> impl Iterator<Item = Bound<'_>> {
    let mut relations = relations(list).map_while(Result::ok).peekable();
    iter::from_fn(move || {
        loop {
            let relation = relations.next()?;
            let has_next = relations.peek().is_some_and(|next| next.is_alternative);
            if !relation.is_alternative && !has_next {
                let version = deb_bound(&relation).map(|(sign, version)| (sign, version.into()));
                return Some(Bound { name: relation.name.into(), version });
            }
        }
    })
}

/// A relation of a control file, which both dpkg and apt accept; alternatives are kept whole.
pub fn deb_relation(kind: RelationKind, text: &str) -> Relation {
    let mut read = relations(text.trim()).map_while(Result::ok);
    let version = match (read.next(), read.next()) {
        (Some(one), None) => deb_bound(&one).map(|(sign, version)| (sign, version.to_owned())),
        _ => None,
    };
    let name = version.as_ref().and_then(|_| text.split('(').next()).unwrap_or(text);
    Relation { kind, name: name.trim().to_owned(), version }
}

/// The comparison and the version of a relation in a control file.
pub fn deb_bound<'a>(relation: &DebRelation<'a>) -> Option<(Comparison, &'a str)> {
    let (sign, version) = relation.bound?;
    Comparison::split(sign, Format::Deb).map(|(sign, _)| (sign, version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_are_found_by_kind_and_name() {
        let depends = "b, a (= 1), b, c | d, a (>= 2) , a:any (= 1)";
        let all = deb_bounds(depends).map(|bound| (RelationKind::Depends, bound));
        let other = deb_bounds("a, z").map(|bound| (RelationKind::Breaks, bound));
        let relations = Relations::of(other.chain(all));
        let names = ["a", "b", "c", "d", "z", ""];
        let counts = names.map(|name| relations.named(RelationKind::Depends, name).len());
        assert_eq!(counts, [2, 1, 0, 0, 0, 0]);
        assert_eq!(relations.of_kind(RelationKind::Depends).len(), 3);
        assert_eq!(relations.of_kind(RelationKind::Breaks).len(), 2);
        assert!(relations.of_kind(RelationKind::Provides).is_empty());
        let owned = Relations::of(relations.clone().into_iter().map(|(k, b)| (k, b.into_owned())));
        assert_eq!(owned, relations);
    }
}
