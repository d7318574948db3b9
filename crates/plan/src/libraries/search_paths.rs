//! Library search paths: what the loader finds by them, and how the configuration's `runpath` rewrites them.
//! Notes libraries that the loader does not find: needed ones, and those in folders that it never searches.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::content::Content;
use rockpack_core::error::{Result, abridged};
use rockpack_core::tree::TreePath;

use super::library_set::{LibraryLookup, LibrarySet, LinkedFile, LocatedFile};
use super::read_or_note;
use crate::config::Runpath;
use crate::settings::PlanSettings;
use rockpack_package::dependencies::runpath;
use rockpack_package::dependencies::search::{self, Folder};
use rockpack_report::{ComponentFile, DynamicPart, Findings, LibraryFolder, OutsideSearch, found};

/// Notes needed libraries outside of the search path of the file. `name` returns the name of a portion.
pub(super) fn note_out_of_reach(
    located: &[LocatedFile<'_>],
    name: impl Fn(usize) -> String,
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
        findings.add(found::LibraryOutOfReach {
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
/// unreached ones have a finding of their own, and are noted here only in obviously wrong folders.
pub(super) fn note_misplaced(
    setting: &PlanSettings,
    set: &LibrarySet<'_>,
    located: &[LocatedFile<'_>],
    name: impl Fn(usize) -> String,
    findings: &mut Findings,
) {
    let needed = || located.iter().flat_map(|file| file.in_set().map(|(_, found)| found));
    let reached: BTreeSet<&TreePath> =
        needed().filter(|library| library.is_reached).map(|library| &library.file).collect();
    let needed: BTreeSet<&TreePath> = needed().map(|library| &library.file).collect();
    let public = set.public_files();
    // The folders that the search paths of files in other folders name or lead to, relative to the prefix.
    let mut searched = BTreeSet::new();
    for file in located {
        let parent = file.linked.path.parent();
        let own = parent.as_ref().map_or("", TreePath::as_str);
        let folders = set.order(file.search_path, file.linked.path);
        searched.extend(folders.into_keys().filter(|folder| folder != own));
    }
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
            findings.add(found::LibraryMisplaced {
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

/// Marks libraries as reached if a file finds them by the `DT_RPATH` of a file that needs it.
///
/// If a file has no `DT_RUNPATH`, the loader also searches the `DT_RPATH` of the file that needed it, of the
/// file that needed that one, and so on up to the program. A file's `DT_RUNPATH` overrides its own
/// `DT_RPATH`. Source: ld.so(8), and `_dl_map_object` in glibc's `elf/dl-load.c`.
pub(super) fn mark_inherited(set: &LibrarySet<'_>, located: &mut [LocatedFile<'_>]) {
    let mut reached = Vec::new();
    let mut users = Users::new();
    for (index, file) in located.iter().enumerate() {
        for (_, library) in file.in_set() {
            users.entry(library.file.clone()).or_default().push(index);
        }
    }
    for (index, file) in located.iter().enumerate() {
        if file.linked.needs.linking.as_ref().is_none_or(|linking| linking.runpath.is_some()) {
            continue;
        }
        for (name, _) in file.in_set().filter(|(_, library)| !library.is_reached) {
            let all = all_users(&users, located, index);
            let mut its_users = all.into_iter().filter_map(|user| located.get(user));
            if its_users.any(|user| finds_by_rpath(set, user, name)) {
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

/// Whether `file` uses its `DT_RPATH` and finds the library `name` by it.
fn finds_by_rpath(set: &LibrarySet<'_>, file: &LocatedFile<'_>, name: &str) -> bool {
    let mut linking = file.linked.needs.linking.iter();
    linking.any(|linking| linking.runpath.is_none())
        && set.in_search_path(&set.order(file.search_path, file.linked.path), name).is_some()
}

/// Library of the set → indexes of the files that need it.
type Users = BTreeMap<TreePath, Vec<usize>>;

/// The files that need the file at `index`, directly or through others.
fn all_users(users: &Users, located: &[LocatedFile<'_>], index: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open = vec![index];
    while let Some(file) = open.pop().and_then(|at| located.get(at)) {
        for &user in users.get(file.linked.path).into_iter().flatten() {
            if found.insert(user) {
                open.push(user);
            }
        }
    }
    found
}

/// Whether the search paths of the host file at `path` change to `DT_RPATH`, as configured. Notes a damaged file,
/// which is packed unchanged.
pub(super) fn gets_rpath(
    setting: &PlanSettings,
    content: &Content,
    component: &str,
    path: &TreePath,
    findings: &mut Findings,
) -> Result<bool> {
    if setting.runpath() != Runpath::Rpath {
        return Ok(false);
    }
    let (changed, file) = (runpath::with_rpath(content, path), ComponentFile::new(component, path));
    let changed = read_or_note(changed, &file, DynamicPart::SearchPath, findings)?;
    Ok(changed.flatten().is_some())
}

/// The search path of the file as installed, and whether it differs from the input's. Notes folders outside of the
/// prefix. Files of kernel packages keep their search path.
pub(super) fn search_path(
    setting: &PlanSettings,
    linked: &LinkedFile<'_>,
    content: &Content,
    component: &str,
    findings: &mut Findings,
) -> Result<(String, bool)> {
    let Some(linking) = &linked.needs.linking else { return Ok((String::new(), false)) };
    let (path, prefix) = (linked.path, setting.prefix.path());
    let text = search::written(linking).to_owned();
    if !linked.in_host {
        return Ok((text, false));
    }
    let file = ComponentFile::new(component, path);
    if setting.runpath() != Runpath::Origin {
        // Outside of the prefix, or without a fixed place.
        let folders = search::folders(&text, path, prefix).into_iter();
        let outside = folders.filter_map(|folder| match folder {
            Folder::Outside(folder) => Some(folder),
            Folder::Unknown(text) if !text.contains('$') => Some(text),
            _ => None,
        });
        let outside: Vec<String> = outside.collect();
        if !outside.is_empty() {
            let search = OutsideSearch::Folders(outside);
            findings.add(found::RunpathOutside { file, search });
        }
        return Ok((text, false));
    }
    let rewriting = runpath::rewrite(content, path, prefix);
    let rewriting = read_or_note(rewriting, &file, DynamicPart::SearchPath, findings)?;
    let Some(rewriting) = rewriting else { return Ok((text, false)) };
    for (before, after) in &rewriting.changed {
        let (before, after) = (abridged(before).into_owned(), abridged(after).into_owned());
        findings.add(found::RunpathRewritten { file: file.clone(), before, after });
    }
    for (before, reason) in &rewriting.refused {
        let (search_path, reason) = (abridged(before).into_owned(), (*reason).to_owned());
        let search = OutsideSearch::Stays { search_path, reason };
        findings.add(found::RunpathOutside { file: file.clone(), search });
    }
    let new = rewriting.changed.iter().find(|(before, _)| *before == text);
    let text = new.map_or(text, |(_, after)| after.clone());
    Ok((text, rewriting.content.is_some()))
}
