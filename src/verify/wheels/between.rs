//! Paths that wheels of several projects have.
//!
//! pip and uv install both, and the file of the last one stays. The same content is harmless: packages that
//! share a namespace each bring its `__init__.py`. Wheels of one project take each other's place.

use std::collections::{BTreeMap, BTreeSet};

use super::set::Sets;
use crate::verify::own::digest::Sha;
use crate::verify::own::wheel::Wheel;
use crate::verify::problem::{BadSharing, PathConflict, Problem, Problems};

/// Files by path, by project and content; of equal ones of a project, the wheel that comes first.
type Owners<'a> = BTreeMap<&'a str, BTreeMap<(&'a str, Sha), &'a str>>;

/// Reports each project whose file differs from that of the first project with the path, once for each two projects.
pub(super) fn check(sets: &Sets<'_>, problems: &mut Problems) {
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
            owners.entry((project, facts.sha256)).or_insert(&installed.file);
        }
    }
    let mut told = BTreeSet::new();
    for (path, owners) in &all {
        let Some(((first, _), _)) = owners.first_key_value() else { continue };
        // Of two contents, one is another than any third.
        let own: Vec<(&Sha, &&str)> = owners
            .iter()
            .take_while(|((project, _), _)| project == first)
            .take(2)
            .map(|((_, content), file)| (content, file))
            .collect();
        for ((project, content), file) in owners.iter().filter(|((it, _), _)| it != first) {
            let other = own.iter().find(|(known, _)| *known != content);
            if let Some((_, other)) = other
                && told.insert([first, project])
            {
                let (first, second) = ((**other).to_owned(), (*file).to_owned());
                let conflict = PathConflict::Owners { sharing: BadSharing::Path, first, second };
                problems.add(Problem::PathOwnedTwice { path: (*path).to_owned(), conflict });
            }
        }
    }
}
