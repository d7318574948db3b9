//! Assigns device code to the groups of GPUs that read it.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_base::error::{Error, Kind, Result};
use rockpack_base::formats::wheel::normalized;
use rockpack_base::gfx::{self, BaseArch};
use rockpack_base::tree::TreePath;

use crate::package::device_wheel::{ALL, EXTRA};
use crate::recombine::{Component, Group, fallback_groups};
use crate::split::DatabaseFile;

/// The label of files that several groups read and that belong to no arch family.
const COMMON: &str = "common";

/// The device code of a wheel.
pub(super) struct DeviceCode<'a> {
    groups: &'a [Group],
    /// The device wheels: one for each group, in their order, then those that several groups read.
    pub parts: Vec<DevicePart<'a>>,
    /// Group → other groups, generic targets and SPIR-V, whose code it needs as well.
    also: BTreeMap<usize, BTreeSet<usize>>,
}

/// The device wheel that code belongs to. It does not depend on the archs in the build: a file that moved
/// between wheels would be in both if one of them stays installed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum PartKey {
    /// The wheel of a group.
    Group(usize),
    /// The wheel of an arch family, by its label.
    Family(String),
    /// The wheel of all other code that several groups read.
    Common,
}

/// The code of one device wheel.
pub(super) struct DevicePart<'a> {
    /// The word for it in the names of wheels and extras.
    pub label: String,
    /// The names of the groups that read it.
    pub groups: Vec<String>,
    /// The numbers of those groups.
    readers: BTreeSet<usize>,
    /// The archs of its kernel archives.
    pub archives: BTreeSet<BaseArch>,
    pub databases: Vec<&'a DatabaseFile>,
}

/// An extra of the host wheel.
pub(super) struct Extra {
    pub name: String,
    /// The distributions that it requires.
    pub requires: Vec<String>,
}

impl DevicePart<'_> {
    /// Whether it is the wheel of a group, which has an extra for it.
    pub fn is_of_one_group(&self) -> bool {
        matches!(self.groups.as_slice(), [group] if normalized(group) == self.label)
    }

    /// The archs that it is for, sorted.
    pub fn archs(&self) -> Vec<BaseArch> {
        let databases = self.databases.iter().flat_map(|file| &file.archs);
        let archs: BTreeSet<&BaseArch> = self.archives.iter().chain(databases).collect();
        archs.into_iter().cloned().collect()
    }
}

impl<'a> DeviceCode<'a> {
    /// The device code of `component`, by `groups`.
    pub fn of(component: &'a Component, groups: &'a [Group]) -> Result<Self> {
        if let Some(group) = groups.iter().find(|group| extra(group) == ALL) {
            let message = format!("the extra of the group {} would be {ALL}", group.name);
            let hint = "that is the extra of all device wheels: name the group otherwise";
            return Err(Error::new(Kind::Conflict, message).hint(hint));
        }
        let group_of: BTreeMap<&BaseArch, usize> = groups
            .iter()
            .enumerate()
            .flat_map(|(number, group)| group.archs.iter().map(move |arch| (arch, number)))
            .collect();
        let mut parts = Parts { groups, made: BTreeMap::new() };
        for kernel in &component.kernels {
            let arch = kernel.target.base();
            let group = *group_of.get(arch).ok_or_else(|| ungrouped(arch.as_str()))?;
            let part = parts.part(PartKey::Group(group), &[group].into());
            part.archives.insert(arch.clone());
        }
        for file in &component.databases {
            let readers: BTreeSet<usize> =
                file.archs.iter().filter_map(|arch| group_of.get(arch).copied()).collect();
            let key = parts.key(file, &readers).ok_or_else(|| ungrouped(file.path.as_str()))?;
            parts.part(key, &readers).databases.push(file);
        }
        let made = parts.made.into_values().collect();
        Ok(Self { groups, parts: made, also: fallback_groups(&component.kernels, groups) })
    }

    /// The extras of the host wheel, if its parts are distributions with these names.
    pub fn extras(&self, distributions: &[String]) -> Vec<Extra> {
        let mut extras = Vec::new();
        for (number, group) in self.groups.iter().enumerate() {
            let none = BTreeSet::new();
            let also = self.also.get(&number).unwrap_or(&none);
            let own = self.parts.iter().zip(distributions).filter(|(part, _)| {
                part.readers.contains(&number)
                    || part.readers.iter().any(|reader| also.contains(reader))
            });
            let requires: Vec<String> = own.map(|(_, name)| name.clone()).collect();
            if !requires.is_empty() {
                extras.push(Extra { name: extra(group), requires });
            }
        }
        extras.push(Extra { name: ALL.to_owned(), requires: distributions.to_vec() });
        extras
    }
}

/// The name of the extra of a group.
fn extra(group: &Group) -> String {
    format!("{EXTRA}{}", normalized(&group.name))
}

fn ungrouped(what: &str) -> Error {
    Error::bug("device code is in no group").structure(what)
}

/// The parts under construction.
struct Parts<'a> {
    groups: &'a [Group],
    made: BTreeMap<PartKey, DevicePart<'a>>,
}

impl<'a> Parts<'a> {
    /// The part of `key`, with `readers` added to the groups that read it.
    fn part(&mut self, key: PartKey, readers: &BTreeSet<usize>) -> &mut DevicePart<'a> {
        let label = match &key {
            PartKey::Group(number) => self.label(*number),
            PartKey::Family(label) => label.clone(),
            PartKey::Common => COMMON.to_owned(),
        };
        let part = self.made.entry(key).or_insert_with(|| DevicePart {
            label,
            groups: Vec::new(),
            readers: BTreeSet::new(),
            archives: BTreeSet::new(),
            databases: Vec::new(),
        });
        part.readers.extend(readers);
        let named = part.readers.iter().filter_map(|number| self.groups.get(*number));
        part.groups = named.map(|group| group.name.clone()).collect();
        part
    }

    fn label(&self, number: usize) -> String {
        self.groups.get(number).map(|group| normalized(&group.name)).unwrap_or_default()
    }

    /// The part of a database file that `readers` read; `None` without readers.
    fn key(&self, file: &DatabaseFile, readers: &BTreeSet<usize>) -> Option<PartKey> {
        let first = *readers.first()?;
        let family = file.for_arch_family.then(|| family(&file.path)).flatten();
        Some(match family {
            Some(label) if readers.len() > 1 || self.label(first) != label => {
                PartKey::Family(label)
            }
            _ if readers.len() > 1 => PartKey::Common,
            _ => PartKey::Group(first),
        })
    }
}

/// The name of the arch family in a path, in lower case: `gfx11xx` of `aotriton.images/amd-gfx11xx/…`.
fn family(path: &TreePath) -> Option<String> {
    let names = path.components().filter_map(|part| {
        let name = part.get(part.find("gfx")?..)?;
        let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
        name.get(..end)
    });
    let mut families = names.filter(|name| !gfx::members_of_arch_family(name).is_empty());
    families.next().map(str::to_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_named_by_their_folders() {
        assert_eq!(
            family_of("torch/lib/aotriton.images/amd-gfx11xx/flash/a.aks2"),
            Some("gfx11xx".into())
        );
        assert_eq!(family_of("torch/lib/aotriton.images/amd-gfx120X/a"), Some("gfx120x".into()));
        assert_eq!(family_of("torch/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco"), None);
    }

    fn family_of(path: &str) -> Option<String> {
        family(&TreePath::new(path).unwrap())
    }
}
