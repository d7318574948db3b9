//! Compares the relations of two versions of a package.

use std::collections::{BTreeMap, BTreeSet};

use crate::receipt::RelationRecord;
use crate::receipt::listing::ListedPackage;
use crate::{Format, Version};

/// Replaces the version of a package of the set.
const OWN_VERSION: &str = "the set's version";

/// Replaces the next patch version after that of a package.
const NEXT_PATCH: &str = "the next patch version";

/// The versions of a set's packages, by format and name.
pub(super) struct Versions<'a>(BTreeMap<(Format, &'a str), &'a str>);

impl<'a> Versions<'a> {
    /// Indexes the versions of `packages`. The newest version of each name comes last, and counts.
    pub fn of(packages: &'a [ListedPackage]) -> Self {
        Self(packages.iter().map(|package| (package.key(), package.version.as_str())).collect())
    }

    /// The relations of `package`, with versions of the set replaced by placeholders: `rocm-blas = 7.1.0-1`
    /// in 7.1.0-1 equals `rocm-blas = 7.1.1-1` in 7.1.1-1.
    fn named(&self, package: &ListedPackage) -> BTreeSet<RelationRecord> {
        let next = next_patch(&package.version);
        let named = package.relations.iter().cloned().map(|mut relation| {
            let known = self.0.get(&(package.format, relation.name.as_str())).copied();
            let bound = relation.version.as_deref();
            if bound == Some(&package.version) || (bound.is_some() && bound == known) {
                relation.version = Some(OWN_VERSION.to_owned());
            } else if bound.is_some() && bound == next.as_deref() {
                relation.version = Some(NEXT_PATCH.to_owned());
            }
            relation
        });
        named.collect()
    }
}

/// The next patch version after `version`, which has a release; `None` if it cannot be parsed.
fn next_patch(version: &str) -> Option<String> {
    let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
    let (upstream, _) = rest.rsplit_once('-')?;
    let version = Version::new(upstream, "1").ok()?;
    version.with_epoch(epoch.parse().ok()).next_patch()
}

/// The relations that only the later package has, and those that only the earlier one has.
pub(super) fn compare(
    (before, old): (&ListedPackage, &Versions<'_>),
    (after, new): (&ListedPackage, &Versions<'_>),
) -> [Vec<RelationRecord>; 2] {
    let (old, new) = (old.named(before), new.named(after));
    [new.difference(&old), old.difference(&new)].map(|only| only.cloned().collect())
}
