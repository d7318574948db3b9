//! The programs and libraries of a set, and which package has what.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use rockpack_base::tree::LINK_LIMIT;

use super::LibraryTables;
use crate::verify::checks::excuses::Excuses;
use crate::verify::own::facts::Class;
use crate::verify::own::installed::{Installed, InstalledNode};
use crate::verify::own::linked::Linked;
use crate::verify::paths::{folder_of, name_of, names_in};

/// The longest path that Linux opens.
const PATH_MAX: usize = 4096;

/// Folders in which the loader looks on every system of the two formats.
const DEFAULT_FOLDERS: &str = "/lib /lib64 /usr/lib /usr/lib64 /lib/x86_64-linux-gnu \
    /usr/lib/x86_64-linux-gnu /usr/local/lib /usr/local/lib/x86_64-linux-gnu";

/// A program or library.
pub(super) struct LinkedFile<'a> {
    pub(super) package: &'a Installed,
    pub(super) path: &'a str,
    pub(super) linked: &'a Linked,
    /// The folders of its search path, once they are asked for: there may be thousands.
    searched: OnceCell<BTreeSet<String>>,
}

impl LinkedFile<'_> {
    /// The folder that it lies in.
    pub(super) fn folder(&self) -> &str {
        folder_of(self.path)
    }

    /// The folders of its search path.
    pub(super) fn searched(&self) -> &BTreeSet<String> {
        self.searched.get_or_init(|| {
            let own = self.folder();
            // Nothing is opened by a longer path, and a part may say `$ORIGIN` as often as it likes.
            let parts = self.linked.search.split(':');
            let fitting = parts
                .filter(|part| part.len() + part.matches("ORIGIN").count() * own.len() <= PATH_MAX);
            fitting.map(|part| resolved(part, own)).collect()
        })
    }

    /// The names that it is needed by.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.linked.soname.as_deref().into_iter().chain([name_of(self.path)])
    }
}

/// All packages, and who has what.
pub(in crate::verify::checks) struct InstalledSet<'a> {
    pub(super) packages: &'a [&'a Installed],
    pub(super) tables: &'a LibraryTables,
    /// All programs and libraries whose needs count.
    pub(super) linked: Vec<LinkedFile<'a>>,
    /// Library → those that need it.
    users: BTreeMap<&'a str, Vec<usize>>,
    /// Every package that some table names.
    pub(super) known: BTreeSet<&'a str>,
    /// Package or capability → the packages that are it or provide it.
    pub(super) offering: BTreeMap<&'a str, Vec<&'a Installed>>,
    /// File name, or soname → the packages with such a file, and its path.
    pub(super) holders: BTreeMap<&'a str, Vec<(&'a Installed, &'a str)>>,
    /// Path of a link → its target.
    links: BTreeMap<&'a str, &'a str>,
    /// Folder → the packages that tell the loader of it.
    pub(super) loader: BTreeMap<&'a str, Vec<&'a Installed>>,
    /// Versions of the packages, without their releases.
    versions: BTreeSet<&'a str>,
}

impl<'a> InstalledSet<'a> {
    pub(in crate::verify::checks) fn new(
        packages: &'a [&'a Installed],
        tables: &'a LibraryTables,
        excuses: &Excuses,
    ) -> Self {
        let (mut offering, mut holders) = (BTreeMap::new(), BTreeMap::new());
        let mut links = BTreeMap::new();
        let mut loader: BTreeMap<&str, Vec<&Installed>> = BTreeMap::new();
        for &package in packages {
            let provided = package.provides.iter().map(|offer| &*offer.name);
            for name in provided.chain([package.name.as_str()]) {
                offering.entry(name).or_insert_with(Vec::new).push(package);
            }
            for (path, node) in &package.paths {
                for name in names_of(path, node) {
                    holders.entry(name).or_insert_with(Vec::new).push((package, path.as_str()));
                }
                if let InstalledNode::Link { target } = node {
                    links.insert(path.as_str(), target.as_str());
                }
                let InstalledNode::File { facts, .. } = node else { continue };
                if let Class::LoaderFolders(folders) = &facts.class {
                    folders
                        .iter()
                        .for_each(|folder| loader.entry(folder).or_default().push(package));
                }
            }
        }
        let linked: Vec<LinkedFile<'_>> = packages
            .iter()
            .flat_map(|package| linked(package))
            .filter(|file| !excuses.asks_nothing_of(file.path))
            .collect();
        let mut users: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, file) in linked.iter().enumerate() {
            for name in &file.linked.needed {
                users.entry(name).or_default().push(index);
            }
        }
        Self {
            packages,
            tables,
            linked,
            users,
            known: tables.values().flatten().map(String::as_str).collect(),
            offering,
            holders,
            links,
            loader,
            versions: packages.iter().map(|package| upstream(&package.version)).collect(),
        }
    }

    /// The programs and libraries that need the library `name`.
    pub(super) fn users(&self, name: &str) -> impl Iterator<Item = &LinkedFile<'a>> {
        let users = self.users.get(name).into_iter().flatten();
        users.filter_map(|index| self.linked.get(*index))
    }

    /// Whether the search path of `file` leads to `folder`, or, where it has no `DT_RUNPATH`, the
    /// `DT_RPATH` of a file that needs it.
    pub(super) fn searches(&self, file: &LinkedFile<'_>, folder: &str) -> bool {
        self.leads(file, folder) || (!file.linked.has_runpath && self.inherits(file, folder))
    }

    /// Whether the search path in `file` names `folder`, or a link to it.
    pub(super) fn leads(&self, file: &LinkedFile<'_>, folder: &str) -> bool {
        file.searched().contains(folder)
            || file.searched().iter().any(|searched| self.behind_links(searched) == folder)
    }

    /// The folder that `path` leads to, with all links of the set on the way.
    fn behind_links(&self, path: &str) -> String {
        let mut path = path.to_owned();
        for _ in 0..LINK_LIMIT {
            let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
            let link =
                ends.filter_map(|end| path.split_at_checked(end)).find_map(|(link, rest)| {
                    let target = self.links.get(link)?;
                    let above = if target.starts_with('/') { "" } else { folder_of(link) };
                    Some(normal(&format!("{above}/{target}{rest}")))
                });
            match link {
                Some(next) => path = next,
                None => break,
            }
        }
        path
    }

    fn inherits(&self, file: &LinkedFile<'_>, folder: &str) -> bool {
        let mut seen = BTreeSet::from([file.path]);
        let mut names: Vec<&str> = file.names().collect();
        while let Some(name) = names.pop() {
            for user in self.users(name) {
                if !user.linked.has_runpath && self.leads(user, folder) {
                    return true;
                }
                if seen.insert(user.path) {
                    names.extend(user.names());
                }
            }
        }
        false
    }

    /// Whether `version`, which has a release, is that of some package of the set, whatever its release.
    pub(super) fn has_version(&self, version: &str) -> bool {
        version.contains('-') && self.versions.contains(upstream(version))
    }

    /// Whether every loader looks in `folder`, or some package of the set tells it to.
    pub(super) fn is_told(&self, folder: &str) -> bool {
        DEFAULT_FOLDERS.split(' ').any(|own| own == folder) || self.loader.contains_key(folder)
    }
}

/// The file name, unless it is that of a folder, and the soname of what is at `path`.
fn names_of<'a>(path: &'a str, node: &'a InstalledNode) -> impl Iterator<Item = &'a str> {
    let file_name = (!matches!(node, InstalledNode::Directory { .. })).then(|| name_of(path));
    let soname = node.facts().and_then(|facts| match &facts.class {
        Class::Host(host) => host.elf.linked.soname.as_deref(),
        _ => None,
    });
    file_name.into_iter().chain(soname)
}

/// A version without its release.
fn upstream(version: &str) -> &str {
    version.rsplit_once('-').map_or(version, |(upstream, _)| upstream)
}

/// The programs and libraries of a package. A program that nobody may run is data.
fn linked(package: &Installed) -> impl Iterator<Item = LinkedFile<'_>> {
    package.paths.iter().filter_map(|(path, node)| match node {
        InstalledNode::File { mode, facts } => match &facts.class {
            Class::Host(host) if !host.elf.linked.is_program || mode & 0o111 != 0 => {
                let (linked, searched) = (&host.elf.linked, OnceCell::new());
                Some(LinkedFile { package, path, linked, searched })
            }
            _ => None,
        },
        _ => None,
    })
}

/// The folder that a part of a search path means for a file in `own`, as far as that is the same
/// on every system.
pub(super) fn resolved(part: &str, own: &str) -> String {
    normal(&part.replace("${ORIGIN}", own).replace("$ORIGIN", own))
}

/// An absolute path without `.` and `..`.
pub(in crate::verify::checks) fn normal(text: &str) -> String {
    format!("/{}", names_in(text).join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_paths_are_resolved_where_the_file_lies() {
        for (part, folder) in [
            ("$ORIGIN/../lib", "/opt/r/lib"),
            ("${ORIGIN}", "/opt/r/bin"),
            ("/opt/r/lib/./x/..", "/opt/r/lib"),
            ("$ORIGIN/../../../../..", "/"),
        ] {
            assert_eq!(resolved(part, "/opt/r/bin"), folder);
        }
    }
}
