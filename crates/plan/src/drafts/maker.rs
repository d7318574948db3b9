//! Makes the packages of all portions, and their names.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rockpack_core::error::Result;

use super::device::{DeviceContents, Served};
use crate::contents::portion::Portion;
use crate::libraries::linkage::Linkage;
use crate::naming::PackageNames;
use crate::recombine::Group;
#[cfg(doc)]
use crate::recombine::fallback_groups;
use crate::settings::PlanSettings;

/// Makes the packages of a set of portions, which are known by index.
pub(super) struct Maker<'a> {
    pub setting: &'a PlanSettings,
    pub groups: &'a [Group],
    pub portions: &'a [Portion<'a>],
    /// The portions of each family.
    pub families: &'a HashMap<&'a str, Vec<usize>>,
    pub linkage: &'a Linkage,
    pub contents: &'a [DeviceContents],
    /// The groups that need a portion's code of other groups, by portion; see [`fallback_groups`].
    pub fallbacks: &'a [BTreeMap<usize, BTreeSet<usize>>],
    /// Names of the host packages, by portion.
    pub names: &'a [PackageNames],
}

impl Maker<'_> {
    /// The family of a portion without the vendor.
    pub fn short_name(&self, index: usize) -> &str {
        self.setting.names.short(&self.portions[index].family)
    }

    pub fn kernel_names(&self, index: usize, group: usize) -> Result<PackageNames> {
        self.setting.names.kernels(&self.portions[index].stem, &self.groups[group].name)
    }

    /// The names of a common kernels package. The groups are in the name only if there are several such
    /// packages: usually there is one.
    pub fn common_names(&self, index: usize, served: &Served) -> Result<PackageNames> {
        let several = self.contents[index].shared().count() > 1;
        let named = served.iter().filter(|_| several);
        let groups: Vec<&str> = named.map(|group| self.groups[*group].name.as_str()).collect();
        self.setting.names.kernels_common(&self.portions[index].stem, &groups)
    }
}
