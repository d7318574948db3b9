//! Groups where the configuration has none.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_base::gfx::{self, BaseArch};

use crate::config::{ArchitectureGroup, Grouping};
use crate::split::SplitArtifact;

/// The groups of the configuration. Without any, each arch is one, with what is qualified of it.
pub fn grouping(configured: &Grouping, taken: &[SplitArtifact]) -> Grouping {
    let binaries = taken.iter().flat_map(SplitArtifact::binaries);
    let code = binaries.flat_map(|(_, fat)| fat.code_objects()).map(|code| code.target.base());
    let databases = taken.iter().flat_map(|part| &part.databases);
    let databases = databases.filter(|file| !file.for_arch_family).flat_map(|file| &file.archs);
    let archs: BTreeSet<&BaseArch> = code.chain(databases).collect();
    let mut groups: BTreeMap<BaseArch, Vec<BaseArch>> = BTreeMap::new();
    for arch in &archs {
        let plain = gfx::plain(arch).unwrap_or_else(|| (*arch).clone());
        groups.entry(plain).or_default().push((*arch).clone());
    }
    if !configured.groups.is_empty() || groups.values().all(|archs| archs.len() == 1) {
        return configured.clone();
    }
    let group = |(plain, architectures): (BaseArch, Vec<BaseArch>)| ArchitectureGroup {
        name: plain.to_string(),
        display_name: plain.to_string(),
        architectures,
    };
    Grouping { groups: groups.into_iter().map(group).collect(), primary_shard: None }
}
