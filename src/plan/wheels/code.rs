//! Device code by the groups of GPUs that read it.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_base::content::hex;
use rockpack_base::error::{Error, Kind, Result};
use rockpack_base::formats::wheel::normalized;
use rockpack_base::gfx::{self, BaseArch};
use rockpack_base::tree::TreePath;
use sha2::{Digest as _, Sha256};

use crate::recombine::{Component, Group};
use crate::split::DatabaseFile;

/// What the extra of all device wheels has in place of a group.
const ALL: &str = "all";

/// Longest label that is made of those of several groups.
const LABEL_MAX: usize = 60;

/// The device code of a wheel.
pub(super) struct DeviceCode<'a> {
    groups: &'a [Group],
    /// The device wheels: one for each group, in their order, then those that several groups read.
    pub parts: Vec<DevicePart<'a>>,
    /// Group → other groups, generic targets and SPIR-V, whose code it needs as well.
    also: BTreeMap<usize, BTreeSet<usize>>,
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
        if let Some(group) = groups.iter().find(|group| normalized(&group.name) == ALL) {
            let message = format!("the extra of the group {} would be device-{ALL}", group.name);
            let hint = "that is the extra of all device wheels: name the group otherwise";
            return Err(Error::new(Kind::Conflict, message).hint(hint));
        }
        let group_of: BTreeMap<&BaseArch, usize> = groups
            .iter()
            .enumerate()
            .flat_map(|(number, group)| group.archs.iter().map(move |arch| (arch, number)))
            .collect();
        let mut parts: BTreeMap<BTreeSet<usize>, DevicePart<'a>> = BTreeMap::new();
        for kernel in &component.kernels {
            let arch = kernel.target.base();
            let group = group_of.get(arch).ok_or_else(|| ungrouped(arch.as_str()))?;
            let part = part(&mut parts, [*group].into(), groups)?;
            part.archives.insert(arch.clone());
        }
        for file in &component.databases {
            let readers: BTreeSet<usize> =
                file.archs.iter().filter_map(|arch| group_of.get(arch).copied()).collect();
            if readers.is_empty() {
                return Err(ungrouped(file.path.as_str()));
            }
            part(&mut parts, readers, groups)?.databases.push(file);
        }
        let mut parts: Vec<DevicePart<'a>> = parts.into_values().collect();
        // Those of one group first, in the order of groups.
        parts.sort_by(|one, other| {
            (one.readers.len() > 1, &one.readers).cmp(&(other.readers.len() > 1, &other.readers))
        });
        Ok(Self { groups, parts, also: also(component, &group_of) })
    }

    /// The extras of the host wheel, where its parts are distributions of these names.
    pub fn extras(&self, distributions: &[String]) -> Vec<Extra> {
        let mut extras = Vec::new();
        for (number, group) in self.groups.iter().enumerate() {
            let none = BTreeSet::new();
            let also = self.also.get(&number).unwrap_or(&none);
            let reads = |part: &DevicePart<'_>| {
                part.readers.contains(&number)
                    || part.readers.iter().any(|reader| also.contains(reader))
            };
            let own = self.parts.iter().zip(distributions);
            let requires: Vec<String> =
                own.filter(|(part, _)| reads(part)).map(|(_, name)| name.clone()).collect();
            if !requires.is_empty() {
                let name = format!("device-{}", normalized(&group.name));
                extras.push(Extra { name, requires });
            }
        }
        extras.push(Extra { name: format!("device-{ALL}"), requires: distributions.to_vec() });
        extras
    }
}

fn ungrouped(what: &str) -> Error {
    Error::bug("device code is in no group").structure(what)
}

/// The part that `readers` read.
fn part<'a, 'p>(
    parts: &'p mut BTreeMap<BTreeSet<usize>, DevicePart<'a>>,
    readers: BTreeSet<usize>,
    groups: &[Group],
) -> Result<&'p mut DevicePart<'a>> {
    let named = readers.iter().filter_map(|number| groups.get(*number));
    let named: Vec<String> = named.map(|group| group.name.clone()).collect();
    let part = parts.entry(readers.clone()).or_insert_with(|| DevicePart {
        label: label(&named),
        groups: named,
        readers,
        archives: BTreeSet::new(),
        databases: Vec::new(),
    });
    Ok(part)
}

/// The label of what these groups read.
fn label(groups: &[String]) -> String {
    let labels: Vec<String> = groups.iter().map(|group| normalized(group)).collect();
    let joined = labels.join("-");
    if labels.len() == 1 || joined.len() <= LABEL_MAX {
        return joined;
    }
    let digest = hex(&Sha256::digest(&joined));
    format!("common-{}", digest.get(..8).unwrap_or_default())
}

/// Groups that need code of generic targets or SPIR-V: where a wrapper has some for an arch of the
/// group, and none of the arch itself.
fn also(
    component: &Component,
    group_of: &BTreeMap<&BaseArch, usize>,
) -> BTreeMap<usize, BTreeSet<usize>> {
    let mut wrappers: BTreeMap<(&TreePath, u32), BTreeSet<&BaseArch>> = BTreeMap::new();
    for kernel in &component.kernels {
        let archs = wrappers.entry((&kernel.binary, kernel.co_index)).or_default();
        archs.insert(kernel.target.base());
    }
    let mut found: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for archs in wrappers.values() {
        for (arch, group) in group_of {
            if arch.is_generic() || arch.is_spirv() || archs.contains(arch) {
                continue;
            }
            let generic = gfx::generic_of(arch).filter(|generic| archs.contains(generic));
            let neutral = archs.iter().copied().find(|arch| arch.is_spirv());
            if let Some(other) = generic.or(neutral).and_then(|other| group_of.get(other)) {
                found.entry(*group).or_default().insert(*other);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_those_of_the_groups() {
        let of =
            |groups: &[&str]| label(&groups.iter().map(|g| (*g).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["gfx110X"]), "gfx110x");
        assert_eq!(of(&["gfx1100", "gfx1101"]), "gfx1100-gfx1101");
        let many: Vec<String> = (0..12).map(|n| format!("gfx11{n:02}")).collect();
        assert!(label(&many).starts_with("common-") && label(&many).len() == 15);
    }
}
