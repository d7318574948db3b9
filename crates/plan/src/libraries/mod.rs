//! Finds which portions and external libraries each portion needs, by the libraries that its programs link
//! to.
//!
//! `library_set` looks up each library. A library outside of the linker path is *private*: files that find it
//! depend on its package, and no file elsewhere should find it by its name. The host package depends on the
//! needs of libraries in kernel packages, and kernel packages depend on the host package.

pub(super) mod discovered;
mod inherited;
mod interpreters;
mod library_set;
pub(super) mod linkage;
mod linked_file;
mod needs;
mod reach;
mod runpath;
mod set_paths;
pub(super) mod symbols;
mod versions;

use std::collections::BTreeMap;

use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_core::tree::{Node, TreePath};

use super::contents::portion::Portion;
use super::naming::parts::Parts;
use super::settings::PlanSettings;
use discovered::Gatherer;
use interpreters::InterpreterNeeds;
use library_set::LibrarySet;
use linkage::Linkage;
use linked_file::{LinkedFile, LocatedFile};
use needs::Needs;
use rockpack_package::dependencies::search;
use rockpack_package::receipt::listing::Listing;
use rockpack_report::{ComponentFile, DynamicPart, Finding, Findings};
use rockpack_split::input::artifact::ComponentKind;

/// Reads the dynamic sections of all programs and libraries of a set that updates `earlier` ones.
pub(super) fn discover(
    setting: &PlanSettings,
    portions: &[Portion<'_>],
    earlier: &[Listing],
    findings: &mut Findings,
) -> Result<Linkage> {
    let parts = &setting.parts;
    let mut linkage = Linkage::default();
    let mut linked_files = Vec::new();
    for (index, portion) in portions.iter().enumerate() {
        for (path, owned) in &portion.files {
            let Node::File { data, mode } = owned.node else { continue };
            let (content, mode) = (data.kind.original(), *mode);
            if needs::is_native(content)? {
                linkage.native.insert(index);
            }
            let component = owned.component.id();
            if !parts.are_run(owned.component.kind) {
                note_unasked(content, owned.component.kind, &component, path, findings)?;
                continue;
            }
            if let Some(needs) = read(content, mode, &component, path, findings)? {
                let linked = LinkedFile { portion: index, path, needs, in_host: true };
                let written =
                    runpath::search_path(setting, &linked, content, &component, findings)?;
                if written.is_new {
                    linkage.rewritten.insert((*path).clone());
                }
                linked_files.push((linked, written.text));
            }
        }
        linked_files.extend(of_databases(index, portion, parts, findings)?);
    }
    let library_set = LibrarySet::new(setting, portions, &linked_files);
    let mut located = Vec::new();
    for (linked, search_path) in &linked_files {
        located.push(locate(setting, &library_set, linked, search_path, findings));
    }
    inherited::mark(setting, &library_set, &mut located);
    let public = library_set.public_files();
    let mut gatherer = Gatherer::new(setting);
    let mut interpreters = InterpreterNeeds::new(setting, portions);
    for file in &located {
        for (_, library) in file.in_set() {
            let portion = file.linked.portion;
            let others = library.portions.iter().copied().filter(|other| *other != portion);
            linkage.needs.entry(portion).or_default().extend(others);
        }
        gatherer.add(file.linked, &file.places, public.contains(file.linked.path))?;
        interpreters.add(file.linked);
    }
    let names = host_names(setting, portions)?;
    linkage.symbols = symbols::find(setting, &library_set, &located, (&names, earlier));
    let name = |index: usize| names.get(index).cloned().unwrap_or_default();
    versions::note(&library_set, &located, name, findings);
    reach::note(setting, &library_set, &located, name, findings);
    linkage.discovered = gatherer.finish(name, findings)?;
    interpreters.finish(name, &mut linkage, findings)?;
    Ok(linkage)
}

/// The names of the host packages of all portions, as `.deb`.
fn host_names(setting: &PlanSettings, portions: &[Portion<'_>]) -> Result<Vec<String>> {
    let names = portions.iter().map(|portion| Ok(portion.host_names(&setting.names)?.deb));
    names.collect()
}

/// Looks up every library that the file `linked` needs.
fn locate<'a>(
    setting: &PlanSettings,
    library_set: &LibrarySet<'_>,
    linked: &'a LinkedFile<'a>,
    search_path: &'a str,
    findings: &mut Findings,
) -> LocatedFile<'a> {
    let folders = search::folders(search_path, linked.path, setting.prefix.path());
    let order = library_set.through_links(search::order(folders));
    let mut places = BTreeMap::new();
    for name in linked.needs.linking.iter().flat_map(|linking| &linking.needed) {
        if !places.contains_key(name.as_str()) {
            places.insert(name.as_str(), library_set.find(name, linked, &order, findings));
        }
    }
    LocatedFile { linked, search_path, places }
}

/// Libraries in kernel packages; the host package takes over their needs.
fn of_databases<'a>(
    index: usize,
    portion: &Portion<'a>,
    parts: &Parts,
    findings: &mut Findings,
) -> Result<Vec<(LinkedFile<'a>, String)>> {
    let mut linked_files = Vec::new();
    for database in &portion.databases {
        let (content, path) = (&database.file.content, &database.file.path);
        if !needs::is_native(content)? {
            continue;
        }
        let component = database.component.id();
        if !parts.are_run(database.component.kind) {
            note_unasked(content, database.component.kind, &component, path, findings)?;
            continue;
        }
        if let Some(needs) = read(content, 0, &component, path, findings)? {
            let search_path =
                needs.linking.as_ref().map(search::written).unwrap_or_default().to_owned();
            linked_files
                .push((LinkedFile { portion: index, path, needs, in_host: false }, search_path));
        }
    }
    Ok(linked_files)
}

/// Reads the needs of a file; `None` without needs. A damaged library is packed unchanged, with a finding
/// that its needs are unknown.
fn read(
    content: &Content,
    mode: u32,
    component: &str,
    path: &TreePath,
    findings: &mut Findings,
) -> Result<Option<Needs>> {
    match needs::needs(content, mode) {
        Ok(needs) => Ok(Some(needs).filter(|it| it.linking.is_some() || it.script.is_some())),
        Err(error) if error.is_of_reading() => Err(error),
        Err(error) => {
            findings.add(Finding::LibrariesUnreadable {
                file: ComponentFile::new(component, path),
                part: DynamicPart::NeededLibraries,
                reason: error.message().to_owned(),
            });
            Ok(None)
        }
    }
}

/// Notes a file that needs libraries but is in a part whose programs are not run.
fn note_unasked(
    content: &Content,
    kind: ComponentKind,
    component: &str,
    path: &TreePath,
    findings: &mut Findings,
) -> Result<()> {
    let linking = match needs::needs(content, 0) {
        Ok(needs) => needs.linking,
        Err(error) if error.is_of_reading() => return Err(error),
        // A damaged file states no needs either.
        Err(_) => None,
    };
    if linking.is_some_and(|linking| !linking.needed.is_empty()) {
        let file = ComponentFile::new(component, path);
        findings.add(Finding::LibrariesNotAsked { file, kind });
    }
    Ok(())
}
