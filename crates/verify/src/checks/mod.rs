//! The checks of packages: each by itself, those of a set among each other, and against their
//! receipts.

pub(super) mod contents;
pub(super) mod excuses;
pub(super) mod lengths;
pub(super) mod listings;
pub(super) mod loader;
pub(super) mod manifests;
pub(super) mod markers;
pub(super) mod needs;
pub(super) mod ownership;
pub(super) mod pairs;
pub(super) mod receipt;
mod relations;
pub(super) mod scope;
pub(super) mod set_archives;
pub(super) mod transformed;
pub(super) mod twice;

use rockpack_core::error::Result;

use super::own::installed::Installed;
use super::problem::Problems;
use contents::Together;
use excuses::Excuses;
use rockpack_package::resolver::Resolver;
use scope::Scope;

/// Checks the packages of one format against each other.
pub(super) fn check_set(
    packages: &[&Installed],
    excuses: &Excuses,
    problems: &mut Problems,
) -> Result<()> {
    for package in packages {
        lengths::check(package, problems);
    }
    twice::check(packages, problems);
    ownership::check(packages, Scope::Set, problems);
    markers::check(packages, excuses, Scope::Set, problems);
    manifests::check(packages, Scope::Set, problems);
    if let Some(format) = packages.iter().find_map(|package| package.format) {
        let offered: Vec<_> = packages.iter().map(|package| package.offered()).collect();
        let resolver = Resolver::new(format, offered.iter().collect());
        relations::check(packages, &resolver, problems);
        needs::check(packages, &resolver, excuses, problems)?;
    }
    check_files(packages, excuses, problems)
}

/// Checks the files of packages, wheels or prefixes, and kernel databases with their indexes.
pub(super) fn check_files(
    packages: &[&Installed],
    excuses: &Excuses,
    problems: &mut Problems,
) -> Result<()> {
    let set = Together::of(packages);
    for package in packages {
        contents::check(package, &set, excuses, problems);
    }
    pairs::check(packages, excuses, problems)
}
