//! Relations of two versions of a package.

use std::collections::BTreeSet;

use crate::receipt::RelationRecord;
use crate::receipt::listing::ListedPackage;

/// What stands for the version of the set that a package belongs to.
const OWN_VERSION: &str = "the set's version";

#[derive(Default)]
pub(super) struct Relations {
    pub added: Vec<RelationRecord>,
    pub removed: Vec<RelationRecord>,
    pub unknown: bool,
}

/// Relations of one side only.
pub(super) fn compare(before: &ListedPackage, after: &ListedPackage) -> Relations {
    let (Some(old), Some(new)) = (own(before), own(after)) else {
        return Relations { unknown: true, ..Relations::default() };
    };
    Relations {
        added: new.difference(&old).cloned().collect(),
        removed: old.difference(&new).cloned().collect(),
        unknown: false,
    }
}

/// With the package's own version named as what it is: `rocm-blas = 7.1.0-1` of 7.1.0-1 and
/// `rocm-blas = 7.1.1-1` of 7.1.1-1 say the same.
fn own(package: &ListedPackage) -> Option<BTreeSet<RelationRecord>> {
    let relations = package.relations.as_ref()?.iter().cloned();
    let named = relations.map(|mut relation| {
        if relation.version.as_ref() == Some(&package.version) {
            relation.version = Some(OWN_VERSION.to_owned());
        }
        relation
    });
    Some(named.collect())
}
