//! Packages that are there twice.
//!
//! Of two versions of one package, the newer replaces the other, and checks may look at either. Of
//! two files of one version, nobody can tell which is installed: what is good in the one must not
//! cover what is bad in the other.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::own::installed::Installed;
use crate::problem::{NamedVersion, Problem, Problems};

/// Packages of one format, each once. The same bytes may be there several times, by a link or in two
/// folders.
pub(crate) fn check(packages: &[&Installed], problems: &mut Problems) {
    let mut sorted = packages.to_vec();
    sorted.sort_by(|a, b| by_version(a, b));
    for same in sorted.chunk_by(|a, b| by_version(a, b).is_eq()) {
        let Some((first, others)) = same.split_first() else { continue };
        for package in others.iter().filter(|package| package.sha256 != first.sha256) {
            let Installed { name, version, arch, .. } = package;
            problems.add(Problem::PackageTwice {
                package: package.file.clone(),
                identity: NamedVersion::new(name, version, arch),
                other: first.file.clone(),
            });
        }
    }
}

fn by_version(a: &Installed, b: &Installed) -> Ordering {
    (&a.name, &a.arch).cmp(&(&b.name, &b.arch)).then_with(|| a.compare_versions(b))
}

/// Names each package of a format that is there in several versions, or for several architectures: what is
/// good in the one must not cover what is bad in the other.
pub(crate) fn check_versions(packages: &[&Installed], problems: &mut Problems) {
    let mut first: BTreeMap<&str, &Installed> = BTreeMap::new();
    for package in packages {
        let one = *first.entry(&package.name).or_insert(package);
        if (&one.version, &one.arch) != (&package.version, &package.arch) {
            let Installed { name, version, arch, .. } = package;
            problems.add(Problem::PackageOfOtherSet {
                package: package.file.clone(),
                identity: NamedVersion::new(name, version, arch),
                other: one.file.clone(),
            });
        }
    }
}

/// Architectures of packages for every machine, which take the place of those for one, and the other
/// way round.
const FOR_ALL: [&str; 2] = ["all", "noarch"];

/// The architecture that matches all.
const ANY: &str = "";

/// Packages of one format without those that a newer version of them replaces.
pub(crate) fn newest<'a>(packages: &[&'a Installed]) -> Vec<&'a Installed> {
    let mut newest: BTreeMap<(&str, &str), &Installed> = BTreeMap::new();
    for package in packages {
        for arch in [&*package.arch, ANY] {
            let best = newest.entry((&package.name, arch)).or_insert(package);
            if package.compare_versions(best).is_gt() {
                *best = package;
            }
        }
    }
    let newest = packages.iter().filter(|package| {
        let arch = package.arch.as_str();
        let archs = if FOR_ALL.contains(&arch) { &[ANY][..] } else { &[arch, "all", "noarch"] };
        let mut others = archs.iter().filter_map(|arch| newest.get(&(&*package.name, *arch)));
        others.all(|other| package.compare_versions(other).is_ge())
    });
    newest.copied().collect()
}
