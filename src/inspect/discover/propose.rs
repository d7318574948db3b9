//! A packaging configuration for what was found.
//!
//! `config/groups.toml` says which archs share a group; an arch outside of its groups gets a group
//! of its own. Fallback archs, generic targets and SPIR-V are left out; the latter two
//! get packages of their own without being named. The primary shard is the one whose host
//! files leave the fewest to be taken from others.

use std::collections::BTreeMap;

use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::gfx::{self, BaseArch, Group};
use serde::Serialize;

use super::fallback::is_processor;
use super::{ArchFound, Discovery, ShardContents};

/// A proposed packaging configuration, with the reasons for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proposal {
    /// The shard whose host files are packed.
    pub primary_shard: PrimaryShard,
    /// The groups by generation, with the archs that the input has.
    pub groups: Vec<Group>,
    /// The archs that are in no group.
    pub left_out: Vec<UngroupedArch>,
}

/// A choice of shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PrimaryShard {
    /// The name.
    pub name: String,
    /// The reason for the choice.
    pub reason: String,
}

/// An arch that is in no group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UngroupedArch {
    /// The arch.
    pub arch: BaseArch,
    /// The reason.
    pub reason: String,
}

/// Proposes how to package what was found; an error if there is no device code to group.
pub fn propose(found: &Discovery) -> Result<Proposal> {
    let mut groups = Vec::new();
    let mut left_out = Vec::new();
    for arch in &found.architectures {
        match reason_against(arch) {
            Some(reason) => left_out.push(UngroupedArch { arch: arch.arch.clone(), reason }),
            None => assign(&arch.arch, &mut groups),
        }
    }
    match primary(&found.shards) {
        Some(primary_shard) if !groups.is_empty() => {
            Ok(Proposal { primary_shard, groups, left_out })
        }
        _ => Err(Error::new(Kind::Usage, "no arch is there to be grouped").hint(
            "a packaging configuration is for artifacts with device code; others are built \
             without one",
        )),
    }
}

fn reason_against(found: &ArchFound) -> Option<String> {
    if !is_processor(&found.arch) {
        return Some("gets a package of its own without being named".to_owned());
    }
    found
        .fallback
        .then(|| format!("only a fallback of the compiler in {}", found.shards.join(", ")))
}

fn assign(arch: &BaseArch, groups: &mut Vec<Group>) {
    let table = gfx::product_groups();
    let known = table.iter().find(|group| group.archs.contains(arch));
    let group = known.cloned().unwrap_or_else(|| Group {
        name: arch.to_string(),
        display_name: format!("ROCm {arch}"),
        archs: Vec::new(),
    });
    match groups.iter_mut().find(|own| own.name == group.name) {
        Some(own) => own.archs.push(arch.clone()),
        None => groups.push(Group { archs: vec![arch.clone()], ..group }),
    }
}

/// The shard with the most host files, then the most code objects, then the first name.
fn primary(shards: &[ShardContents]) -> Option<PrimaryShard> {
    let weights: BTreeMap<&str, (u64, u64)> =
        shards.iter().map(|shard| (shard.name.as_str(), files_and_code(shard))).collect();
    let best = weights.values().max()?;
    let same: Vec<&str> =
        weights.iter().filter(|(_, weight)| *weight == best).map(|(name, _)| *name).collect();
    let most_files = weights.values().filter(|(host, _)| *host == best.0).count();
    let reason = match (weights.len(), most_files, same.len()) {
        (1, ..) => "it is the only shard".to_owned(),
        (_, 1, _) => format!("it has the most host files ({})", best.0),
        (_, _, 1) => format!(
            "of the {most_files} shards with the most host files ({}) it has the most code \
             objects ({})",
            best.0, best.1
        ),
        _ => format!(
            "it is the first by name of {} shards with equally many host files ({}) and code \
             objects ({})",
            same.len(),
            best.0,
            best.1
        ),
    };
    Some(PrimaryShard { name: (*same.first()?).to_owned(), reason })
}

fn files_and_code(shard: &ShardContents) -> (u64, u64) {
    let host_files = shard.artifacts.iter().map(|one| one.host_files.count).sum();
    let code = shard.artifacts.iter().flat_map(|one| one.code_objects.values());
    (host_files, code.map(|amount| amount.count).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::discover::fixture::{discovery, shard};
    use rockpack_plan::config::{Config, Syntax};

    fn proposed(archs: &[(&str, bool)]) -> Result<Proposal> {
        propose(&discovery(archs))
    }

    #[test]
    fn archs_are_grouped_by_product_and_unknown_ones_stand_alone() {
        let archs = ["gfx906", "gfx90a", "gfx1100", "gfx1103", "gfx1999"];
        let proposal = proposed(&archs.map(|name| (name, false))).unwrap();
        let groups: Vec<_> =
            proposal.groups.iter().map(|group| (group.name.as_str(), group.archs.len())).collect();
        assert_eq!(groups, [("gfx90X", 1), ("gfx90a", 1), ("gfx110X", 2), ("gfx1999", 1)]);
        assert_eq!(proposal.groups[3].display_name, "ROCm gfx1999");
        assert_eq!(proposal.left_out, []);
        for syntax in [Syntax::Json, Syntax::Toml] {
            let text = proposal.configuration(syntax).unwrap();
            let config = Config::parse(&text, syntax).unwrap();
            assert_eq!(config.grouping.groups.len(), 4, "{text}");
        }
    }

    #[test]
    fn fallbacks_and_code_for_any_gpu_are_left_out() {
        let archs = [
            ("gfx906", true),
            ("gfx1100", false),
            ("gfx11-generic", false),
            ("amdgcnspirv", false),
        ];
        let proposal = proposed(&archs).unwrap();
        assert_eq!(proposal.groups.len(), 1);
        let left: Vec<&str> = proposal.left_out.iter().map(|left| left.arch.as_str()).collect();
        assert_eq!(left, ["gfx906", "gfx11-generic", "amdgcnspirv"]);
        assert!(proposed(&archs[..1]).is_err());
        assert!(proposed(&[]).is_err());
    }

    #[test]
    fn host_files_decide_then_code_objects_then_the_name() {
        for (shards, chosen) in [
            (vec![shard("a", 1, 9), shard("b", 2, 1)], "b"),
            (vec![shard("a", 2, 1), shard("b", 2, 2), shard("c", 1, 9)], "b"),
            (vec![shard("b", 2, 2), shard("a", 2, 2)], "a"),
        ] {
            assert_eq!(primary(&shards).unwrap().name, chosen);
        }
        assert!(primary(&[]).is_none());
    }
}
