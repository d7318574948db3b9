//! Kernel databases: whether the indexes of a folder contradict each other.
//!
//! The judgement is that of a build (`input/database/integrity.rs`), made anew of what is installed
//! together: a kernel package with the host's that it needs.

use rockpack_base::error::Result;
use rockpack_base::tree::TreePath;

use super::excuses::Excuses;
use super::pairs::reaches;
use crate::input::database::{LibraryIndex, inconsistencies};
use crate::verify::own::facts::Class;
use crate::verify::own::index;
use crate::verify::own::installed::Installed;
use crate::verify::problem::{Problem, Problems};

/// Checks the indexes of what is installed together.
pub(in crate::verify) fn check(
    packages: &[&Installed],
    excuses: &Excuses,
    problems: &mut Problems,
) -> Result<()> {
    let rules = index::rules()?;
    let (mut places, mut indexes) = (Vec::new(), Vec::new());
    for package in packages {
        for (path, facts) in package.files() {
            let Ok(below) = TreePath::new(path.trim_start_matches('/')) else { continue };
            let Some(mut index) = LibraryIndex::of(rules, &below) else { continue };
            if let Class::Index(facts) = &facts.class
                && index.is_mapping()
            {
                index.maps_to(facts.libraries.clone());
            }
            places.push((*package, path));
            indexes.push(index);
        }
    }
    let together = |one: usize, other: usize| match (places.get(one), places.get(other)) {
        (Some((package, _)), Some((other, _))) => reaches(package, other),
        _ => false,
    };
    for (place, fault) in inconsistencies(&indexes, &together) {
        let Some((package, path)) = places.get(place) else { continue };
        if !excuses.leaves_inconsistent(path, &fault) {
            let file = package.at(path);
            problems.add(Problem::DatabaseInconsistent { file, fault });
        }
    }
    Ok(())
}
