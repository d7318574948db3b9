//! The checks of packages: of each by itself, of a set, and against receipts.

pub(super) mod contents;
pub(super) mod excuses;
pub(super) mod manifests;
pub(super) mod markers;
pub(super) mod needs;
pub(super) mod pairs;
pub(super) mod receipt;
mod relations;
pub(super) mod set_archives;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use rockpack_package::Format;
use rockpack_package::lengths::overlong;
use rockpack_package::resolver::Resolver;

use crate::checks::excuses::Excuses;
use crate::problem::{OWNED_TWICE, Problem, Problems};
use crate::readers::installed::{ContentRole, InstalledNode, PackageContents};

/// Checks the packages of one format against each other.
pub(super) fn check_set(packages: &[&PackageContents], excuses: &Excuses, problems: &mut Problems) {
    packages.iter().for_each(|package| check_lengths(package, problems));
    check_twice(packages, problems);
    check_ownership(packages, Scope::Set, problems);
    markers::check(packages, excuses, Scope::Set, problems);
    manifests::check(packages, Scope::Set, problems);
    if let Some(format) = packages.iter().find_map(|package| package.format) {
        let offered: Vec<_> = packages.iter().map(|package| package.offered()).collect();
        let resolver = Resolver::new(format, offered.iter().collect());
        relations::check(packages, &resolver, problems);
        needs::check(packages, &resolver, excuses, problems);
    }
    check_files(packages, excuses, problems);
}

/// Checks the files of packages, wheels or prefixes, and kernel databases with their indexes.
pub(super) fn check_files(
    packages: &[&PackageContents],
    excuses: &Excuses,
    problems: &mut Problems,
) {
    contents::check(packages, excuses, problems);
    pairs::check(packages, excuses, problems);
}

/// What is checked together. Except in a prefix, every archive that a manifest lists must be present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// A package set: all groups, with manifests that list every archive.
    Set,
    /// The artifacts of a component in a shard: all archs. Not all tools write manifests. A file for several archs may
    /// be in the artifact of each.
    Artifacts,
    /// A host wheel and the device wheels that are pinned to it: every binary that an archive has code for.
    Wheels,
    /// An installed prefix: some groups, and every binary that an archive has code for.
    Prefix,
}

/// Reports each path component that is too long once. Only packages are checked: wheels and folders are not unpacked.
fn check_lengths(package: &PackageContents, problems: &mut Problems) {
    let Some(format) = package.format else { return };
    let mut named = BTreeSet::new();
    for (path, node) in &package.paths {
        let Some(found) = overlong(format, path, node.is_folder()) else { continue };
        if named.insert(found.path) {
            let (bytes, limit) = (found.bytes, found.limit);
            let what = if found.is_name { "name" } else { "path" };
            let reason = format!(
                "the {what} has {bytes} bytes, but the package manager unpacks {limit} at most"
            );
            problems.add(Problem::PathTooLong { file: package.at(found.path), reason });
        }
    }
}

/// Reports packages of one format with the same version but different content: either may be installed, so one must not
/// hide the faults of the other. A newer version replaces an older one. The same bytes may be present several times, by
/// a link or in two folders.
pub(crate) fn check_twice(packages: &[&PackageContents], problems: &mut Problems) {
    let mut sorted = packages.to_vec();
    sorted.sort_by(|a, b| by_version(a, b));
    for same in sorted.chunk_by(|a, b| by_version(a, b).is_eq()) {
        let Some((first, others)) = same.split_first() else { continue };
        for package in others.iter().filter(|package| package.sha256 != first.sha256) {
            let (identity, other) = (package.identity(), first.file.clone());
            problems.add(Problem::PackageTwice { package: package.file.clone(), identity, other });
        }
    }
}

fn by_version(a: &PackageContents, b: &PackageContents) -> Ordering {
    (&a.name, &a.arch).cmp(&(&b.name, &b.arch)).then_with(|| a.compare_versions(b))
}

/// Reports each package of a format with several versions or architectures: one must not hide the faults of the other.
pub(crate) fn check_versions(packages: &[&PackageContents], problems: &mut Problems) {
    let mut first: BTreeMap<&str, &PackageContents> = BTreeMap::new();
    for package in packages {
        let one = *first.entry(&package.name).or_insert(package);
        if (&one.version, &one.arch) != (&package.version, &package.arch) {
            let (identity, other) = (package.identity(), one.file.clone());
            let package = package.file.clone();
            problems.add(Problem::PackageOfOtherSet { package, identity, other });
        }
    }
}

/// Architectures for every machine. Such packages replace those for one machine, and the reverse.
const FOR_ALL: [&str; 2] = ["all", "noarch"];

/// The architecture that matches all.
const ANY: &str = "";

/// The packages of one format that no newer version replaces.
pub(crate) fn newest<'a>(packages: &[&'a PackageContents]) -> Vec<&'a PackageContents> {
    let mut newest: BTreeMap<(&str, &str), &PackageContents> = BTreeMap::new();
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

/// The folder in which debug packages of rpm may share files.
const SHARED: &str = "/usr/lib/debug/.build-id/";

type PathOwner<'a> = (&'a PackageContents, &'a InstalledNode);

/// Checks that everything but a directory has one owner, that directories agree in their mode, and that paths are below
/// directories. Artifacts of several archs and debug packages of `.rpm` may share equal files.
pub(crate) fn check_ownership(
    packages: &[&PackageContents],
    scope: Scope,
    problems: &mut Problems,
) {
    let mut owners: BTreeMap<&str, PathOwner<'_>> = BTreeMap::new();
    for &package in packages {
        for (path, node) in &package.paths {
            match owners.get(path.as_str()) {
                None => drop(owners.insert(path, (package, node))),
                // Two versions of one package replace each other.
                Some((first, _)) if first.name == package.name => {}
                Some(owner) => {
                    if let Some(sharing) = bad_sharing(path, *owner, (package, node), scope) {
                        let (path, first) = (path.clone(), &owner.0.file);
                        let reason = format!("{sharing}: {first} and {}", package.file);
                        problems.add(Problem::PathOwnedTwice { path, reason });
                    }
                }
            }
        }
    }
    for (path, (owner, _)) in &owners {
        let above = path.match_indices('/').map(|(at, _)| &path[..at]);
        let owned = above.filter_map(|above| Some((above, owners.get(above)?)));
        for (above, (other, node)) in owned {
            if !node.is_folder() {
                let (package, other) = (&owner.file, &other.file);
                let reason = format!(
                    "is below {above}, which is not a directory in {other}; it comes from {package}"
                );
                problems.add(Problem::PathOwnedTwice { path: (*path).to_owned(), reason });
            }
        }
    }
}

fn bad_sharing(
    path: &str,
    (first, first_node): PathOwner<'_>,
    (again, again_node): PathOwner<'_>,
    scope: Scope,
) -> Option<&'static str> {
    use InstalledNode::Directory;
    let both = [first, again];
    let of_archs =
        scope == Scope::Artifacts && both.iter().all(|one| one.role() == ContentRole::Kernels);
    let are_rpms = both.iter().all(|one| one.format == Some(Format::Rpm));
    let shared = are_rpms && path.starts_with(SHARED);
    match (first_node, again_node) {
        _ if (of_archs || shared) && first_node.is_same(again_node) => None,
        _ if shared && !first_node.is_folder() => Some("differs in two packages"),
        _ if of_archs && !first_node.is_folder() && !again_node.is_folder() => {
            Some("differs in the artifacts of two archs")
        }
        (Directory { mode: one }, Directory { mode: other }) if one == other => None,
        (Directory { .. }, Directory { .. }) => Some("has different modes in two packages"),
        _ => Some(OWNED_TWICE),
    }
}
