//! The owners of paths.

use std::collections::BTreeMap;

use super::scope::Scope;
use crate::own::installed::{Installed, InstalledNode, Side};
use crate::problem::{OWNED_TWICE, Problem, Problems};
use rockpack_package::Format;

/// The folder in which rpm's packages of debug files share files.
const SHARED: &str = "/usr/lib/debug/.build-id/";

/// A package that owns a path, and what the path is in it.
struct PathOwner<'a> {
    package: &'a Installed,
    node: &'a InstalledNode,
}

/// Everything but a directory has one owner, in artifacts what is for several archs one in each of
/// theirs, with the same content; debug files of `.rpm` may have several, if they are the same.
/// Checks that directories agree in their mode, and that paths are below directories only.
pub(crate) fn check(packages: &[&Installed], scope: Scope, problems: &mut Problems) {
    let mut owners: BTreeMap<&str, PathOwner<'_>> = BTreeMap::new();
    for package in packages {
        for (path, node) in &package.paths {
            let owner = PathOwner { package, node };
            match owners.get(path.as_str()) {
                None => drop(owners.insert(path, owner)),
                // Two versions of one package replace each other.
                Some(first) if first.package.name == package.name => {}
                Some(first) => {
                    if let Some(sharing) = bad_sharing(path, first, &owner, scope) {
                        let (path, first) = (path.clone(), &first.package.file);
                        let reason = format!("{sharing}: {first} and {}", package.file);
                        problems.add(Problem::PathOwnedTwice { path, reason });
                    }
                }
            }
        }
    }
    check_above(&owners, problems);
}

fn bad_sharing(
    path: &str,
    first: &PathOwner<'_>,
    again: &PathOwner<'_>,
    scope: Scope,
) -> Option<&'static str> {
    use InstalledNode::Directory;
    let both = [first.package, again.package];
    let of_archs = scope.has_copies() && both.iter().all(|one| one.side() == Side::Kernels);
    let are_rpms = both.iter().all(|one| one.format == Some(Format::Rpm));
    let shared = are_rpms && path.starts_with(SHARED);
    match (first.node, again.node) {
        _ if (of_archs || shared) && first.node.is_same(again.node) => None,
        _ if shared && !is_directory(first.node) => Some("differs in two packages"),
        _ if of_archs && !is_directory(first.node) && !is_directory(again.node) => {
            Some("differs in the artifacts of two archs")
        }
        (Directory { mode: one }, Directory { mode: other }) if one == other => None,
        (Directory { .. }, Directory { .. }) => Some("has different modes in two packages"),
        _ => Some(OWNED_TWICE),
    }
}

fn is_directory(node: &InstalledNode) -> bool {
    matches!(node, InstalledNode::Directory { .. })
}

fn check_above(owners: &BTreeMap<&str, PathOwner<'_>>, problems: &mut Problems) {
    for (path, owner) in owners {
        let above = path.match_indices('/').map(|(at, _)| &path[..at]);
        let owned = above.filter_map(|above| Some((above, owners.get(above)?)));
        for (above, other) in owned {
            if !is_directory(other.node) {
                let (package, other) = (&owner.package.file, &other.package.file);
                let reason = format!(
                    "lies below {above}, which is no directory in {other}; it comes with {package}"
                );
                problems.add(Problem::PathOwnedTwice { path: (*path).to_owned(), reason });
            }
        }
    }
}
