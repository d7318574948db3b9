//! Makes packages of device code: one per group, and one per set of groups that share content.

use std::collections::BTreeSet;

use minijinja::context;
use rockpack_core::error::Result;

use super::device::{DeviceFiles, Served};
use super::draft::Draft;
use super::maker::Maker;
use crate::links::Link;
use crate::naming::PackageNames;
use crate::texts::Description;
use rockpack_package::{RelationKind, Role};

impl Maker<'_> {
    /// The package of a portion's device code for one group.
    pub fn kernels(&self, index: usize, group: usize) -> Result<Draft> {
        let names = self.kernel_names(index, group)?;
        let archs = self.archs(index, &Served::from([group]));
        let of_group = &self.groups[group];
        let values = context! {
            name => self.short_name(index),
            host => &self.names[index].deb,
            group => &of_group.name,
            display_name => &of_group.display_name,
            archs => archs.join(", "),
        };
        let description = self.setting.texts.description("kernels", &names.deb, values)?;
        let role = Role::Kernels { group: of_group.name.clone(), archs };
        let mut draft = self.device(index, &Served::from([group]), names, role, description);
        draft.links = self.kernel_links(index, group)?;
        draft.fallback_for = self.dependents(index, group);
        Ok(draft)
    }

    /// The package of a portion's device code for several groups at once.
    pub fn common(&self, index: usize, served: &Served) -> Result<Draft> {
        let names = self.common_names(index, served)?;
        let archs = self.archs(index, served);
        let chosen = served.iter().map(|group| &self.groups[*group]);
        let shown: Vec<&str> = chosen.clone().map(|group| group.display_name.as_str()).collect();
        let values = context! {
            name => self.short_name(index),
            groups => shown.join(", "),
            archs => archs.join(", "),
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
        served: &Served,
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
    fn archs(&self, index: usize, served: &Served) -> Vec<String> {
        let package: Option<&DeviceFiles> = self.contents[index].packages.get(served);
        let archs = served.iter().flat_map(|group| &self.groups[*group].archs);
        let own = archs.filter(|arch| package.is_some_and(|it| it.archs.contains(*arch)));
        own.map(ToString::to_string).collect()
    }

    fn host_of_kernels(&self, index: usize) -> [Link; 2] {
        let host = &self.names[index];
        let link = if self.setting.ties_by_code() { Link::of_patch } else { Link::exact };
        [link(RelationKind::Depends, host), Link::any(RelationKind::Enhances, host)]
    }

    fn kernel_links(&self, index: usize, group: usize) -> Result<BTreeSet<Link>> {
        let mut links = BTreeSet::from(self.host_of_kernels(index));
        let provided = self.setting.names.kernels_any(&self.portions[index].stem)?;
        links.insert(Link::exact(RelationKind::Provides, &provided));
        for served in self.contents[index].shared().filter(|served| served.contains(&group)) {
            let common = self.common_names(index, served)?;
            links.insert(Link::exact(RelationKind::Depends, &common));
        }
        for fallback in self.fallbacks(index, group) {
            let names = self.kernel_names(index, *fallback)?;
            links.insert(Link::exact(RelationKind::Depends, &names));
        }
        for other in self.linkage.nearest(index, |other| self.serves(other, group)) {
            let is_own = self.portions[other].family == self.portions[index].family;
            let link = if is_own { Link::exact } else { Link::of_patch };
            for names in self.serving(other, group)? {
                links.insert(link(RelationKind::Depends, &names));
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

    /// The kernel packages of a portion that bring its code for `group`.
    fn serving(&self, index: usize, group: usize) -> Result<Vec<PackageNames>> {
        if self.contents[index].has_group(group) {
            return Ok(vec![self.kernel_names(index, group)?]);
        }
        self.fallbacks(index, group).map(|other| self.kernel_names(index, *other)).collect()
    }

    /// The names of the groups that need a portion's code of `group` because it is for a generic target or
    /// SPIR-V.
    fn dependents(&self, index: usize, group: usize) -> BTreeSet<String> {
        let needing = self.fallbacks[index].iter().filter(|(_, others)| others.contains(&group));
        needing.map(|(number, _)| self.groups[*number].name.clone()).collect()
    }
}
