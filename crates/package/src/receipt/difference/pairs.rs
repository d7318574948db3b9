//! Pairs the packages of two sets for comparison.

use std::collections::{BTreeMap, BTreeSet};

use crate::Format;
use crate::receipt::listing::ListedPackage;

/// The packages of two sets, paired.
#[derive(Default)]
pub(super) struct Pairs<'a> {
    /// Packages of both sets: the earlier and the later version.
    pub both: Vec<(&'a ListedPackage, &'a ListedPackage)>,
    pub added: Vec<&'a ListedPackage>,
    pub removed: Vec<&'a ListedPackage>,
}

/// The packages of one format and name by architecture.
type ByArchitecture<'a> = BTreeMap<&'a str, &'a ListedPackage>;

/// Architectures of packages for every machine.
const FOR_ALL: [&str; 2] = ["all", "noarch"];

/// Pairs packages by format, name and architecture. If that leaves one package of a name on each side, the
/// package changed its architecture.
pub(super) fn of<'a>(old: &'a [ListedPackage], new: &'a [ListedPackage]) -> Pairs<'a> {
    let (mut old, mut new) = (by_name(old), by_name(new));
    let names: BTreeSet<_> = old.keys().chain(new.keys()).copied().collect();
    let mut pairs = Pairs::default();
    for name in names {
        let mut old = old.remove(&name).unwrap_or_default();
        let mut new = new.remove(&name).unwrap_or_default();
        let both: Vec<&str> = old.keys().filter(|arch| new.contains_key(*arch)).copied().collect();
        pairs.both.extend(both.iter().filter_map(|arch| old.remove(arch).zip(new.remove(arch))));
        if old.len() == 1 && new.len() == 1 {
            pairs.both.extend(old.into_values().zip(new.into_values()));
        } else {
            pairs.removed.extend(old.into_values());
            pairs.added.extend(new.into_values());
        }
    }
    pairs
}

/// The packages that take part in the comparison.
pub(super) fn compared(packages: &[ListedPackage]) -> impl Iterator<Item = &ListedPackage> {
    by_name(packages).into_values().flat_map(ByArchitecture::into_values)
}

/// Groups the packages by format and name, and keeps the newest version of each architecture; `packages` are
/// sorted. A package for every machine and one for some machines replace each other, unless they have the
/// same version.
fn by_name(packages: &[ListedPackage]) -> BTreeMap<(Format, &str), ByArchitecture<'_>> {
    let mut found: BTreeMap<(Format, &str), ByArchitecture<'_>> = BTreeMap::new();
    for package in packages {
        let named = found.entry(package.key()).or_default();
        if FOR_ALL.contains(&&*package.architecture) {
            named.retain(|arch, earlier| {
                FOR_ALL.contains(arch) || earlier.is_of_version_of(package)
            });
        } else {
            for arch in FOR_ALL {
                if named.get(arch).is_some_and(|earlier| !earlier.is_of_version_of(package)) {
                    named.remove(arch);
                }
            }
        }
        named.insert(&package.architecture, package);
    }
    found
}
