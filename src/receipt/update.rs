//! Relations and path changes that clients of earlier sets need of a package. The next set of the version
//! needs them, too.

use serde::{Deserialize, Serialize};

use super::RelationRecord;
use crate::package::{Format, MemberKind, Package, PathChange};

/// The means by which a package replaces contents of earlier sets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateRecord {
    /// Relations to packages that had paths of this package, or import what it no longer has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relations: Vec<RelationRecord>,
    /// Paths at which a folder was replaced by something else, or the reverse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathChangeRecord>,
}

/// A path whose kind of entry differs from that in an earlier set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathChangeRecord {
    /// Absolute path.
    pub path: String,
    /// The kind of entry in the earlier set.
    pub was: MemberKind,
    /// The kind of entry in this set.
    pub is: MemberKind,
    /// The target of the old or new link, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Whether another package had the path.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_shared: bool,
    /// Paths below the old folder in earlier versions, relative to the folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
}

impl UpdateRecord {
    /// The means of `package` in `format`; `None` if it needs none.
    pub fn of_package<F>(package: &Package<F>, format: Format) -> Option<Self> {
        let mut relations: Vec<RelationRecord> = package
            .identity
            .taken
            .iter()
            .filter(|(of, _)| *of == format)
            .map(|(_, relation)| relation.into())
            .collect();
        relations.sort();
        relations.dedup();
        let paths: Vec<PathChangeRecord> = package
            .identity
            .changed
            .iter()
            .filter(|(of, _)| *of == format)
            .map(|(_, change)| change.into())
            .collect();
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
