//! Assigns device code to the groups of GPUs that read it.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_archive::wheel::normalized;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::gfx::{self, BaseArch, Target};
use rockpack_core::tree::TreePath;
use rockpack_package::device_wheel::{ALL, EXTRA};
use rockpack_plan::config::Grouping;
use rockpack_plan::recombine::{Component, Group, fallback_of, wrapper_targets};
use rockpack_split::DatabaseFile;

pub(super) struct DeviceCode<'a> {
    groups: &'a [Group],
    /// The device wheels: one for each group, in their order, then those that several groups read.
    pub parts: Vec<DevicePart<'a>>,
    /// The targets that the wrappers have code for.
    wrappers: BTreeSet<BTreeSet<&'a Target>>,
}

/// The device wheel that code belongs to. It does not depend on the archs in the build: otherwise a file could move to
/// another wheel, and be in both while an older one stays installed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum PartKey {
    /// The wheel of a group, and of the arch family with its label.
    Group(usize),
    /// The wheel of another arch family, by its label.
    Family(String),
    /// The wheel of all other code that several groups read.
    Common,
}

#[derive(Default)]
pub(super) struct DevicePart<'a> {
    /// Its label in the names of wheels and extras.
    pub label: String,
    pub groups: Vec<String>,
    readers: BTreeSet<usize>,
    /// The index of its group, if it is a group's own wheel, with an extra.
    pub group: Option<usize>,
    pub archives: BTreeSet<BaseArch>,
    pub databases: Vec<&'a DatabaseFile>,
}

#[derive(Default)]
pub(super) struct Extra {
    pub name: String,
    pub members: BTreeSet<String>,
    pub requires: Vec<String>,
    /// Other host wheels that it requires with an extra, each with a marker or an empty text.
    pub chains: BTreeSet<[String; 2]>,
}

impl DevicePart<'_> {
    fn labelled(self, key: PartKey, groups: &[Group]) -> Self {
        let names = groups.iter().map(|group| &group.name).enumerate();
        let (label, group) = match key {
            PartKey::Group(number) => (groups.get(number).map(label), Some(number)),
            PartKey::Family(label) => (Some(label), None),
            PartKey::Common => (Some("common".to_owned()), None),
        };
        let names = names.filter(|(number, _)| self.readers.contains(number));
        let groups = names.map(|(_, name)| name.clone()).collect();
        Self { label: label.unwrap_or_default(), groups, group, ..self }
    }

    /// The archs that it is for, sorted.
    pub fn archs(&self) -> Vec<String> {
        let archs: BTreeSet<&BaseArch> = self.all_archs().collect();
        archs.into_iter().map(ToString::to_string).collect()
    }

    fn all_archs(&self) -> impl Iterator<Item = &BaseArch> {
        self.archives.iter().chain(self.databases.iter().flat_map(|file| &file.archs))
    }
}

impl<'a> DeviceCode<'a> {
    pub fn of(component: &'a Component, groups: &'a [Group]) -> Result<Self> {
        let archs = component.kernels.iter().map(|kernel| kernel.target.base());
        let found: BTreeSet<&BaseArch> =
            archs.chain(component.databases.iter().flat_map(|file| &file.archs)).collect();
        groups.iter().try_for_each(|group| refuse_ambiguous(group, &found))?;
        let group_of: BTreeMap<&BaseArch, usize> = groups
            .iter()
            .enumerate()
            .flat_map(|(number, group)| group.archs.iter().map(move |arch| (arch, number)))
            .collect();
        let mut parts: BTreeMap<PartKey, DevicePart<'_>> = BTreeMap::new();
        for kernel in &component.kernels {
            let arch = kernel.target.base();
            let group = *group_of.get(arch).ok_or_else(|| ungrouped(arch.as_str()))?;
            let part = parts.entry(PartKey::Group(group)).or_default();
            part.readers.insert(group);
            part.archives.insert(arch.clone());
        }
        for file in &component.databases {
            let readers: BTreeSet<usize> =
                file.archs.iter().filter_map(|arch| group_of.get(arch).copied()).collect();
            let key = key(file, &readers, groups).ok_or_else(|| ungrouped(file.path.as_str()))?;
            let part = parts.entry(key).or_default();
            part.readers.extend(readers);
            part.databases.push(file);
        }
        let parts = parts.into_iter().map(|(key, part)| part.labelled(key, groups)).collect();
        let wrappers = wrapper_targets(&component.kernels).into_values().collect();
        Ok(Self { groups, parts, wrappers })
    }

    /// The extras of the host wheel, if its parts are distributions with these names.
    pub fn extras(&self, distributions: &[String]) -> Vec<Extra> {
        let groups = self.groups.iter();
        let groups = groups.map(|group| (extra(&group.name), group.archs.clone()));
        // Each arch with its variants, by the name of its extra, which no group has.
        let mut of_archs: BTreeMap<String, Vec<BaseArch>> = BTreeMap::new();
        for arch in self.groups.iter().flat_map(|group| &group.archs) {
            of_archs.entry(arch_extra(arch)).or_default().push(arch.clone());
        }
        of_archs.retain(|name, _| !self.groups.iter().any(|group| extra(&group.name) == *name));
        let all = groups.chain(of_archs).map(|(name, archs)| {
            let parts = self.needed_by(&archs).into_iter();
            let requires = parts.filter_map(|part| distributions.get(part).cloned()).collect();
            let members = archs.iter().map(arch_extra).collect();
            Extra { name, members, requires, ..Extra::default() }
        });
        let mut extras: Vec<Extra> = all.filter(|extra| !extra.requires.is_empty()).collect();
        let (name, requires) = (ALL.to_owned(), distributions.to_vec());
        extras.push(Extra { name, requires, ..Extra::default() });
        extras
    }

    /// The parts with the code that devices of `archs` run, including that of their variants, of generic targets and of
    /// SPIR-V. If the wheel of a group is needed, all parts that the group reads are.
    fn needed_by(&self, archs: &[BaseArch]) -> BTreeSet<usize> {
        let others = |arch| self.wrappers.iter().filter_map(move |it| fallback_of(arch, it));
        let grouped = self.groups.iter().flat_map(|group| &group.archs);
        let variants =
            grouped.filter(|arch| gfx::plain(arch).is_some_and(|plain| archs.contains(&plain)));
        let run = archs.iter().chain(archs.iter().flat_map(others)).chain(variants);
        let run: BTreeSet<&BaseArch> = run.collect();
        let is_run = |part: &DevicePart<'_>| part.all_archs().any(|arch| run.contains(arch));
        let run_parts = self.parts.iter().filter(|part| is_run(part));
        let groups: BTreeSet<usize> = run_parts.filter_map(|part| part.group).collect();
        let is_needed = |part: &DevicePart<'_>| is_run(part) || !part.readers.is_disjoint(&groups);
        let needed = self.parts.iter().enumerate().filter(|(_, part)| is_needed(part));
        needed.map(|(number, _)| number).collect()
    }
}

fn extra(group: &str) -> String {
    format!("{EXTRA}{}", normalized(group))
}

/// The name of the extra of an arch. A qualified arch has that of the plain one.
fn arch_extra(arch: &BaseArch) -> String {
    extra(gfx::plain(arch).as_ref().unwrap_or(arch).as_str())
}

/// Refuses a group whose extra is that of all device wheels, or whose name is an arch or arch family that does not
/// include all of its archs with code.
fn refuse_ambiguous(group: &Group, found: &BTreeSet<&BaseArch>) -> Result<()> {
    let (own, named) = (extra(&group.name), gfx::archs_of_label(&label(group)));
    let is_named = |arch: &BaseArch| named.contains(arch);
    let fits = |arch| is_named(arch) || gfx::plain(arch).as_ref().is_some_and(is_named);
    let mut archs = group.archs.iter().filter(|arch| found.contains(arch));
    if own != ALL && (named.is_empty() || archs.all(fits)) {
        return Ok(());
    }
    let message = format!("the extra of the group {} would be {own}", group.name);
    let hint =
        "that is for all device wheels, or for other archs than the group has: name it otherwise";
    Err(Error::new(Kind::Conflict, message).hint(hint))
}

fn ungrouped(what: &str) -> Error {
    Error::bug("device code is in no group").structure(what)
}

fn label(group: &Group) -> String {
    normalized(&group.name)
}

/// The part of a database file that `readers` read; `None` without readers.
fn key(file: &DatabaseFile, readers: &BTreeSet<usize>, groups: &[Group]) -> Option<PartKey> {
    let first = *readers.first()?;
    let family = file.for_arch_family.then(|| family(&file.path)).flatten();
    Some(match family {
        Some(family) => groups
            .iter()
            .map(label)
            .position(|own| gfx::arch_family_label(&own).unwrap_or(own) == family)
            .map_or(PartKey::Family(family), PartKey::Group),
        None if readers.len() > 1 => PartKey::Common,
        None => PartKey::Group(first),
    })
}

/// The label of the arch family in whose folder a file is: `gfx11` of `aotriton.images/amd-gfx11xx/…`.
fn family(path: &TreePath) -> Option<String> {
    let mut names = path.components().rev().skip(1).filter_map(|part| {
        let name = part.get(part.find("gfx")?..)?;
        let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
        name.get(..end)
    });
    names.find_map(gfx::arch_family_label)
}

/// The groups of a wheel: those of the configuration; without any, each arch is a group, along with its
/// qualified variants (`gfx1250` with `gfx1250-strict`).
pub(super) fn groups(found: &[Group], configured: &Grouping) -> Vec<Group> {
    if !configured.groups.is_empty() {
        return found.to_vec();
    }
    let mut groups: Vec<Group> = Vec::new();
    for group in found {
        let plain = group.archs.first().and_then(gfx::plain);
        let name = plain.map_or(group.name.clone(), |arch| arch.to_string());
        match groups.iter_mut().find(|known| known.name == name) {
            Some(known) => known.archs.extend(group.archs.iter().cloned()),
            None => groups.push(Group { name, ..group.clone() }),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_named_by_their_folders() {
        assert_eq!(
            family_of("torch/lib/aotriton.images/amd-gfx11xx/flash/a.aks2"),
            Some("gfx11".into())
        );
        assert_eq!(family_of("torch/lib/aotriton.images/amd-gfx120X/a"), Some("gfx12-0".into()));
        let path = "_libraries_gfx110X_all/lib/aotriton.images/amd-gfx11xx/flash/a.aks2";
        assert_eq!(family_of(path), Some("gfx11".into()));
        assert_eq!(family_of("torch/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco"), None);
    }

    #[test]
    fn an_extra_of_a_group_is_of_no_other_arch() {
        for (name, archs, expected) in [
            ("gfx110X", "gfx1100 gfx1103", true),
            ("gfx110X", "gfx1100 gfx1150", false),
            ("gfx11", "gfx1100 gfx1150", true),
            ("gfx11xx", "gfx1100 gfx942", false),
            ("gfx12_0", "gfx1200", true),
            ("gfx110X", "gfx1100 gfx11-generic", false),
            // It has no code for the last.
            ("gfx80X", "gfx803 gfx810", true),
            ("gfx1100", "gfx1100", true),
            ("gfx1100", "gfx1100 gfx1101", false),
            ("GFX-1100", "gfx1101", true),
            ("Gfx1100", "gfx1101", false),
            ("gfx1250", "gfx1250 gfx1250-strict", true),
            ("gfx1250", "gfx942", false),
            ("rdna", "gfx1100 gfx11-generic amdgcnspirv", true),
            ("ALL", "gfx1100", false),
        ] {
            let archs = archs.split(' ').map(|arch| arch.parse().unwrap()).collect();
            let (name, display_name) = (name.to_owned(), name.to_owned());
            let group = Group { name, display_name, archs };
            let found = group.archs.iter().filter(|arch| arch.as_str() != "gfx810").collect();
            assert_eq!(refuse_ambiguous(&group, &found).is_ok(), expected, "{group:?}");
        }
    }

    fn family_of(path: &str) -> Option<String> {
        family(&TreePath::new(path).unwrap())
    }

    #[test]
    fn what_is_qualified_belongs_to_its_arch() {
        let found = ["gfx1100", "gfx11-generic", "gfx1250", "gfx1250-strict"].map(|name| Group {
            name: name.to_owned(),
            display_name: name.to_owned(),
            archs: vec![name.parse().unwrap()],
        });
        let made = groups(&found, &Grouping::default());
        let names: Vec<(&str, usize)> =
            made.iter().map(|group| (group.name.as_str(), group.archs.len())).collect();
        assert_eq!(names, [("gfx1100", 1), ("gfx11-generic", 1), ("gfx1250", 2)]);
    }
}
