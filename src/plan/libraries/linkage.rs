//! Which portions need which others, and what they need from outside, by the libraries that their
//! programs link to.
//!
//! A needed library is looked up as the dynamic linker would: in the search path written in the
//! file, then in the linker path of the prefix, then in the distribution. Where it is in none of
//! these, but somewhere else in the set, that is taken: whatever loads the file may have loaded it.
//! Without `.deb` packages no distribution is asked: what the set does not have, an `.rpm` needs by
//! its name. A library outside of the linker path is *private*: files that find it depend on its
//! package, and no file elsewhere should find it by its name. What libraries in kernel packages
//! need, the host package depends on, and kernel packages depend on the host package.

use std::collections::{BTreeMap, BTreeSet};

use super::Needs;
use super::discovered::{Discovered, Gatherer};
use super::linked_file::{LibraryPlace, LinkedFile};
use super::runpath;
use crate::content::Content;
use crate::dependencies::search::{self, Order};
use crate::error::Result;
use crate::input::artifact::ComponentKind;
use crate::plan::contents::portion::{Portion, PortionNode};
use crate::plan::libraries;
use crate::plan::naming::parts::Parts;
use crate::plan::setting::Setting;
use crate::report::{ComponentFile, DynamicPart, Finding, Findings};
use crate::split::HostFile;
use crate::tree::{LINK_LIMIT, Node, TreePath};

/// What the host files of a set say about their portions, by index.
#[derive(Debug, Default)]
pub(in crate::plan) struct Linkage {
    /// Portion → portions whose libraries it links to, without itself.
    pub needs: BTreeMap<usize, BTreeSet<usize>>,
    /// Portions with files for one processor.
    pub native: BTreeSet<usize>,
    /// Paths of files whose search paths are written anew.
    pub rewritten: BTreeSet<TreePath>,
    /// Portion → what it needs from outside, and offers.
    pub discovered: BTreeMap<usize, Discovered>,
}

/// Reads the dynamic sections of all programs and libraries.
pub(in crate::plan) fn discover(
    setting: &Setting,
    parts: &Parts,
    portions: &[Portion<'_>],
    findings: &mut Findings,
) -> Result<Linkage> {
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
    let prefix = setting.prefix.path();
    let mut gatherer = Gatherer::new(setting);
    for (linked, search_path) in &linked_files {
        let needed = linked.needs.linking.iter().flat_map(|linking| &linking.needed);
        let mut found = BTreeMap::new();
        let order = search::order(search::folders(search_path, linked.path, prefix));
        for name in needed {
            if found.contains_key(name.as_str()) {
                continue;
            }
            let place = library_set.find(name, linked, &order, findings);
            if let LibraryPlace::InSet { portions, .. } = &place {
                let others = portions.iter().copied().filter(|other| *other != linked.portion);
                linkage.needs.entry(linked.portion).or_default().extend(others);
            }
            found.insert(name.as_str(), place);
        }
        gatherer.add(linked, &found)?;
    }
    let names = portions.iter().map(|portion| Ok(portion.host_names(&setting.names)?.deb));
    let names = names.collect::<Result<Vec<String>>>()?;
    let name = |index: usize| names.get(index).cloned().unwrap_or_default();
    linkage.discovered = gatherer.finish(name, findings)?;
    Ok(linkage)
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
    let has_some = |needs: &Needs| needs.linking.is_some() || !needs.interpreters.is_empty();
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

/// The last part of the name of a needed library, which may be a path.
fn file_name(needed: &str) -> &str {
    needed.rsplit('/').next().unwrap_or_default()
}

/// A library of the set.
struct Provider<'a> {
    portion: usize,
    path: &'a TreePath,
}

/// All libraries that a name may lead to.
struct LibrarySet<'a> {
    setting: &'a Setting,
    portions: &'a [Portion<'a>],
    /// Soname, or else file name → libraries.
    by_name: BTreeMap<&'a str, Vec<Provider<'a>>>,
    /// Path → portion and node of everything in the set.
    by_path: BTreeMap<&'a TreePath, (usize, &'a Node<HostFile>)>,
    /// File name of a needed library → everything of that name in the set. A search path may have
    /// thousands of folders, most of which are not there.
    by_file_name: BTreeMap<&'a str, Vec<&'a TreePath>>,
}

impl<'a> LibrarySet<'a> {
    fn new(
        setting: &'a Setting,
        portions: &'a [Portion<'a>],
        linked_files: &'a [(LinkedFile<'a>, String)],
    ) -> Self {
        let mut by_name: BTreeMap<&str, Vec<Provider<'_>>> = BTreeMap::new();
        let mut by_file_name: BTreeMap<&str, Vec<&TreePath>> = BTreeMap::new();
        for (LinkedFile { portion, path, needs, .. }, _) in linked_files {
            let Some(linking) = &needs.linking else { continue };
            let needed = linking.needed.iter().map(|name| (file_name(name), Vec::new()));
            by_file_name.extend(needed);
            let own_name = Some(path.name()).filter(|name| name.contains(".so"));
            if let Some(name) = linking.soname.as_deref().or(own_name) {
                by_name.entry(name).or_default().push(Provider { portion: *portion, path });
            }
        }
        let files = portions.iter().enumerate().flat_map(|(index, portion)| {
            portion.files.iter().map(move |(path, owned)| (*path, (index, owned.node)))
        });
        let by_path: BTreeMap<&TreePath, (usize, &Node<HostFile>)> = files.collect();
        for path in by_path.keys().copied() {
            if let Some(places) = by_file_name.get_mut(path.name()) {
                places.push(path);
            }
        }
        Self { setting, portions, by_name, by_path, by_file_name }
    }

    /// Where the file `linked`, whose search path has this order, finds the library `name`.
    fn find(
        &self,
        name: &str,
        linked: &LinkedFile<'_>,
        order: &Order,
        findings: &mut Findings,
    ) -> LibraryPlace {
        if let Some(found) = self.in_search_path(order, name) {
            return found;
        }
        let linker_path = self.setting.folders.libraries.join(name);
        if let Some(found) = linker_path.ok().and_then(|path| self.at(path)) {
            return found;
        }
        let providers = self.by_name.get(name).map(Vec::as_slice).unwrap_or_default();
        let public: Vec<_> =
            providers.iter().filter(|p| self.setting.folders.is_public(p.path)).collect();
        if let Some(found) = self.chosen(linked.portion, name, &public, findings) {
            return LibraryPlace::InSet { portions: BTreeSet::from([found]), is_private: false };
        }
        if self.setting.knows_library(name) {
            return LibraryPlace::Outside;
        }
        let all: Vec<_> = providers.iter().collect();
        match self.chosen(linked.portion, name, &all, findings) {
            Some(found) => {
                LibraryPlace::InSet { portions: BTreeSet::from([found]), is_private: true }
            }
            None if self.setting.distribution.is_none() => LibraryPlace::Outside,
            None => LibraryPlace::Nowhere,
        }
    }

    /// What lies at `name` in the first folder of a search path that has it.
    fn in_search_path(&self, order: &Order, name: &str) -> Option<LibraryPlace> {
        let places = self.by_file_name.get(file_name(name)).into_iter().flatten();
        let in_order = |path: &&'a TreePath| {
            let folder = path.as_str().strip_suffix(name)?;
            let folder = if folder.is_empty() { folder } else { folder.strip_suffix('/')? };
            Some((*order.get(folder)?, *path))
        };
        let mut places: Vec<(usize, &TreePath)> = places.filter_map(in_order).collect();
        places.sort();
        places.into_iter().find_map(|(_, path)| self.at(path.clone()))
    }

    /// What lies at `path`, with all links on the way.
    fn at(&self, mut path: TreePath) -> Option<LibraryPlace> {
        let is_private = !self.setting.folders.is_public(&path);
        let mut portions = BTreeSet::new();
        for _ in 0..LINK_LIMIT {
            let (portion, node) = self.by_path.get(&path)?;
            portions.insert(*portion);
            match node {
                Node::File { .. } => return Some(LibraryPlace::InSet { portions, is_private }),
                Node::Link { target } => path = path.resolve_link(target)?,
                Node::Directory { .. } => return None,
            }
        }
        None
    }

    /// Of several portions that provide `name`: portion `index` itself, or else the first.
    fn chosen(
        &self,
        index: usize,
        name: &str,
        providers: &[&Provider<'_>],
        findings: &mut Findings,
    ) -> Option<usize> {
        let candidates: BTreeSet<usize> = providers.iter().map(|p| p.portion).collect();
        if candidates.contains(&index) {
            return Some(index);
        }
        let first = candidates.first().copied();
        if candidates.len() > 1 {
            let names = candidates.iter().filter_map(|&at| self.portions.get(at));
            let providers = names.map(|portion| portion.family.clone()).collect();
            findings.add(Finding::LibraryAmbiguous { library: name.to_owned(), providers });
        }
        first
    }
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
