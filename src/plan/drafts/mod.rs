//! Packages before they are written in the words of a format: files, links, texts.

pub(super) mod device;
pub(super) mod kernels;
mod named;

use std::collections::{BTreeMap, BTreeSet};

use minijinja::context;
use rockpack_base::error::{Error, Faults, Kind, Result};
use rockpack_base::tree::{Node, TreePath};

use super::contents::portion::{Portion, PortionNode};
use super::libraries::discovered::Discovered;
use super::libraries::linkage::Linkage;
use super::naming::PackageNames;
use super::placed::{Extras, file_mode};
use super::relations::edits::{Edit, Edits};
use super::relations::{Link, PackageRelations};
use super::setting::Setting;
use super::source::{ArchiveSet, FileSource};
use super::texts::Description;
use crate::config::PartRole;
use crate::package::{Format, Relation, RelationKind, Role};
use crate::recombine::Group;
use crate::split::HostKind;
use device::{DeviceContents, contents};
pub(super) use named::{named, no_such_package};

/// A package of the set.
#[derive(Debug)]
pub(super) struct Draft {
    pub names: PackageNames,
    /// What the scheme made the names of: the family with the suffix of the part.
    pub stem: PackageNames,
    pub role: Role,
    /// The family, e.g. `rocm-blas`.
    pub family: String,
    /// Whether users install it, rather than developers or testers.
    pub is_main: bool,
    /// Whether it is what the set needs outside of the prefix.
    pub is_common: bool,
    /// The ids of the components it is made of; none for metapackages.
    pub components: BTreeSet<String>,
    pub section: String,
    pub rpm_group: String,
    /// Whether it is for one processor.
    pub native: bool,
    pub description: Description,
    pub links: BTreeSet<Link>,
    /// Relations in the words of one format.
    pub relations: Vec<(Format, Relation)>,
    /// Relations among those as the configuration writes them, whatever the version of the set is.
    pub literal: Vec<(Format, Relation)>,
    /// What its files need from outside of the set, and offer.
    pub discovered: Discovered,
    /// Install-relative.
    pub files: BTreeMap<TreePath, Node<FileSource>>,
    /// The package whose documents are its own.
    pub documents_of: Option<PackageNames>,
    /// What is treated or placed otherwise than `files`.
    pub extras: Extras,
    /// What it says of itself in place of what all packages say.
    pub says: Says,
}

impl Draft {
    /// A package without files and relations, which is for one processor.
    pub fn new(
        names: PackageNames,
        role: Role,
        description: Description,
        section: &str,
        rpm_group: &str,
    ) -> Self {
        Self {
            stem: names.clone(),
            family: names.rpm.clone(),
            names,
            role,
            is_main: false,
            is_common: false,
            components: BTreeSet::new(),
            section: section.to_owned(),
            rpm_group: rpm_group.to_owned(),
            native: true,
            description,
            links: BTreeSet::new(),
            relations: Vec::new(),
            literal: Vec::new(),
            discovered: Discovered::default(),
            files: BTreeMap::new(),
            documents_of: None,
            extras: Extras::default(),
            says: Says::default(),
        }
    }

    /// One of the packages of `portion`.
    pub fn of(
        portion: &Portion<'_>,
        names: PackageNames,
        role: Role,
        description: Description,
    ) -> Self {
        let part = portion.part;
        Self {
            stem: portion.stem.clone(),
            family: portion.family.clone(),
            is_main: part.role == PartRole::Host,
            components: portion.components.clone(),
            ..Self::new(names, role, description, &part.section, &part.group)
        }
    }

    /// Whether it is the host or support package of its stem.
    pub fn is_base(&self) -> bool {
        matches!(self.role, Role::Host | Role::Support)
    }
}

/// What a package says of itself, if not what the configuration says for all.
#[derive(Debug, Clone, Default)]
pub(super) struct Says {
    pub maintainer: Option<String>,
    pub vendor: Option<String>,
    pub homepage: Option<String>,
    pub license: Option<String>,
    pub copyright: Option<String>,
    /// Debian's priority.
    pub priority: Option<String>,
}

/// The drafts of a set without metapackages, and their archives.
pub(super) struct DraftedSet {
    pub drafts: Vec<Draft>,
    pub archives: Vec<ArchiveSet>,
}

/// Makes the packages of all portions.
pub(super) fn make(
    setting: &Setting,
    groups: &[Group],
    portions: &[Portion<'_>],
    linkage: &Linkage,
) -> Result<DraftedSet> {
    let contents = portions.iter().map(|portion| contents(setting, groups, portion));
    let contents: Vec<_> = contents.collect::<Result<_>>()?;
    let names: Vec<_> =
        portions.iter().map(|portion| portion.host_names(&setting.names)).collect::<Result<_>>()?;
    let maker = Maker { setting, groups, portions, linkage, contents: &contents, names: &names };
    let mut drafts = Vec::new();
    for (index, contents) in contents.iter().enumerate() {
        drafts.push(maker.host(index)?);
        for group in contents.groups() {
            drafts.push(maker.kernels(index, group)?);
        }
        for served in contents.shared() {
            drafts.push(maker.common(index, served)?);
        }
    }
    let archives = contents.into_iter().filter_map(|contents| contents.archives);
    Ok(DraftedSet { drafts, archives: archives.collect() })
}

/// Makes the packages of a set of portions, which it knows by index.
pub(super) struct Maker<'a> {
    pub setting: &'a Setting,
    pub groups: &'a [Group],
    pub portions: &'a [Portion<'a>],
    pub linkage: &'a Linkage,
    pub contents: &'a [DeviceContents],
    /// Of the host packages.
    pub names: &'a [PackageNames],
}

impl Maker<'_> {
    /// The family of a portion without the vendor.
    pub fn short_name(&self, index: usize) -> &str {
        self.setting.names.short(&self.portions[index].family)
    }

    /// The host or support package of a portion.
    fn host(&self, index: usize) -> Result<Draft> {
        let (portion, contents) = (&self.portions[index], &self.contents[index]);
        let names = self.names[index].clone();
        let groups = contents.groups().map(|group| self.groups[group].display_name.as_str());
        let groups = groups.collect::<Vec<_>>().join(", ");
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
        let is_its_host = |(other, _): &(&Portion<'_>, &PackageNames)| {
            other.family == portion.family && other.part.role == PartRole::Host
        };
        let hosts = self.portions.iter().zip(self.names).filter(is_its_host);
        for (_, names) in hosts.filter(|(_, names)| **names != self.names[index]) {
            if portion.part.needs_host {
                links.insert(Link::exact(RelationKind::Depends, names));
            }
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

    /// What the headers of a family include: the development packages of the families whose
    /// libraries its own ones need. A package list says itself what depends on what.
    fn headers(&self, portion: &Portion<'_>) -> Vec<Link> {
        if !portion.part.is_devel() {
            return Vec::new();
        }
        let is_host = |other: &Portion<'_>| {
            other.family == portion.family && other.part.role == PartRole::Host
        };
        let hosts = self.portions.iter().enumerate().filter(|(_, other)| is_host(other));
        let needed = hosts.filter_map(|(index, _)| self.linkage.needs.get(&index)).flatten();
        let needed = needed.filter_map(|index| self.portions.get(*index));
        let families: BTreeSet<&str> = needed.map(|needed| needed.family.as_str()).collect();
        let others = self.portions.iter().zip(self.names).filter(|(other, _)| {
            other.part.is_devel()
                && other.family != portion.family
                && families.contains(other.family.as_str())
        });
        others.map(|(_, names)| Link::of_patch(RelationKind::Depends, names)).collect()
    }

    /// What transformed binaries need to find their kernels.
    fn runtime(&self, contents: &DeviceContents) -> Vec<(Format, Relation)> {
        let formats = self.setting.formats.iter().filter(|_| contents.archives.is_some());
        let relation = |format: &Format| Some((*format, self.setting.runtime(*format)?.clone()));
        formats.filter_map(relation).collect()
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

/// Adds the relations of the configuration; a package that does not exist is a typo. Gives what is
/// to be changed once everything is decided.
pub(super) fn add_configured<'a>(setting: &'a Setting, drafts: &mut [Draft]) -> Result<Edits<'a>> {
    let (mut faults, mut edits) = (Faults::default(), Edits::default());
    for PackageRelations { package, deb, rpm } in &setting.relations {
        let Some(index) = named(drafts, package) else {
            faults.add(no_such_package(&setting.config, ["relations", package], drafts));
            continue;
        };
        let Some(draft) = drafts.get_mut(index) else {
            continue;
        };
        for (format, change) in [(Format::Deb, deb), (Format::Rpm, rpm)] {
            if setting.formats.contains(&format) {
                let added = change.added.iter().map(|relation| (format, relation.clone()));
                draft.relations.extend(added);
                let literal = change.literal.iter().map(|relation| (format, relation.clone()));
                draft.literal.extend(literal);
                edits.add(&draft.names.deb, Edit { key: package, format, change });
            }
        }
    }
    faults.finish()?;
    Ok(edits)
}
