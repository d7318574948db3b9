//! Finds libraries that a file reaches by the search path of its loading file.
//!
//! If a file has no `DT_RUNPATH`, the loader also searches the `DT_RPATH` of the file that needed it, of the
//! file that needed that one, and so on up to the program. A file's `DT_RUNPATH` overrides its own
//! `DT_RPATH`. Source: ld.so(8), and `_dl_map_object` in glibc's `elf/dl-load.c`.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::tree::TreePath;
use rockpack_elf::Linking;

use super::library_set::LibrarySet;
use super::linked_file::{LibraryLookup, LocatedFile};
use crate::settings::PlanSettings;
use rockpack_package::dependencies::search;

/// Marks libraries as reached if a file finds them by the `DT_RPATH` of a file that needs it.
pub(super) fn mark(setting: &PlanSettings, set: &LibrarySet<'_>, located: &mut [LocatedFile<'_>]) {
    let mut reached = Vec::new();
    let users = Users::of(located);
    for (index, file) in located.iter().enumerate() {
        if linking(file).is_none_or(|linking| linking.runpath.is_some()) {
            continue;
        }
        for (name, _) in file.in_set().filter(|(_, library)| !library.is_reached) {
            let all = users.all(located, index);
            let mut its_users = all.into_iter().filter_map(|user| located.get(user));
            if its_users.any(|user| finds_by_rpath(setting, set, user, name)) {
                reached.push((index, name.to_owned()));
            }
        }
    }
    for (index, name) in reached {
        let place = located.get_mut(index).and_then(|file| file.places.get_mut(name.as_str()));
        if let Some(LibraryLookup::InSet(library)) = place {
            library.is_reached = true;
        }
    }
}

fn linking<'a>(file: &LocatedFile<'a>) -> Option<&'a Linking> {
    file.linked.needs.linking.as_ref()
}

/// Whether `file` uses its `DT_RPATH` and finds the library `name` by it.
fn finds_by_rpath(
    setting: &PlanSettings,
    set: &LibrarySet<'_>,
    file: &LocatedFile<'_>,
    name: &str,
) -> bool {
    let is_rpath = linking(file).is_some_and(|linking| linking.runpath.is_none());
    let folders = search::folders(file.search_path, file.linked.path, setting.prefix.path());
    is_rpath && set.in_search_path(&set.through_links(search::order(folders)), name).is_some()
}

/// Library of the set → indexes of the files that need it.
struct Users(BTreeMap<TreePath, Vec<usize>>);

impl Users {
    fn of(located: &[LocatedFile<'_>]) -> Self {
        let mut users: BTreeMap<TreePath, Vec<usize>> = BTreeMap::new();
        for (index, file) in located.iter().enumerate() {
            for (_, library) in file.in_set() {
                users.entry(library.file.clone()).or_default().push(index);
            }
        }
        Self(users)
    }

    /// The files that need the file at `index`, directly or through others.
    fn all(&self, located: &[LocatedFile<'_>], index: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut open = vec![index];
        while let Some(file) = open.pop().and_then(|at| located.get(at)) {
            for &user in self.0.get(file.linked.path).into_iter().flatten() {
                if found.insert(user) {
                    open.push(user);
                }
            }
        }
        found
    }
}
