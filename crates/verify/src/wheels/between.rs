//! Paths that wheels of several projects have.
//!
//! pip and uv install both, and the file of the last one stays. The same content is harmless: packages that
//! share a namespace each bring its `__init__.py`. Wheels of one project take each other's place.

use std::collections::{BTreeMap, BTreeSet};

use super::set::Sets;
use crate::own::digest::Sha;
use crate::own::wheel::Wheel;
use crate::problem::{OWNED_TWICE, Problem, Problems};

/// The contents of a file in the wheels of a project, each with the first wheel that has it.
type Contents<'a> = BTreeMap<Sha, &'a str>;

/// Files by path and project.
type Owners<'a> = BTreeMap<&'a str, BTreeMap<&'a str, Contents<'a>>>;

/// Reports each project whose file differs from that of the first project with the path, once for each two projects.
/// Copies have what their input had.
pub(super) fn check(sets: &Sets<'_>, copies: &BTreeSet<&str>, problems: &mut Problems) {
    let of_sets = sets.sets.iter().flat_map(|set| {
        let project = set.host.installed.name.as_str();
        set.wheels().map(move |wheel| (project, wheel))
    });
    let others = sets.others.iter().map(|wheel| (wheel.installed.name.as_str(), *wheel));
    let alone = sets.alone.iter().map(|(wheel, host)| (host.as_str(), *wheel));
    let mut all = Owners::new();
    for (project, Wheel { installed, .. }) in of_sets.chain(others).chain(alone) {
        for (path, facts) in installed.files() {
            let owners = all.entry(path).or_default();
            let own: &mut Contents<'_> = owners.entry(project).or_default();
            own.entry(facts.sha256).or_insert(&installed.file);
        }
    }
    let mut told = BTreeSet::new();
    for (path, owners) in &all {
        let mut owners = owners.iter();
        let Some((first, own)) = owners.next() else { continue };
        for (project, others) in owners {
            if let Some((first_file, second_file)) = differing(own, others)
                && !(copies.contains(first_file) && copies.contains(second_file))
                && told.insert([*first, *project])
            {
                let reason = format!("{OWNED_TWICE}: {first_file} and {second_file}");
                problems.add(Problem::PathOwnedTwice { path: (*path).to_owned(), reason });
            }
        }
    }
}

/// A wheel of either project with content that no wheel of the other has, and one of the other. Projects may share
/// a path whose content each version or Python has in both.
fn differing<'a>(own: &Contents<'a>, others: &Contents<'a>) -> Option<(&'a str, &'a str)> {
    match only_in(own, others) {
        Some(file) => Some((file, others.values().next().copied()?)),
        None => Some((own.values().next().copied()?, only_in(others, own)?)),
    }
}

/// A wheel of `own` with content that none of `others` has.
fn only_in<'a>(own: &Contents<'a>, others: &Contents<'_>) -> Option<&'a str> {
    own.iter().find(|(content, _)| !others.contains_key(*content)).map(|(_, file)| *file)
}
