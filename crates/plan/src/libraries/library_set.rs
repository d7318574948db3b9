//! The libraries of a set, and the lookup of a library by name.
//!
//! A needed library is looked up as the dynamic linker does: at its path from the folder of the file (`$ORIGIN/…`),
//! or in the search path written in the file, then in the linker path of the prefix, then in the distribution. A
//! library elsewhere in the set is also used, but is not *reached*: a program that needs it does not start, and a
//! library loads only if its user loaded the needed one before. Without `.deb` packages, no distribution is searched:
//! an `.rpm` requires external libraries by name.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::tree::{LINK_LIMIT, Node, TreePath};
use rockpack_elf::Linking;

use super::Needs;
use crate::contents::Portion;
use crate::settings::PlanSettings;
use rockpack_package::Import;
use rockpack_package::dependencies::search::{self, Order};
use rockpack_report::{Findings, found};
use rockpack_split::HostFile;

/// The file name of a needed library, whose name may be a path.
pub(super) fn file_name(needed: &str) -> &str {
    needed.rsplit('/').next().unwrap_or_default()
}

struct Provider<'a> {
    portion: usize,
    path: &'a TreePath,
}

impl Provider<'_> {
    fn library(&self, is_private: bool, is_reached: bool) -> SetLibrary {
        SetLibrary {
            portions: BTreeSet::from([self.portion]),
            owner: self.portion,
            found_at: self.path.clone(),
            file: self.path.clone(),
            is_private,
            is_reached,
        }
    }
}

pub(super) struct LibrarySet<'a> {
    setting: &'a PlanSettings,
    portions: &'a [Portion<'a>],
    /// Soname, or else file name → libraries.
    by_name: BTreeMap<&'a str, Vec<Provider<'a>>>,
    /// Path → portion and node of everything in the set.
    by_path: BTreeMap<&'a TreePath, (usize, &'a Node<HostFile>)>,
    /// File name of a needed library → its paths in the set, so that absent folders of a long search path cost
    /// nothing.
    by_file_name: BTreeMap<&'a str, Vec<&'a TreePath>>,
    /// Path → dynamic section, for all files whose section was read.
    linkings: BTreeMap<&'a TreePath, &'a Linking>,
    /// The linker path of the prefix, with links resolved.
    linker_path: TreePath,
}

impl<'a> LibrarySet<'a> {
    pub(super) fn new(
        setting: &'a PlanSettings,
        portions: &'a [Portion<'a>],
        linked_files: &'a [(LinkedFile<'a>, String)],
    ) -> Self {
        let mut by_name: BTreeMap<&str, Vec<Provider<'_>>> = BTreeMap::new();
        let mut by_file_name: BTreeMap<&str, Vec<&TreePath>> = BTreeMap::new();
        let mut linkings = BTreeMap::new();
        for (LinkedFile { portion, path, needs, .. }, _) in linked_files {
            let Some(linking) = &needs.linking else { continue };
            linkings.insert(*path, linking);
            let needed = linking.needed.iter().map(|name| (file_name(name), Vec::new()));
            by_file_name.extend(needed);
            let own_name = Some(path.name()).filter(|name| name.contains(".so"));
            if let Some(name) = linking.soname.as_deref().or(own_name) {
                let provider = Provider { portion: *portion, path };
                by_name.entry(name).or_default().push(provider);
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
        let linker_path = setting.config.folders.libraries.clone();
        let mut set =
            Self { setting, portions, by_name, by_path, by_file_name, linkings, linker_path };
        if let Some(behind) = set.resolve_links(set.linker_path.clone()) {
            set.linker_path = behind;
        }
        set
    }

    /// Whether the dynamic linker finds the file at `path` by its name alone.
    fn is_public(&self, path: &TreePath) -> bool {
        self.setting.config.folders.is_public(path)
            || path.folder() == Some(self.linker_path.as_str())
    }

    /// The files that the dynamic linker finds by their names alone, also through links.
    pub(super) fn public_files(&self) -> BTreeSet<TreePath> {
        let paths = self.by_path.keys().filter(|path| self.is_public(path));
        paths.filter_map(|path| Some(self.at((*path).clone())?.file)).collect()
    }

    /// The folders that the loader searches for the file at `path`, including those behind links of the set.
    pub(super) fn order(&self, search_path: &str, path: &TreePath) -> Order {
        let folders = search::folders(search_path, path, self.setting.prefix.path());
        let mut order = search::order(folders);
        let behind: Vec<(String, usize)> = order
            .iter()
            .filter_map(|(folder, index)| {
                let path = TreePath::new(folder.as_str()).ok()?;
                Some((self.resolve_links(path)?.as_str().to_owned(), *index))
            })
            .collect();
        for (folder, index) in behind {
            order.entry(folder).or_insert(index);
        }
        order
    }

    fn resolve_links(&self, mut path: TreePath) -> Option<TreePath> {
        for _ in 0..LINK_LIMIT {
            let above = std::iter::successors(Some(path.clone()), TreePath::parent);
            let link = above.into_iter().find_map(|folder| match self.by_path.get(&folder) {
                Some((_, Node::Link { target })) => Some((folder.resolve_link(target)?, folder)),
                _ => None,
            });
            let Some((target, folder)) = link else { return Some(path) };
            let rest = path.as_str().strip_prefix(folder.as_str())?.trim_start_matches('/');
            path = if rest.is_empty() { target } else { target.join(rest).ok()? };
        }
        None
    }

    /// Looks up the library `name` for the file `linked` with this search path.
    pub(super) fn find(
        &self,
        name: &str,
        linked: &LinkedFile<'_>,
        order: &Order,
        findings: &mut Findings,
    ) -> LibraryLookup {
        let by_path = search::from_origin(name, linked.path, self.setting.prefix.path());
        let by_path = by_path.and_then(|path| self.at(path));
        if let Some(found) = by_path.or_else(|| self.in_search_path(order, name)) {
            return LibraryLookup::InSet(found);
        }
        let linker_path = self.linker_path.join(name);
        if let Some(found) = linker_path.ok().and_then(|path| self.at(path)) {
            return LibraryLookup::InSet(found);
        }
        let providers = self.by_name.get(name).map(Vec::as_slice).unwrap_or_default();
        let public: Vec<_> =
            providers.iter().filter(|provider| self.is_public(provider.path)).collect();
        if let Some(found) = self.choose_provider(linked.portion, name, &public, findings) {
            return LibraryLookup::InSet(found.library(false, true));
        }
        if self.setting.knows_library(name, linked.family) {
            return LibraryLookup::Outside;
        }
        let all: Vec<_> = providers.iter().collect();
        match self.choose_provider(linked.portion, name, &all, findings) {
            Some(found) => LibraryLookup::InSet(found.library(true, false)),
            None if self.setting.distribution().is_none() => LibraryLookup::Outside,
            None => LibraryLookup::NotFound,
        }
    }

    /// The library at `name` in the first folder of a search path that has it.
    pub(super) fn in_search_path(&self, order: &Order, name: &str) -> Option<SetLibrary> {
        let places = self.by_file_name.get(file_name(name)).into_iter().flatten();
        let in_order = places.filter_map(|path| {
            let folder = path.as_str().strip_suffix(name)?;
            let folder = if folder.is_empty() { folder } else { folder.strip_suffix('/')? };
            Some((*order.get(folder)?, *path))
        });
        let mut places: Vec<(usize, &TreePath)> = in_order.collect();
        places.sort();
        places.into_iter().find_map(|(_, path)| self.at(path.clone()))
    }

    /// The library at `path`, reached through links of the set.
    fn at(&self, mut path: TreePath) -> Option<SetLibrary> {
        let (found_at, is_private) = (path.clone(), !self.is_public(&path));
        let mut portions = BTreeSet::new();
        for _ in 0..LINK_LIMIT {
            let (portion, node) = self.by_path.get(&path)?;
            portions.insert(*portion);
            match node {
                Node::File { .. } => {
                    let (owner, file, is_reached) = (*portion, path, true);
                    let found =
                        SetLibrary { portions, owner, found_at, file, is_private, is_reached };
                    return Some(found);
                }
                Node::Link { target } => path = path.resolve_link(target)?,
                Node::Directory { .. } => return None,
            }
        }
        None
    }

    /// The library that `import` finds in this set: the one at the same path, or a public one of the name.
    pub(super) fn find_import(&self, import: &Import) -> Option<TreePath> {
        self.at(import.path.clone()).map(|library| library.file).or_else(|| {
            let mut named = self.by_name.get(import.library.as_str())?.iter();
            let found = named.find(|it| *it.path == import.path || self.is_public(it.path))?;
            Some(found.path.clone())
        })
    }

    pub(super) fn linking(&self, path: &TreePath) -> Option<&'a Linking> {
        self.linkings.get(path).copied()
    }

    /// Chooses among several libraries called `name`: one of portion `index`, or else of the first portion.
    fn choose_provider<'p>(
        &self,
        index: usize,
        name: &str,
        providers: &[&'p Provider<'a>],
        findings: &mut Findings,
    ) -> Option<&'p Provider<'a>> {
        let of_portion = |at: usize| providers.iter().find(|it| it.portion == at).copied();
        if let Some(own) = of_portion(index) {
            return Some(own);
        }
        let candidates: BTreeSet<usize> = providers.iter().map(|p| p.portion).collect();
        if candidates.len() > 1 {
            let names = candidates.iter().filter_map(|&at| self.portions.get(at));
            let providers = names.map(|portion| portion.family.as_str().into()).collect();
            findings.add(found::LibraryAmbiguous { library: name.into(), providers });
        }
        of_portion(*candidates.first()?)
    }
}

pub(super) struct LinkedFile<'a> {
    pub portion: usize,
    pub family: &'a str,
    pub path: &'a TreePath,
    pub needs: Needs,
    /// Whether it is in the host package, and not in a kernel package.
    pub in_host: bool,
}

impl LinkedFile<'_> {
    /// `DT_SONAME`, if it is a library of the host package.
    pub fn soname(&self) -> Option<&str> {
        let linking = self.needs.linking.as_ref().filter(|_| self.in_host)?;
        linking.soname.as_deref().filter(|_| linking.interpreter.is_none())
    }
}

pub(super) struct LocatedFile<'a> {
    pub linked: &'a LinkedFile<'a>,
    /// The library search path as it will be installed.
    pub search_path: &'a str,
    pub places: BTreeMap<&'a str, LibraryLookup>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LibraryLookup {
    InSet(SetLibrary),
    /// A library of the distribution or the configuration; without a distribution, any that the set lacks.
    Outside,
    NotFound,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SetLibrary {
    /// The portion of its file, and those of links to it.
    pub portions: BTreeSet<usize>,
    pub owner: usize,
    /// The path at which the loader finds it: that of its file, or of a link to it.
    pub found_at: TreePath,
    pub file: TreePath,
    /// Whether it is outside of the linker path.
    pub is_private: bool,
    /// Whether the loader finds it for the file that needs it.
    pub is_reached: bool,
}

impl LocatedFile<'_> {
    /// The libraries of the set that the file needs, with the names by which it needs them.
    pub fn in_set(&self) -> impl Iterator<Item = (&str, &SetLibrary)> {
        self.places.iter().filter_map(|(name, place)| match place {
            LibraryLookup::InSet(library) => Some((*name, library)),
            _ => None,
        })
    }
}
