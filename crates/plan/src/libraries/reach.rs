//! Notes libraries of the set that the loader does not find: needed ones, and those in folders that it never
//! searches.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::tree::TreePath;

use super::library_set::LibrarySet;
use super::linked_file::LocatedFile;
use crate::settings::PlanSettings;
use rockpack_package::dependencies::{runpath, search};
use rockpack_report::{Finding, Findings, LibraryFolder};

/// Adds the findings. `name` is the name of a portion.
pub(super) fn note(
    setting: &PlanSettings,
    set: &LibrarySet<'_>,
    located: &[LocatedFile<'_>],
    name: impl Fn(usize) -> String,
    findings: &mut Findings,
) {
    note_out_of_reach(located, &name, findings);
    note_misplaced(setting, set, located, &name, findings);
}

/// Notes needed libraries outside of the folders that the file searches.
fn note_out_of_reach(
    located: &[LocatedFile<'_>],
    name: &impl Fn(usize) -> String,
    findings: &mut Findings,
) {
    let mut unreached: BTreeMap<_, BTreeSet<&TreePath>> = BTreeMap::new();
    for file in located {
        for (library, found) in file.in_set().filter(|(_, found)| !found.is_reached) {
            // Files of one folder need the same search path.
            let folder = file.linked.path.parent();
            let key = (file.linked.portion, library, found.owner, &found.file, folder);
            unreached.entry(key).or_default().insert(file.linked.path);
        }
    }
    for ((portion, library, owner, path, _), files) in unreached {
        let Some(first) = files.first() else { continue };
        findings.add(Finding::LibraryOutOfReach {
            package: name(portion).into(),
            library: library.into(),
            provider: name(owner).into(),
            path: path.clone(),
            search_path: runpath::from_origin(path.parent().as_ref(), first),
            files: files.into_iter().cloned().collect(),
        });
    }
}

/// Notes libraries that neither the linker path nor the search path of a dependent file leads to. Needed but
/// unreached ones have a finding of their own; they are noted here only if they are obviously in the wrong
/// place.
fn note_misplaced(
    setting: &PlanSettings,
    set: &LibrarySet<'_>,
    located: &[LocatedFile<'_>],
    name: &impl Fn(usize) -> String,
    findings: &mut Findings,
) {
    let needed = || located.iter().flat_map(|file| file.in_set().map(|(_, found)| found));
    let reached: BTreeSet<&TreePath> =
        needed().filter(|library| library.is_reached).map(|library| &library.file).collect();
    let needed: BTreeSet<&TreePath> = needed().map(|library| &library.file).collect();
    let public = set.public_files();
    let searched = searched_from_elsewhere(setting, set, located);
    for file in located {
        let (path, folder) = (file.linked.path, file.linked.path.parent());
        let below = folder.as_ref().map_or("", TreePath::as_str);
        let Some(soname) = file.linked.soname() else { continue };
        if public.contains(path) || reached.contains(path) {
            continue;
        }
        // If `libdir` is empty, it probably is the wrong folder.
        let is_libdir = public.is_empty() && search::is_prefix_libraries(below);
        let is_unfound = !needed.contains(path) || search::is_wrong_place(below);
        let is_searched = searched.contains(below);
        if is_libdir || (is_unfound && search::is_misplaced(below, soname, is_searched)) {
            findings.add(Finding::LibraryMisplaced {
                package: name(file.linked.portion).into(),
                libdir: setting.config.folders.libraries.clone(),
                place: place(setting, folder),
                library: path.clone(),
            });
        }
    }
}

/// The kind of a folder below the prefix; `None` is the prefix itself.
fn place(setting: &PlanSettings, folder: Option<TreePath>) -> LibraryFolder {
    let Some(folder) = folder else { return LibraryFolder::Prefix };
    let is_below_libdir = folder.is_below(&setting.config.folders.libraries);
    if search::is_prefix_libraries(folder.as_str()) {
        return LibraryFolder::Libraries(folder);
    }
    let prefix = search::installed_prefix(folder.as_str());
    let is_of_tree =
        search::is_library_folder(folder.as_str()) || search::is_in_root(folder.as_str());
    match prefix.filter(|_| !is_below_libdir && is_of_tree) {
        Some(prefix) => LibraryFolder::InstalledTree { prefix: prefix.to_owned(), folder },
        None => LibraryFolder::Other(folder),
    }
}

/// The folders that the search paths of files in other folders name or lead to, relative to the prefix.
fn searched_from_elsewhere(
    setting: &PlanSettings,
    set: &LibrarySet<'_>,
    located: &[LocatedFile<'_>],
) -> BTreeSet<String> {
    let mut searched = BTreeSet::new();
    for file in located {
        let parent = file.linked.path.parent();
        let own = parent.as_ref().map_or("", TreePath::as_str);
        let folders = search::folders(file.search_path, file.linked.path, setting.prefix.path());
        let folders = set.through_links(search::order(folders));
        searched.extend(folders.into_keys().filter(|folder| folder != own));
    }
    searched
}
