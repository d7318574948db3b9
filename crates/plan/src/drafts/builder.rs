//! Makes the packages of all portions: host and support packages with their files and dependencies, and
//! packages of device code, one per group and one per set of groups that share content.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use minijinja::context;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::tree::{Node, TreePath};

use super::LinkVersions::{Any, Before, Exact, SamePatch};
use super::device::{DeviceContents, DeviceFiles, GroupIndexes};
use super::{Draft, Link, TextOverrides, base_archs};
use crate::config::PartRole;
use crate::contents::{Portion, PortionNode};
use crate::layout::file_mode;
use crate::libraries::Linkage;
use crate::naming::PackageNames;
use crate::outcome::FileSource;
use crate::recombine::Group;
use crate::settings::PlanSettings;
use crate::shim;
use crate::texts::{Description, gpu_names};
use rockpack_package::{RelationKind, Role};
use rockpack_report::words::list;
use rockpack_split::HostKind;

/// Makes the packages of a set of portions, which are known by index.
pub(super) struct DraftBuilder<'a> {
    pub setting: &'a PlanSettings,
    pub groups: &'a [Group],
    pub portions: &'a [Portion<'a>],
    pub families: &'a HashMap<&'a str, Vec<usize>>,
    pub linkage: &'a Linkage,
    pub contents: &'a [DeviceContents],
    /// The groups that need a portion's code of other groups, by portion; see
    /// [`fallback_groups`](crate::recombine::fallback_groups).
    pub fallbacks: &'a [BTreeMap<usize, BTreeSet<usize>>],
    pub names: &'a [PackageNames],
}

impl DraftBuilder<'_> {
    pub fn short_name(&self, index: usize) -> &str {
        self.setting.names.without_vendor(&self.portions[index].family)
    }

    pub fn kernel_names(&self, index: usize, group: usize) -> Result<PackageNames> {
        self.setting.names.kernels(&self.portions[index].stem, &self.groups[group].name)
    }

    /// The names of the package of shared kernels. They include the groups only if there are several such packages.
    pub fn common_names(&self, index: usize, served: &GroupIndexes) -> Result<PackageNames> {
        let several = self.contents[index].shared().count() > 1;
        let named = served.iter().filter(|_| several);
        let groups: Vec<&str> = named.map(|group| self.groups[*group].name.as_str()).collect();
        self.setting.names.kernels_common(&self.portions[index].stem, &groups)
    }

    pub fn host(&self, index: usize) -> Result<Draft> {
        let (portion, contents) = (&self.portions[index], &self.contents[index]);
        let names = self.names[index].clone();
        let groups = contents.groups().map(|group| &self.groups[group].display_name);
        let values = context! {
            name => self.short_name(index),
            part => &portion.part.name,
            groups => list(groups),
        };
        let texts = &self.setting.texts;
        let is_shim = portion.artifacts.iter().all(|artifact| self.setting.is_shim(artifact));
        let template = if is_shim { "shim" } else { portion.part.template.as_str() };
        let description = texts.description(template, &names.deb, values)?;
        let [license, copyright] =
            [shim::LICENCE, shim::HOLDERS].map(|text| is_shim.then(|| text.to_owned()));
        let role = match portion.part.role {
            PartRole::Host => Role::Host,
            PartRole::Support => Role::Support,
        };
        // Binaries depend on the runtime that loads their kernels.
        let formats = self.setting.formats.iter().filter(|_| contents.needs_runtime);
        let relations =
            formats.filter_map(|format| Some((*format, self.setting.runtime(*format)?.clone())));
        Ok(Draft {
            native: self.linkage.native.contains(&index) || portion.has_device_code(),
            links: self.host_links(index)?,
            relations: relations.collect(),
            discovered: self.linkage.discovered.get(&index).cloned().unwrap_or_default(),
            files: self.host_files(index)?,
            text_overrides: TextOverrides { license, copyright, ..TextOverrides::default() },
            ..Draft::of(portion, names, role, description)
        })
    }

    fn host_links(&self, index: usize) -> Result<BTreeSet<Link>> {
        let portion = &self.portions[index];
        let mut links = BTreeSet::new();
        for needed in self.linkage.needs.get(&index).into_iter().flatten() {
            let is_own = self.portions[*needed].family == portion.family;
            let versions = if is_own { Exact } else { SamePatch };
            links.insert(versions.link(RelationKind::Depends, &self.names[*needed]));
        }
        if portion.part.needs_host {
            let names = self.hosts_of(portion).map(|host| &self.names[host]);
            let others = names.filter(|names| **names != self.names[index]);
            links.extend(others.map(|names| Exact.link(RelationKind::Depends, names)));
        }
        links.extend(self.headers(portion));
        for group in self.contents[index].groups() {
            let kernels = self.kernel_names(index, group)?;
            links.insert(Any.link(RelationKind::Suggests, &kernels));
            if self.setting.ties_by_code() {
                links.insert(Before.link(RelationKind::Breaks, &kernels));
            }
        }
        for served in self.contents[index].shared().filter(|_| self.setting.ties_by_code()) {
            let common = self.common_names(index, served)?;
            links.insert(Before.link(RelationKind::Breaks, &common));
        }
        Ok(links)
    }

    /// Links to the development packages whose headers a family includes: those of the families whose libraries it
    /// needs. A package list gives dependencies itself.
    fn headers(&self, portion: &Portion<'_>) -> Vec<Link> {
        if !portion.part.is_devel() {
            return Vec::new();
        }
        let needs = self.hosts_of(portion).filter_map(|host| self.linkage.needs.get(&host));
        let needed = needs.flatten().filter_map(|index| self.portions.get(*index));
        let families: BTreeSet<&str> = needed.map(|needed| needed.family.as_str()).collect();
        let others = families.into_iter().filter(|family| **family != portion.family);
        let others = others.flat_map(|family| self.of_family(family));
        let devel = others.filter(|other| self.portions[*other].part.is_devel());
        devel.map(|other| SamePatch.link(RelationKind::Depends, &self.names[other])).collect()
    }

    fn hosts_of(&self, portion: &Portion<'_>) -> impl Iterator<Item = usize> {
        let all = self.of_family(&portion.family);
        all.filter(|index| self.portions[*index].part.role == PartRole::Host)
    }

    fn of_family(&self, family: &str) -> impl Iterator<Item = usize> {
        self.families.get(family).into_iter().flatten().copied()
    }

    fn host_files(&self, index: usize) -> Result<BTreeMap<TreePath, Node<FileSource>>> {
        let archives = self.contents[index].archives.as_ref().map(|set| set.name.clone());
        let names = self.names[index].deb.clone();
        let inside = self.portions[index].files.iter();
        let planned = |path, owned| planned(path, owned, archives.as_deref());
        let mut files: BTreeMap<TreePath, _> =
            inside.map(|(path, owned)| ((*path).clone(), planned(path, owned))).collect();
        if let Some(archives) = archives {
            let path = self.setting.config.folders.kernels.join(&format!("{archives}.kpm"))?;
            if files.contains_key(&path) {
                let message =
                    format!("{path} is in the input, but rockpack makes it for the package");
                let hint = "remove it from the artifact: it is the package's own manifest";
                return Err(Error::new(Kind::Conflict, message).structure(names).hint(hint));
            }
            let data = FileSource::Manifest { archives };
            files.insert(path, Node::File { data, mode: file_mode(0) });
        }
        Ok(files)
    }

    pub fn kernels(&self, index: usize, group: usize) -> Result<Draft> {
        let names = self.kernel_names(index, group)?;
        let archs = self.archs(index, &GroupIndexes::from([group]));
        let of_group = &self.groups[group];
        let values = context! {
            name => self.short_name(index),
            host => &self.names[index].deb,
            group => &of_group.name,
            display_name => &of_group.display_name,
            archs => list(&archs),
            products => gpu_names(&base_archs(&archs)),
        };
        let description = self.setting.texts.description("kernels", &names.deb, values)?;
        let role = Role::Kernels { group: of_group.name.clone(), archs };
        let mut draft = self.device(index, &GroupIndexes::from([group]), names, role, description);
        draft.links = self.kernel_links(index, group)?;
        let needing = self.fallbacks[index].iter().filter(|(_, others)| others.contains(&group));
        draft.fallback_for = needing.map(|(number, _)| self.groups[*number].name.clone()).collect();
        Ok(draft)
    }

    pub fn common(&self, index: usize, served: &GroupIndexes) -> Result<Draft> {
        let names = self.common_names(index, served)?;
        let archs = self.archs(index, served);
        let chosen = served.iter().map(|group| &self.groups[*group]);
        let values = context! {
            name => self.short_name(index),
            groups => list(chosen.clone().map(|group| &group.display_name)),
            archs => list(&archs),
        };
        let description = self.setting.texts.description("common", &names.deb, values)?;
        let groups = chosen.map(|group| group.name.clone()).collect();
        let role = Role::KernelsCommon { groups, archs };
        let mut draft = self.device(index, served, names, role, description);
        draft.links = self.host_of_kernels(index).into();
        Ok(draft)
    }

    fn device(
        &self,
        index: usize,
        served: &GroupIndexes,
        names: PackageNames,
        role: Role,
        description: Description,
    ) -> Draft {
        let files = self.contents[index].packages.get(served).map(|package| package.files.clone());
        Draft {
            files: files.unwrap_or_default(),
            documents_of: Some(self.names[index].clone()),
            ..Draft::of(&self.portions[index], names, role, description)
        }
    }

    /// The archs with content, in the order of the groups.
    fn archs(&self, index: usize, served: &GroupIndexes) -> Vec<String> {
        let package: Option<&DeviceFiles> = self.contents[index].packages.get(served);
        let archs = served.iter().flat_map(|group| &self.groups[*group].archs);
        let own = archs.filter(|arch| package.is_some_and(|it| it.archs.contains(*arch)));
        own.map(ToString::to_string).collect()
    }

    fn host_of_kernels(&self, index: usize) -> [Link; 2] {
        let host = &self.names[index];
        let versions = if self.setting.ties_by_code() { SamePatch } else { Exact };
        [versions.link(RelationKind::Depends, host), Any.link(RelationKind::Enhances, host)]
    }

    fn kernel_links(&self, index: usize, group: usize) -> Result<BTreeSet<Link>> {
        let mut links = BTreeSet::from(self.host_of_kernels(index));
        let names = &self.setting.names;
        let any = &names.scheme.names.kernels_any;
        let provided = names.of_stem(any, &self.portions[index].stem)?;
        links.insert(Exact.link(RelationKind::Provides, &provided));
        for served in self.contents[index].shared().filter(|served| served.contains(&group)) {
            let common = self.common_names(index, served)?;
            links.insert(Exact.link(RelationKind::Depends, &common));
        }
        for fallback in self.fallbacks(index, group) {
            let names = self.kernel_names(index, *fallback)?;
            links.insert(Exact.link(RelationKind::Depends, &names));
        }
        for other in self.linkage.nearest(index, |other| self.serves(other, group)) {
            let is_own = self.portions[other].family == self.portions[index].family;
            let versions = if is_own { Exact } else { SamePatch };
            for names in self.serving(other, group)? {
                links.insert(versions.link(RelationKind::Depends, &names));
            }
        }
        Ok(links)
    }

    /// The groups of generic targets and SPIR-V whose code of a portion `group` needs.
    fn fallbacks(&self, index: usize, group: usize) -> impl Iterator<Item = &usize> {
        self.fallbacks[index].get(&group).into_iter().flatten()
    }

    /// Whether a portion has code that devices of `group` load.
    fn serves(&self, index: usize, group: usize) -> bool {
        self.contents[index].has_group(group) || self.fallbacks(index, group).next().is_some()
    }

    fn serving(&self, index: usize, group: usize) -> Result<Vec<PackageNames>> {
        if self.contents[index].has_group(group) {
            return Ok(vec![self.kernel_names(index, group)?]);
        }
        self.fallbacks(index, group).map(|other| self.kernel_names(index, *other)).collect()
    }
}

fn planned(path: &TreePath, owned: &PortionNode<'_>, archives: Option<&str>) -> Node<FileSource> {
    match owned.node {
        Node::Directory { .. } => Node::Directory { mode: file_mode(0o111) },
        Node::Link { target } => Node::Link { target: target.clone() },
        Node::File { data, mode } => {
            let (component, path) = (Arc::clone(&owned.component.id), path.clone());
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
