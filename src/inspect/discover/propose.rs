//! Proposes a packaging configuration for the found targets. A build without a configuration gets its groups and
//! primary shard from here.
//!
//! `config/groups.toml` says which archs share a group; an arch outside of these groups gets its own group. Fallback
//! archs, generic targets and SPIR-V are left out; the latter two get packages of their own without being named. The
//! primary shard is the one with the most host files.

use std::collections::BTreeMap;
use std::path::Path;

use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::gfx::{self, BaseArch, Group};
use rockpack_plan::config::{Grouping, Syntax, Validation};
use rockpack_report::words::shell_word;
use rockpack_split::input::tree::InputPath;
use serde::Serialize;
use serde_json::json;

use super::fallback::is_processor;
use super::{ArchSummary, Discovery, ShardContents};

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

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PrimaryShard {
    pub name: String,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UngroupedArch {
    pub arch: BaseArch,
    pub reason: String,
}

/// Proposes how to package what was found; an error if there is no device code to group.
pub fn propose(found: &Discovery) -> Result<Proposal> {
    let mut groups = Vec::new();
    let mut left_out = Vec::new();
    for arch in &found.architectures {
        match exclusion_reason(arch) {
            Some(reason) => left_out.push(UngroupedArch { arch: arch.arch.clone(), reason }),
            None => assign(&arch.arch, &mut groups),
        }
    }
    match primary(&found.shards) {
        Some(primary_shard) if !groups.is_empty() => {
            Ok(Proposal { primary_shard, groups, left_out })
        }
        _ => Err(Error::new(Kind::Usage, "the input has no device code to group").hint(
            "a packaging configuration is for artifacts with device code; others are built \
             without one",
        )),
    }
}

fn exclusion_reason(found: &ArchSummary) -> Option<String> {
    if !is_processor(&found.arch) {
        return Some("gets its own package without a group".to_owned());
    }
    found
        .fallback
        .then(|| format!("only a fallback of the compiler in {}", found.shards.join(", ")))
}

fn assign(arch: &BaseArch, groups: &mut Vec<Group>) {
    let known = gfx::PRODUCT_GROUPS.iter().find(|group| group.archs.contains(arch));
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

/// The archs that a configuration has to declare under `additional_architectures`.
fn unknown(groups: &[Group]) -> Vec<&str> {
    let archs = groups.iter().flat_map(|group| &group.archs);
    archs.filter(|arch| !gfx::is_known(arch)).map(BaseArch::as_str).collect()
}

impl Proposal {
    /// The text of the configuration. It has the default checks, so that they can be changed there.
    pub fn configuration(&self, syntax: Syntax) -> Result<String> {
        let groups = self.groups.iter().map(|Group { name, display_name, archs }| {
            let group = json!({ "display_name": display_name, "architectures": archs });
            (name.clone(), group)
        });
        let (unknown, checks) = (unknown(&self.groups), Validation::default());
        let mut configuration = json!({ "primary_shard": self.primary_shard.name });
        if !unknown.is_empty() {
            configuration["additional_architectures"] = json!(unknown);
        }
        configuration["architecture_groups"] = groups.collect();
        configuration["validation"] = json!({
            "error_on_duplicate_device_code": checks.error_on_duplicate_device_code,
            "verify_generic_artifacts_match": checks.verify_generic_artifacts_match,
            "error_on_missing_architecture": checks.error_on_missing_architecture,
        });
        match syntax {
            Syntax::Json => serde_json::to_string_pretty(&configuration)
                .map(|text| text + "\n")
                .map_err(|cause| serialization_error(&cause)),
            Syntax::Toml => {
                toml::to_string(&configuration).map_err(|cause| serialization_error(&cause))
            }
        }
    }
}

fn serialization_error(cause: &dyn std::fmt::Display) -> Error {
    Error::bug("a proposed configuration cannot be written").cause(cause)
}

/// The file name in the command that saves a proposed configuration.
const FILE: &str = "packaging.toml";

/// The groups and primary shard that [`propose`] proposes for `artifacts`, with a note on the decision and
/// the command that saves it. If nothing can be proposed, each arch is a group.
pub fn default_grouping(artifacts: &[InputPath], found: &Discovery) -> (Grouping, Option<String>) {
    // Without device code there is nothing to group.
    if found.architectures.is_empty() {
        return (Grouping::default(), None);
    }
    let Ok(proposal) = propose(found) else {
        let none = "note: no configuration, and none to propose: each architecture is a group";
        return (Grouping::default(), Some(none.to_owned()));
    };
    let grouping_note = grouping_note(&proposal, artifacts);
    let primary_shard = Some(proposal.primary_shard.name);
    (Grouping { groups: proposal.groups, primary_shard }, Some(grouping_note))
}

fn grouping_note(proposal: &Proposal, artifacts: &[InputPath]) -> String {
    let groups: Vec<&str> = proposal.groups.iter().map(|group| group.name.as_str()).collect();
    // Others that are in no group get packages of their own.
    let ungrouped: Vec<&str> = proposal
        .left_out
        .iter()
        .map(|ungrouped| &ungrouped.arch)
        .filter(|arch| is_processor(arch))
        .map(|arch| arch.as_str())
        .collect();
    let ungrouped = if ungrouped.is_empty() {
        String::new()
    } else {
        format!(", without {}", ungrouped.join(", "))
    };
    let artifacts: Vec<String> =
        artifacts.iter().map(|input| shell_word(Path::new(&input.to_string()))).collect();
    format!(
        "note: no configuration: the groups are {}{ungrouped}, the primary shard is {}; \
         `rockpack discover {} --propose {FILE}` saves them as a configuration",
        groups.join(", "),
        proposal.primary_shard.name,
        artifacts.join(" "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rockpack_plan::config::Config;
    use rockpack_report::Findings;

    use super::super::{Amount, ArtifactContents};

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
        let ungrouped: Vec<&str> =
            proposal.left_out.iter().map(|ungrouped| ungrouped.arch.as_str()).collect();
        assert_eq!(ungrouped, ["gfx906", "gfx11-generic", "amdgcnspirv"]);
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

    fn settled(archs: &[(&str, bool)], artifacts: &[&str]) -> (Grouping, Option<String>) {
        let artifacts: Vec<InputPath> =
            artifacts.iter().map(|it| Path::new(it).to_path_buf().into()).collect();
        default_grouping(&artifacts, &discovery(archs))
    }

    #[test]
    fn groups_and_shard_are_the_proposed_ones() {
        let archs = [("gfx906", true), ("gfx1100", false), ("gfx11-generic", false)];
        let (grouping, grouping_note) = settled(&archs, &["a b", "it's"]);
        assert_eq!(grouping.groups[0].archs, ["gfx1100".parse().unwrap()]);
        assert_eq!((grouping.groups.len(), grouping.primary_shard.as_deref()), (1, Some("one")));
        let expected = "note: no configuration: the groups are gfx110X, without gfx906, the primary \
                        shard is one; `rockpack discover 'a b' 'it'\\''s' --propose packaging.toml` \
                        saves them as a configuration";
        assert_eq!(grouping_note.as_deref(), Some(expected));
    }

    #[test]
    fn what_cannot_be_grouped_stays_as_it_is() {
        let (grouping, grouping_note) = settled(&[("gfx906", true)], &["a"]);
        assert!(grouping_note.unwrap().contains("none to propose: each architecture is a group"));
        assert_eq!(grouping, Grouping::default());
        assert_eq!(settled(&[], &["a"]).1, None);
    }

    /// A shard with this number of host files and of code objects.
    fn shard(name: &str, host: u64, code: u64) -> ShardContents {
        let [host_files, code] = [host, code].map(|count| Amount { count, bytes: count });
        let artifact = ArtifactContents {
            name: "blas_lib_all".to_owned(),
            gpu_family: "all".to_owned(),
            host_files,
            binaries: 1,
            code_objects: BTreeMap::from([("gfx906".parse().unwrap(), code)]),
            databases: BTreeMap::new(),
        };
        ShardContents {
            name: name.to_owned(),
            artifacts: vec![artifact],
            fallbacks: BTreeMap::new(),
        }
    }

    /// One shard with these archs, each with whether it is a fallback.
    fn discovery(archs: &[(&str, bool)]) -> Discovery {
        let architectures = archs.iter().map(|(name, fallback)| ArchSummary {
            arch: name.parse().unwrap(),
            generation: String::new(),
            products: Vec::new(),
            shards: vec!["one".to_owned()],
            code_objects: Amount::default(),
            databases: Amount::default(),
            fallback: *fallback,
        });
        Discovery {
            architectures: architectures.collect(),
            shards: vec![shard("one", 1, 1)],
            findings: Findings::default(),
        }
    }
}
