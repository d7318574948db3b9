//! Relations as receipts, plans and listings have them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Comparison, Format, Package, Relation, RelationKind};

/// One relation of a package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RelationRecord {
    /// The field or tag of the relation; rpm's `Requires` are `depends`.
    pub kind: RelationKind,
    /// Package or capability; alternatives and boolean dependencies are kept whole.
    pub name: String,
    /// The comparison with `version`, written with the same signs for both formats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// The version that installed ones are compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl RelationRecord {
    /// The relations of `package` in `format`, sorted; `None` if the package is not wanted in that format.
    pub fn of_package<F>(package: &Package<F>, format: Format) -> Option<Vec<Self>> {
        let mut records: Vec<Self> = package.all_relations(format)?.map(Self::from).collect();
        records.sort();
        records.dedup();
        Some(records)
    }
}

impl From<&Relation> for RelationRecord {
    fn from(relation: &Relation) -> Self {
        let (comparison, version) = relation.version.clone().unzip();
        Self { kind: relation.kind, name: relation.name.clone(), comparison, version }
    }
}

impl From<&RelationRecord> for Relation {
    fn from(record: &RelationRecord) -> Self {
        let version = record.comparison.zip(record.version.clone());
        Self { kind: record.kind, name: record.name.clone(), version }
    }
}

impl fmt::Display for RelationRecord {
    /// Writes the relation as a `.deb` does, without parentheses: `rocm-blas = 7.1.0-1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.comparison, &self.version) {
            (Some(comparison), Some(version)) => {
                write!(f, "{} {comparison} {version}", self.name)
            }
            _ => f.write_str(&self.name),
        }
    }
}
