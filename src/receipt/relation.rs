//! Relations as receipts, plans and listings have them.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::package::{Comparison, Format, Package, Relation, RelationKind};

/// One relation of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

    /// The sort key: the texts of the fields. Receipts that exist are sorted so.
    fn order(&self) -> impl Ord + '_ {
        let comparison = self.comparison.map(Comparison::as_str);
        (self.kind.as_str(), &self.name, comparison, &self.version)
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

impl Ord for RelationRecord {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for RelationRecord {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Receipts that exist have this order, which differs from the order of the fields of a package.
    #[test]
    fn relations_are_sorted_by_their_texts() {
        use Comparison::{Greater, GreaterEqual, Less};
        use RelationKind::{Breaks, Depends, Provides};
        let sorted = [
            record(Breaks, "z", None),
            record(Depends, "a", None),
            record(Depends, "a", Some(Less)),
            record(Depends, "a", Some(Greater)),
            record(Depends, "a", Some(GreaterEqual)),
            record(Depends, "b", None),
            record(Provides, "a", None),
        ];
        let mut records = sorted.clone();
        records.reverse();
        records.sort();
        assert_eq!(records, sorted);
    }

    fn record(kind: RelationKind, name: &str, comparison: Option<Comparison>) -> RelationRecord {
        RelationRecord {
            kind,
            name: name.to_owned(),
            comparison,
            version: comparison.map(|_| "1".to_owned()),
        }
    }
}
