//! Relations and path changes that clients of earlier sets need of a package. The next set of the version
//! needs them, too.

use serde::{Deserialize, Serialize};

use super::RelationRecord;
use crate::{Format, Package, PathChange};

/// The means by which a package replaces contents of earlier sets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateRecord {
    /// Relations to packages that had paths of this package, or import what it no longer has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relations: Vec<RelationRecord>,
    /// Paths at which a folder was replaced by something else, or the reverse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathChange>,
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
        let paths: Vec<PathChange> = package
            .identity
            .changed
            .iter()
            .filter(|(of, _)| *of == format)
            .map(|(_, change)| change.clone())
            .collect();
        (!relations.is_empty() || !paths.is_empty()).then_some(Self { relations, paths })
    }
}
