//! Which portions need which others, and what they need from outside, by the libraries that their
//! programs link to.
//!
//! `library_set` says where each of them finds a library. A library outside of the linker path is
//! *private*: files that find it depend on its package, and no file elsewhere should find it by its
//! name. What libraries in kernel packages need, the host package depends on, and kernel packages
//! depend on the host package.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_base::content::Content;
use rockpack_base::error::Result;
use rockpack_base::tree::{Node, TreePath};

use super::Needs;
use super::discovered::{Discovered, Gatherer};
use super::interpreters::InterpreterNeeds;
use super::library_set::LibrarySet;
use super::linked_file::{LinkedFile, LocatedFile};
use super::{inherited, reach, runpath, versions};
use crate::dependencies::script::FirstLine;
use crate::dependencies::search;
use crate::input::artifact::ComponentKind;
use crate::plan::contents::portion::{Portion, PortionNode};
use crate::plan::libraries;
use crate::plan::naming::parts::Parts;
use crate::plan::setting::Setting;
use crate::report::{ComponentFile, DynamicPart, Finding, Findings};

/// What the host files of a set say about their portions, by index.
#[derive(Debug, Default)]
pub(in crate::plan) struct Linkage {
    /// Portion → portions whose libraries it links to, without itself.
    pub needs: BTreeMap<usize, BTreeSet<usize>>,
    /// Portions with files for one processor.
    pub native: BTreeSet<usize>,
    /// Paths of files whose search paths are written anew.
    pub rewritten: BTreeSet<TreePath>,
    /// Paths of scripts that get another first line, and that line.
    pub first_lines: BTreeMap<TreePath, FirstLine>,
    /// Portion → what it needs from outside, and offers.
    pub discovered: BTreeMap<usize, Discovered>,
}

/// Reads the dynamic sections of all programs and libraries.
pub(in crate::plan) fn discover(
    setting: &Setting,
    portions: &[Portion<'_>],
    findings: &mut Findings,
) -> Result<Linkage> {
    let parts = &setting.parts;
    let mut linkage = Linkage::default();
    let mut linked_files = Vec::new();
    for (index, portion) in portions.iter().enumerate() {
        for (path, owned) in &portion.files {
            let Some((content, mode)) = host_content(owned) else {
                continue;
            };
            if libraries::is_native(content)? {
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
    let names = portions.iter().map(|portion| Ok(portion.host_names(&setting.names)?.deb));
    let names = names.collect::<Result<Vec<String>>>()?;
    let name = |index: usize| names.get(index).cloned().unwrap_or_default();
    versions::note(&library_set, &located, name, findings);
    reach::note(setting, &library_set, &located, name, findings);
    linkage.discovered = gatherer.finish(name, findings)?;
    interpreters.finish(name, &mut linkage, findings)?;
    Ok(linkage)
}

/// Looks up every library that the file `linked` needs.
fn locate<'a>(
    setting: &Setting,
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

/// Libraries in kernel packages, which depend on their host: that one has what they need.
fn of_databases<'a>(
    index: usize,
    portion: &Portion<'a>,
    parts: &Parts,
    findings: &mut Findings,
) -> Result<Vec<(LinkedFile<'a>, String)>> {
    let mut linked_files = Vec::new();
    for database in &portion.databases {
        let (content, path) = (&database.file.content, &database.file.path);
        if !libraries::is_native(content)? {
            continue;
        }
        let component = database.component.id();
        if !parts.are_run(database.component.kind) {
            note_unasked(content, database.component.kind, &component, path, findings)?;
            continue;
        }
        if let Some(needs) = read(content, 0, &component, path, findings)? {
            let search_path = needs.linking.as_ref().map(search::written).unwrap_or_default();
            let search_path = search_path.to_owned();
            linked_files
                .push((LinkedFile { portion: index, path, needs, in_host: false }, search_path));
        }
    }
    Ok(linked_files)
}

/// The bytes of a host file as the input has them, with device code, and its mode.
fn host_content<'a>(owned: &PortionNode<'a>) -> Option<(&'a Content, u32)> {
    match owned.node {
        Node::File { data, mode } => Some((data.kind.original(), *mode)),
        _ => None,
    }
}

/// A damaged library is packed as it is; that nothing is known of its needs is a finding.
fn read(
    content: &Content,
    mode: u32,
    component: &str,
    path: &TreePath,
    findings: &mut Findings,
) -> Result<Option<Needs>> {
    let has_some = |needs: &Needs| needs.linking.is_some() || needs.script.is_some();
    match libraries::needs(content, mode) {
        Ok(needs) => Ok(Some(needs).filter(has_some)),
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

/// Notes a file that needs libraries and is in a part that nobody runs.
fn note_unasked(
    content: &Content,
    kind: ComponentKind,
    component: &str,
    path: &TreePath,
    findings: &mut Findings,
) -> Result<()> {
    let linking = match libraries::needs(content, 0) {
        Ok(needs) => needs.linking,
        Err(error) if error.is_of_reading() => return Err(error),
        // Of a damaged one, nothing is asked either.
        Err(_) => None,
    };
    if linking.is_some_and(|linking| !linking.needed.is_empty()) {
        let file = ComponentFile::new(component, path);
        findings.add(Finding::LibrariesNotAsked { file, kind });
    }
    Ok(())
}

impl Linkage {
    /// The nearest portions that `index` needs, directly or through others, and for which `wanted`
    /// holds; what lies behind these is their own concern.
    pub fn nearest(&self, index: usize, wanted: impl Fn(usize) -> bool) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut seen = BTreeSet::from([index]);
        let mut open = vec![index];
        while let Some(at) = open.pop() {
            for &next in self.needs.get(&at).into_iter().flatten() {
                if !seen.insert(next) {
                    continue;
                }
                if wanted(next) {
                    found.insert(next);
                } else {
                    open.push(next);
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_found_behind_hosts_without_any() {
        let needs = [(0, vec![1, 4]), (1, vec![2, 0]), (2, vec![3]), (4, vec![])];
        let needs = needs.map(|(from, to)| (from, to.into_iter().collect())).into();
        let linkage = Linkage { needs, ..Linkage::default() };
        assert_eq!(linkage.nearest(0, |at| at == 2 || at == 3), BTreeSet::from([2]));
        assert_eq!(linkage.nearest(0, |_| true), BTreeSet::from([1, 4]));
        assert!(linkage.nearest(4, |_| true).is_empty());
    }
}
