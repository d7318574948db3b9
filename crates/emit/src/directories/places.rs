//! Finds the stage prefix that a file of a component belongs to.

use std::collections::BTreeMap;

use rockpack_core::tree::TreePath;

use rockpack_plan::recombine::Component;
use rockpack_split::input::artifact::Artifact;

use super::names::GENERIC;

/// Install path → stage prefix, for one component.
pub(super) struct Places<'a> {
    prefixes: BTreeMap<&'a TreePath, &'a str>,
    modules: BTreeMap<&'a str, &'a str>,
}

impl<'a> Places<'a> {
    /// Orders the artifacts as recombination does: the primary shard's first, generic ones before others.
    pub fn of(all: &[&'a Artifact], primary: Option<&str>, component: &Component) -> Self {
        let own = all.iter().copied().filter(|artifact| {
            artifact.name.name == component.artifact && artifact.name.kind == component.kind
        });
        let mut artifacts: Vec<&Artifact> = own.collect();
        artifacts.sort_by_key(|artifact| {
            let other = primary.is_some_and(|primary| artifact.shard != primary);
            let generic = artifact.name.gpu_family == GENERIC;
            (other, &artifact.shard, !generic, &artifact.name)
        });
        let mut places = Self { prefixes: BTreeMap::new(), modules: BTreeMap::new() };
        for prefix in artifacts.into_iter().flat_map(|artifact| &artifact.prefixes) {
            if let Some(module) = &prefix.module {
                places.modules.entry(module).or_insert(&prefix.path);
            }
            for (path, _) in &prefix.tree {
                places.prefixes.entry(path).or_insert(&prefix.path);
            }
        }
        places
    }

    /// The stage prefix of `path`. If no artifact has the path, because joining moved the file, its module
    /// decides, or else the folder around it.
    pub fn prefix(&self, path: &TreePath, module: Option<&str>) -> Option<&'a str> {
        if let Some(prefix) = self.prefixes.get(path) {
            return Some(prefix);
        }
        if let Some(prefix) = module.and_then(|module| self.modules.get(module)) {
            return Some(prefix);
        }
        let mut above = std::iter::successors(path.parent(), TreePath::parent);
        above.find_map(|folder| self.prefixes.get(&folder).copied())
    }
}
