//! Relations between packages.

use std::cmp::Ordering;

use rockpack_core::named_enum;
use rockpack_core::package_format::Format;
use rpm::DependencyFlags as Flags;
use serde::Serialize;

use crate::deb::relations;

named_enum! {
    /// The kind of a relation between packages. The plan, not emission, leaves out kinds that a format lacks.
    pub enum RelationKind {
        /// deb `Pre-Depends`, which only packages of other tools have.
        PreDepends = "pre-depends",
        /// deb `Depends`, rpm `Requires`.
        Depends = "depends",
        Recommends = "recommends",
        Suggests = "suggests",
        Enhances = "enhances",
        /// rpm `Supplements`.
        Supplements = "supplements",
        Provides = "provides",
        Conflicts = "conflicts",
        /// deb `Breaks`.
        Breaks = "breaks",
        /// deb `Replaces`.
        Replaces = "replaces",
        /// rpm `Obsoletes`.
        Obsoletes = "obsoletes",
    }
}

/// The fields of relations in a control file, in the order of writing.
pub const DEB_FIELDS: [(RelationKind, &str); 9] = [
    (RelationKind::PreDepends, "Pre-Depends"),
    (RelationKind::Depends, "Depends"),
    (RelationKind::Recommends, "Recommends"),
    (RelationKind::Suggests, "Suggests"),
    (RelationKind::Enhances, "Enhances"),
    (RelationKind::Breaks, "Breaks"),
    (RelationKind::Conflicts, "Conflicts"),
    (RelationKind::Replaces, "Replaces"),
    (RelationKind::Provides, "Provides"),
];

named_enum! {
    /// The comparison of a version bound; the names are those of rpm.
    pub enum Comparison {
        /// `<<` in deb, `<` in rpm.
        Less = "<",
        LessEqual = "<=",
        Equal = "=",
        GreaterEqual = ">=",
        /// `>>` in deb, `>` in rpm.
        Greater = ">",
    }
}

/// The comparisons, their flags in the header of an `.rpm`, and their words in the index of a repository.
const RPM_COMPARISONS: [(Comparison, Flags, &str); 5] = [
    (Comparison::Less, Flags::LESS, "LT"),
    (Comparison::LessEqual, Flags::LE, "LE"),
    (Comparison::Equal, Flags::EQUAL, "EQ"),
    (Comparison::GreaterEqual, Flags::GE, "GE"),
    (Comparison::Greater, Flags::GREATER, "GT"),
];

/// The word for a dependency with these flags in the index of an rpm repository; `None` if it compares nothing.
pub fn index_word(flags: Flags) -> Option<&'static str> {
    let signs = flags & (Flags::LESS | Flags::GREATER | Flags::EQUAL);
    RPM_COMPARISONS.iter().find(|(_, own, _)| *own == signs).map(|(_, _, word)| *word)
}

impl Comparison {
    /// All comparisons, longest sign first, so that `<=` matches before `<`.
    const ALL: [Self; 5] =
        [Self::LessEqual, Self::GreaterEqual, Self::Less, Self::Greater, Self::Equal];

    /// The comparison for `word` in the index of an rpm repository, such as `LE`.
    pub fn of_index(word: &str) -> Option<Self> {
        RPM_COMPARISONS.iter().find(|(_, _, own)| *own == word).map(|(comparison, ..)| *comparison)
    }

    pub(super) fn flags(self) -> Flags {
        RPM_COMPARISONS
            .iter()
            .find(|(own, ..)| *own == self)
            .map_or(Flags::ANY, |(_, flags, _)| *flags)
    }

    /// Whether a version is within the bound, if `order` is its order relative to the bound.
    pub const fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Less => order.is_lt(),
            Self::LessEqual => order.is_le(),
            Self::Equal => order.is_eq(),
            Self::GreaterEqual => order.is_ge(),
            Self::Greater => order.is_gt(),
        }
    }

    pub const fn sign(self, format: Format) -> &'static str {
        match (self, format) {
            (Self::Less, Format::Deb) => "<<",
            (Self::Greater, Format::Deb) => ">>",
            _ => self.as_str(),
        }
    }

    /// Splits the sign off a bound in the syntax of `format`: `>= 7.1`.
    pub fn split(bound: &str, format: Format) -> Option<(Self, &str)> {
        let mut all = Self::ALL.into_iter();
        all.find_map(|it| Some((it, bound.strip_prefix(it.sign(format))?)))
    }
}

/// One relation, in the syntax of one format.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Relation {
    pub kind: RelationKind,
    /// Package or capability name; a deb alternative (`a | b`) is written whole.
    pub name: String,
    /// Version bound, in the format's version syntax.
    pub version: Option<(Comparison, String)>,
}

/// A relation of a control file, which both dpkg and apt accept; alternatives are kept whole.
pub fn deb_relation(kind: RelationKind, text: &str) -> Relation {
    let mut read = relations(text.trim()).map_while(Result::ok);
    let version = match (read.next(), read.next()) {
        (Some(one), None) => one.bound.map(|(sign, version)| (sign, version.to_owned())),
        _ => None,
    };
    let name = version.as_ref().and_then(|_| text.split('(').next()).unwrap_or(text);
    Relation { kind, name: name.trim().to_owned(), version }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_read_as_they_are_written() {
        for format in Format::ALL {
            for comparison in Comparison::ALL {
                let bound = format!("{}1.2", comparison.sign(format));
                assert_eq!(Comparison::split(&bound, format), Some((comparison, "1.2")));
            }
            assert_eq!(Comparison::split("1.2", format), None);
        }
        // Debian's `<` and `>` are ambiguous and no longer allowed.
        assert_eq!(Comparison::split("< 1", Format::Deb), None);
    }
}
