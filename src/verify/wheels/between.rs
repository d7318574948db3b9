//! Paths that wheels of several projects have.
//!
//! pip and uv install both, and the file of the last one stays. The same content is harmless: packages that
//! share a namespace each bring its `__init__.py`. Wheels of one project take each other's place.

use std::collections::{BTreeMap, BTreeSet};

use super::set::Sets;
use crate::verify::own::installed::{Installed, InstalledNode};
use crate::verify::own::wheel::Wheel;
use crate::verify::problem::{BadSharing, PathConflict, Problem, Problems};

/// A wheel that has a path, and what the path is in it.
struct Owner<'a> {
    /// The project that decides which of its wheels are installed together.
    project: &'a str,
    wheel: &'a Installed,
    node: &'a InstalledNode,
}

/// Names for each two projects the first path that they have with other content.
pub(super) fn check(sets: &Sets<'_>, problems: &mut Problems) {
    let of_sets = sets.sets.iter().flat_map(|set| {
        let project = set.host.installed.name.as_str();
        set.wheels().map(move |wheel| (project, wheel))
    });
    let others = sets.others.iter().map(|wheel| (wheel.installed.name.as_str(), *wheel));
    let alone = sets.alone.iter().map(|(wheel, host)| (host.as_str(), *wheel));
    let mut owners: BTreeMap<&str, Vec<Owner<'_>>> = BTreeMap::new();
    for (project, Wheel { installed: wheel, .. }) in of_sets.chain(others).chain(alone) {
        for (path, node) in &wheel.paths {
            let known = owners.entry(path).or_default();
            if !known.iter().any(|it| it.project == project && is_same(it.node, node)) {
                known.push(Owner { project, wheel, node });
            }
        }
    }
    let mut told = BTreeSet::new();
    for (path, owners) in &owners {
        for (at, first) in owners.iter().enumerate() {
            let differs = |other: &&Owner<'_>| {
                other.project != first.project && !is_same(other.node, first.node)
            };
            for second in owners.iter().skip(at + 1).filter(differs) {
                let mut pair = [first.project, second.project];
                pair.sort_unstable();
                if told.insert(pair) {
                    let (first, second) = (first.wheel.file.clone(), second.wheel.file.clone());
                    let conflict =
                        PathConflict::Owners { sharing: BadSharing::Path, first, second };
                    problems.add(Problem::PathOwnedTwice { path: (*path).to_owned(), conflict });
                }
            }
        }
    }
}

/// Tells if two files have the same content; installers give them modes of their own.
fn is_same(one: &InstalledNode, other: &InstalledNode) -> bool {
    match (one, other) {
        (InstalledNode::File { facts: one, .. }, InstalledNode::File { facts: other, .. }) => {
            one.sha256 == other.sha256
        }
        _ => one.is_same(other),
    }
}
