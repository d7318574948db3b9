//! Makes host and support packages: their files and dependencies.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::context;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::tree::{Node, TreePath};

use super::device::DeviceContents;
use super::draft::Draft;
use super::maker::Maker;
use crate::config::PartRole;
use crate::contents::portion::{Portion, PortionNode};
use crate::links::Link;
use crate::placed::file_mode;
use crate::source::FileSource;
use rockpack_package::{Format, Relation, RelationKind, Role};
use rockpack_split::HostKind;

impl Maker<'_> {
    /// The host or support package of a portion.
    pub fn host(&self, index: usize) -> Result<Draft> {
        let (portion, contents) = (&self.portions[index], &self.contents[index]);
        let names = self.names[index].clone();
        let groups = contents
            .groups()
            .map(|group| self.groups[group].display_name.as_str())
            .collect::<Vec<_>>()
            .join(", ");
        let values = context! {
            name => self.short_name(index),
            part => &portion.part.archives,
            groups,
        };
        let texts = &self.setting.texts;
        let description = texts.description(&portion.part.template, &names.deb, values)?;
        let role = match portion.part.role {
            PartRole::Host => Role::Host,
            PartRole::Support => Role::Support,
        };
        Ok(Draft {
            native: self.linkage.native.contains(&index) || portion.has_device_code(),
            links: self.host_links(index)?,
            relations: self.runtime(contents),
            discovered: self.linkage.discovered.get(&index).cloned().unwrap_or_default(),
            files: self.host_files(index)?,
            ..Draft::of(portion, names, role, description)
        })
    }

    fn host_links(&self, index: usize) -> Result<BTreeSet<Link>> {
        let portion = &self.portions[index];
        let mut links = BTreeSet::new();
        for needed in self.linkage.needs.get(&index).into_iter().flatten() {
            let is_own = self.portions[*needed].family == portion.family;
            let link = if is_own { Link::exact } else { Link::of_patch };
            links.insert(link(RelationKind::Depends, &self.names[*needed]));
        }
        if portion.part.needs_host {
            let names = self.hosts_of(portion).map(|host| &self.names[host]);
            let others = names.filter(|names| **names != self.names[index]);
            links.extend(others.map(|names| Link::exact(RelationKind::Depends, names)));
        }
        links.extend(self.headers(portion));
        for group in self.contents[index].groups() {
            let kernels = self.kernel_names(index, group)?;
            links.insert(Link::any(RelationKind::Suggests, &kernels));
            if self.setting.ties_by_code() {
                links.insert(Link::before(RelationKind::Breaks, &kernels));
            }
        }
        for served in self.contents[index].shared().filter(|_| self.setting.ties_by_code()) {
            let common = self.common_names(index, served)?;
            links.insert(Link::before(RelationKind::Breaks, &common));
        }
        Ok(links)
    }

    /// Links to the development packages whose headers a family includes: those of the families whose
    /// libraries its own ones need. A package list states dependencies itself.
    fn headers(&self, portion: &Portion<'_>) -> Vec<Link> {
        if !portion.part.is_devel() {
            return Vec::new();
        }
        let needed = self
            .hosts_of(portion)
            .filter_map(|host| self.linkage.needs.get(&host))
            .flatten()
            .filter_map(|index| self.portions.get(*index));
        let families: BTreeSet<&str> = needed.map(|needed| needed.family.as_str()).collect();
        families
            .into_iter()
            .filter(|family| **family != portion.family)
            .flat_map(|family| self.of_family(family))
            .filter(|other| self.portions[*other].part.is_devel())
            .map(|other| Link::of_patch(RelationKind::Depends, &self.names[other]))
            .collect()
    }

    /// The host portions of the family of `portion`.
    fn hosts_of(&self, portion: &Portion<'_>) -> impl Iterator<Item = usize> {
        let all = self.of_family(&portion.family);
        all.filter(|index| self.portions[*index].part.role == PartRole::Host)
    }

    fn of_family(&self, family: &str) -> impl Iterator<Item = usize> {
        self.families.get(family).into_iter().flatten().copied()
    }

    /// The dependencies of transformed binaries on the runtime that loads their kernels.
    fn runtime(&self, contents: &DeviceContents) -> Vec<(Format, Relation)> {
        let formats = self.setting.formats.iter().filter(|_| contents.archives.is_some());
        let relations =
            formats.filter_map(|format| Some((*format, self.setting.runtime(*format)?.clone())));
        relations.collect()
    }

    fn host_files(&self, index: usize) -> Result<BTreeMap<TreePath, Node<FileSource>>> {
        let archives = self.contents[index].archives.as_ref().map(|set| set.name.clone());
        let names = self.names[index].deb.clone();
        let mut files = BTreeMap::new();
        for (path, owned) in &self.portions[index].files {
            files.insert((*path).clone(), planned(path, owned, archives.as_deref()));
        }
        if let Some(archives) = archives {
            let path = self.setting.config.folders.kernels.join(&format!("{archives}.kpm"))?;
            if files.contains_key(&path) {
                let message =
                    format!("{path} comes from the input, and is made for the package too");
                let hint = "it is the manifest of the package's archives: leave it out of the \
                            artifact";
                return Err(Error::new(Kind::Conflict, message).structure(names).hint(hint));
            }
            let data = FileSource::Manifest { archives };
            files.insert(path, Node::File { data, mode: file_mode(0) });
        }
        Ok(files)
    }
}

fn planned(path: &TreePath, owned: &PortionNode<'_>, archives: Option<&str>) -> Node<FileSource> {
    match owned.node {
        Node::Directory { .. } => Node::Directory { mode: file_mode(0o111) },
        Node::Link { target } => Node::Link { target: target.clone() },
        Node::File { data, mode } => {
            let (component, path) = (owned.component.id(), path.clone());
            let data = match (&data.kind, archives) {
                (HostKind::Fat(_), Some(archives)) => {
                    let archives = archives.to_owned();
                    FileSource::Fat { component, path, archives }
                }
                _ => FileSource::Host { component, path },
            };
            Node::File { data, mode: file_mode(*mode) }
        }
    }
}
