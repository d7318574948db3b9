//! Links between packages of the set.

use super::naming::PackageNames;
use super::settings::PlanSettings;
use crate::package::{Comparison, Format, Relation, RelationKind};

/// A relation to a package or capability of the set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Link {
    pub kind: RelationKind,
    pub to: PackageNames,
    pub versions: LinkVersions,
}

/// The versions of a package that a link is satisfied with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LinkVersions {
    Any,
    /// The one of the set, and those of later releases of the same patch version where the set's
    /// relations allow it: see [`PlanSettings::next_patch`].
    OfPatch,
    /// The one of the set alone.
    Own,
    /// All before the one of the set.
    Before,
}

impl Link {
    /// A link to a package of the same family, which is made anew whenever this one is.
    pub fn exact(kind: RelationKind, to: &PackageNames) -> Self {
        Self { kind, to: to.clone(), versions: LinkVersions::Own }
    }

    /// A link to a package of another family, which may be updated by itself.
    pub fn of_patch(kind: RelationKind, to: &PackageNames) -> Self {
        Self { kind, to: to.clone(), versions: LinkVersions::OfPatch }
    }

    /// A link to a package from whose version in the set on the two belong together.
    pub fn before(kind: RelationKind, to: &PackageNames) -> Self {
        Self { kind, to: to.clone(), versions: LinkVersions::Before }
    }

    pub fn any(kind: RelationKind, to: &PackageNames) -> Self {
        Self { kind, to: to.clone(), versions: LinkVersions::Any }
    }

    /// The relations that say it in the words of `format`.
    pub fn relations(&self, format: Format, setting: &PlanSettings) -> Vec<Relation> {
        let own = || setting.version.full(format);
        let bounds = match (self.versions, setting.next_patch()) {
            (LinkVersions::Any, _) => vec![None],
            (LinkVersions::Before, _) => vec![Some((Comparison::Less, own()))],
            (LinkVersions::OfPatch, Some(next)) => {
                let least = (Comparison::GreaterEqual, own());
                vec![Some(least), Some((Comparison::Less, next.to_owned()))]
            }
            (LinkVersions::OfPatch, None) | (LinkVersions::Own, _) => {
                vec![Some((Comparison::Equal, own()))]
            }
        };
        let name = self.to.of(format);
        // What is `Breaks` of a `.deb` is `Conflicts` of an `.rpm`.
        let kind = match (self.kind, format) {
            (RelationKind::Breaks, Format::Rpm) => RelationKind::Conflicts,
            (kind, _) => kind,
        };
        let relation = |version| Relation { kind, name: name.to_owned(), version };
        bounds.into_iter().map(relation).collect()
    }
}
