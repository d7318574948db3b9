//! Libraries that were meant to be found by their names, and lie where the loader does not look.

use super::brought::Brought;
use super::set::{InstalledSet, LinkedFile};
use crate::dependencies::search;
use crate::verify::checks::excuses::Excuses;
use crate::verify::own::installed::InstalledNode;
use crate::verify::paths::{folder_of, name_of};
use crate::verify::problem::{Problem, Problems};

/// Checks the libraries of a package. Of a part of a set nothing is said: who tells the loader may be
/// in another.
pub(super) fn check(
    set: &InstalledSet<'_>,
    brought: &Brought<'_>,
    files: &[&LinkedFile<'_>],
    excuses: &Excuses,
    problems: &mut Problems,
) {
    if brought.is_cut {
        return;
    }
    for file in files.iter().filter(|file| !file.package.has_kernels()) {
        if is_misplaced(set, file, excuses) && !excuses.leaves_misplaced(file.path) {
            let [package, path] = [&file.package.file, file.path].map(|text: &str| text.to_owned());
            problems.add(Problem::LibraryMisplaced { package, path });
        }
    }
}

fn is_misplaced(set: &InstalledSet<'_>, file: &LinkedFile<'_>, excuses: &Excuses) -> bool {
    let Some(soname) = file.linked.soname.as_deref().filter(|_| !file.linked.is_program) else {
        return false;
    };
    let folder = file.folder();
    // Whether files that need it get it is another check.
    if set.is_told(folder) || set.users(soname).next().is_some() {
        return false;
    }
    let is_misplaced = match relative(folder, excuses) {
        Some(below) => search::is_misplaced(below, soname, is_searched(set, folder)),
        None => search::is_public(folder, soname) && !is_searched(set, folder),
    };
    is_misplaced && !is_linked(set, file)
}

/// Whether the search path of a file in another folder leads to this one.
fn is_searched(set: &InstalledSet<'_>, folder: &str) -> bool {
    set.linked.iter().any(|user| user.folder() != folder && set.leads(user, folder))
}

/// The folder relative to the prefix, where that is known.
fn relative<'a>(folder: &'a str, excuses: &Excuses) -> Option<&'a str> {
    let below = folder.strip_prefix(excuses.prefix.as_deref()?)?;
    Some(below.trim_start_matches('/'))
}

/// Whether a link to the library lies where the loader looks.
fn is_linked(set: &InstalledSet<'_>, file: &LinkedFile<'_>) -> bool {
    let mut links = set.packages.iter().flat_map(|package| &package.paths).filter_map(
        |(path, node)| match node {
            InstalledNode::Link { target } => Some((folder_of(path), target)),
            _ => None,
        },
    );
    links.any(|(folder, target)| name_of(target) == name_of(file.path) && set.is_told(folder))
}
