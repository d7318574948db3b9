//! Relations of two versions of a package.

use std::collections::BTreeSet;

use crate::receipt::RelationRecord;
use crate::receipt::listing::ListedPackage;

/// What stands for the version of the set that a package belongs to.
const OWN_VERSION: &str = "the set's version";

pub(super) struct Relations {
    pub added: Vec<RelationRecord>,
    pub removed: Vec<RelationRecord>,
}

/// Relations of one side only.
pub(super) fn compare(before: &ListedPackage, after: &ListedPackage) -> Relations {
    let (old, new) = (own(before), own(after));
    Relations {
        added: new.difference(&old).cloned().collect(),
        removed: old.difference(&new).cloned().collect(),
    }
}

/// With the package's own version named as what it is: `rocm-blas = 7.1.0-1` of 7.1.0-1 and
/// `rocm-blas = 7.1.1-1` of 7.1.1-1 say the same.
fn own(package: &ListedPackage) -> BTreeSet<RelationRecord> {
    let named = package.relations.iter().cloned().map(|mut relation| {
        if relation.version.as_ref() == Some(&package.version) {
            relation.version = Some(OWN_VERSION.to_owned());
        }
        relation
    });
    named.collect()
}
