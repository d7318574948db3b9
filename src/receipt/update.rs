//! What clients of earlier sets need of a package, which the next set of the version needs as well.

use serde::{Deserialize, Serialize};

use super::RelationRecord;
use crate::package::{Format, MemberKind, Package, PathChange, Relation};

/// Means by which a package takes the place of what earlier sets have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateRecord {
    /// Relations to packages that had paths of this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relations: Vec<RelationRecord>,
    /// Paths at which a folder became something else, or the reverse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathChangeRecord>,
}

/// A path at which something else stands than in an earlier set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathChangeRecord {
    /// Absolute path.
    pub path: String,
    /// The kind that stood there.
    pub was: MemberKind,
    /// The kind that stands there.
    pub is: MemberKind,
    /// The text of the link that was there or is, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Whether another package had the path.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_shared: bool,
    /// Paths that earlier versions have in the folder, relative to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
}

impl UpdateRecord {
    /// The means of `package` in `format`; nothing if it needs none.
    pub fn of_package<F>(package: &Package<F>, format: Format) -> Option<Self> {
        let own = |(of, relation): &(Format, Relation)| (*of == format).then(|| relation.into());
        let mut relations: Vec<RelationRecord> =
            package.identity.taken.iter().filter_map(own).collect();
        relations.sort();
        relations.dedup();
        let paths = package.identity.changed.iter().filter(|(of, _)| *of == format);
        let paths: Vec<PathChangeRecord> = paths.map(|(_, change)| change.into()).collect();
        (!relations.is_empty() || !paths.is_empty()).then_some(Self { relations, paths })
    }
}

impl From<&PathChange> for PathChangeRecord {
    fn from(change: &PathChange) -> Self {
        let PathChange { path, was, is, target, is_shared, members } = change.clone();
        Self { path, was, is, target, is_shared, members: members.into_iter().collect() }
    }
}

impl From<&PathChangeRecord> for PathChange {
    fn from(record: &PathChangeRecord) -> Self {
        let PathChangeRecord { path, was, is, target, is_shared, members } = record.clone();
        Self { path, was, is, target, is_shared, members: members.into_iter().collect() }
    }
}
