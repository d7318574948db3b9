//! The checks of packages: each by itself, those of a set among each other, and against their receipts.

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
use crate::own::installed::{Installed, InstalledNode, Side};
use crate::problem::{OWNED_TWICE, Problem, Problems};

/// Checks the packages of one format against each other.
pub(super) fn check_set(packages: &[&Installed], excuses: &Excuses, problems: &mut Problems) {
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
pub(super) fn check_files(packages: &[&Installed], excuses: &Excuses, problems: &mut Problems) {
    contents::check(packages, excuses, problems);
    pairs::check(packages, excuses, problems);
}

/// The packages that are checked together. Except in a prefix, every archive has to be there that a manifest lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// A package set: all groups, with manifests that list every archive.
    Set,
    /// The artifacts of a component: all archs of a shard. Not all tools write manifests. What is for several archs
    /// may be in the part of each of them.
    Artifacts,
    /// A host wheel and the device wheels that are pinned to it: every binary that an archive has code of.
    Wheels,
    /// An installed prefix: the groups that somebody chose, and every binary that an archive has code of.
    Prefix,
}

/// Reports each too long part of a path once. Only packages are checked, since others are not unpacked.
fn check_lengths(package: &Installed, problems: &mut Problems) {
    let Some(format) = package.format else { return };
    let mut named = BTreeSet::new();
    for (path, node) in &package.paths {
        let Some(found) = overlong(format, path, node.is_folder()) else { continue };
        if named.insert(found.path) {
            let (bytes, limit) = (found.bytes, found.limit);
            let what = if found.is_name { "name" } else { "path" };
            let reason = format!(
                "the {what} has {bytes} bytes, and the package manager unpacks {limit} at most"
            );
            problems.add(Problem::PathTooLong { file: package.at(found.path), reason });
        }
    }
}

/// Reports packages of one format that are there twice. Of two versions of one package, the newer replaces the
/// other, and checks may look at either. Of two files of one version, nobody can tell which is installed: what is
/// good in the one must not cover what is bad in the other. The same bytes may be there several times, by a link or
/// in two folders.
pub(crate) fn check_twice(packages: &[&Installed], problems: &mut Problems) {
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
            let (identity, other) = (package.identity(), one.file.clone());
            let package = package.file.clone();
            problems.add(Problem::PackageOfOtherSet { package, identity, other });
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

/// The folder in which rpm's packages of debug files share files.
const SHARED: &str = "/usr/lib/debug/.build-id/";

type PathOwner<'a> = (&'a Installed, &'a InstalledNode);

/// Everything but a directory has one owner, in artifacts what is for several archs one in each of
/// theirs, with the same content; debug files of `.rpm` may have several, if they are the same.
/// Checks that directories agree in their mode, and that paths are below directories only.
pub(crate) fn check_ownership(packages: &[&Installed], scope: Scope, problems: &mut Problems) {
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
                    "lies below {above}, which is no directory in {other}; it comes with {package}"
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
    let of_archs = scope == Scope::Artifacts && both.iter().all(|one| one.side() == Side::Kernels);
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
