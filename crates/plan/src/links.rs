//! Links between packages of the set.

use super::naming::PackageNames;
use super::settings::PlanSettings;
use rockpack_package::{Comparison, Format, Relation, RelationKind};

/// A relation to a package or capability of the set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Link {
    pub kind: RelationKind,
    pub to: PackageNames,
    pub versions: LinkVersions,
}

/// The versions of a package that satisfy a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LinkVersions {
    Any,
    /// The set's version, and later releases below [`PlanSettings::next_patch`].
    OfPatch,
    /// The set's version alone.
    Own,
    /// All versions before the set's.
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

    /// A link to the versions of a package before the version of this set.
    pub fn before(kind: RelationKind, to: &PackageNames) -> Self {
        Self { kind, to: to.clone(), versions: LinkVersions::Before }
    }

    pub fn any(kind: RelationKind, to: &PackageNames) -> Self {
        Self { kind, to: to.clone(), versions: LinkVersions::Any }
    }

    /// The relations for the link in the terms of `format`.
    pub fn relations(&self, format: Format, setting: &PlanSettings) -> Vec<Relation> {
        let version = &setting.version;
        let bounds = match (self.versions, setting.next_patch()) {
            (LinkVersions::Any, _) => vec![None],
            (LinkVersions::Before, _) => vec![Some((Comparison::Less, version.full(format)))],
            (LinkVersions::OfPatch, Some(next)) => {
                let least = (Comparison::GreaterEqual, version.full(format));
                vec![Some(least), Some((Comparison::Less, next.to_owned()))]
            }
            (LinkVersions::OfPatch, None) | (LinkVersions::Own, _) => {
                vec![Some((Comparison::Equal, version.full(format)))]
            }
        };
        let name = self.to.of(format);
        // A `Breaks` of a `.deb` is a `Conflicts` of an `.rpm`.
        let kind = match (self.kind, format) {
            (RelationKind::Breaks, Format::Rpm) => RelationKind::Conflicts,
            (kind, _) => kind,
        };
        bounds
            .into_iter()
            .map(|version| Relation { kind, name: name.to_owned(), version })
            .collect()
    }
}
