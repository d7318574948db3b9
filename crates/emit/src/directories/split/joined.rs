//! A component with several builds in one shard, e.g. one for each GPU family of a multi-arch run.
//!
//! Two builds of a binary have their wrappers in different orders, so recombination joins them as it joins
//! shards, with each arch as a group of its own. It refuses contradictions as it does there.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::error::Result;
use rockpack_core::gfx::{BaseArch, Group};
use rockpack_core::tree::TreePath;

use super::sorting::has_fat;
use crate::directories::means::Means;
use crate::directories::output::OutputArtifact;
use crate::directories::places::Places;
use crate::directories::recombine::Writer;
use rockpack_plan::config::{Config, Grouping, UnassignedArchitectures};
use rockpack_plan::recombine;
use rockpack_report::{Finding, Findings, Stage};
use rockpack_split::SplitArtifact;
use rockpack_split::input::artifact::Artifact;

/// Whether two artifacts have a build of the same binary, and any binary of the component is fat.
pub(super) fn has_two_builds(split: &[SplitArtifact]) -> bool {
    let mut seen: BTreeSet<&TreePath> = BTreeSet::new();
    let mut binaries = split.iter().flat_map(SplitArtifact::binaries);
    split.iter().any(has_fat) && binaries.any(|(path, _)| !seen.insert(path))
}

/// Number of code objects and database files by arch that `targets` leaves out.
pub(super) fn left_out(
    split: &[SplitArtifact],
    targets: &BTreeSet<BaseArch>,
) -> BTreeMap<BaseArch, usize> {
    let mut left: BTreeMap<BaseArch, usize> = BTreeMap::new();
    if targets.is_empty() {
        return left;
    }
    let binaries = split.iter().flat_map(SplitArtifact::binaries);
    for code in binaries.flat_map(|(_, fat)| fat.code_objects()) {
        *left.entry(code.target.base().clone()).or_default() += 1;
    }
    for file in split.iter().flat_map(|part| &part.databases) {
        if !file.archs.iter().any(|arch| targets.contains(arch)) {
            for arch in &file.archs {
                *left.entry(arch.clone()).or_default() += 1;
            }
        }
    }
    left.retain(|arch, _| !targets.contains(arch));
    left
}

/// The artifacts to write, and the findings from splitting and joining `split`.
pub(super) fn outputs(
    artifacts: &[&Artifact],
    split: Vec<SplitArtifact>,
    targets: &BTreeSet<BaseArch>,
    means: Means<'_>,
) -> Result<(Vec<OutputArtifact>, Findings)> {
    let mut config = Config::none()?;
    config.keys.validation.unassigned_architectures = UnassignedArchitectures::Drop;
    let mut recombined = recombine::recombine(split, &config, &each_arch_alone(targets))?;
    // The caller reports targets that were not asked for or that have no code. Targets of links are checked
    // across components, when all are there.
    recombined.findings.retain(|finding| {
        use Finding::{ArchDropped, ArchMissing, LinkDangling};
        !matches!(finding, ArchDropped { .. } | ArchMissing { .. } | LinkDangling { .. })
    });
    let mut outputs = Vec::new();
    for component in &mut recombined.components {
        // SPIR-V and generic targets are always a group.
        component.kernels.retain(|kernel| is_wanted(kernel.target.base(), targets));
        component.databases.retain_mut(|file| {
            file.archs.retain(|arch| is_wanted(arch, targets));
            !file.archs.is_empty()
        });
        let bytes = component.kernels.iter().map(|kernel| kernel.content.len()).sum();
        means.progress.expect(Stage::Pack, bytes);
        means.progress.begin(Stage::Pack);
        let writer = Writer {
            component,
            groups: &recombined.groups,
            places: Places::of(artifacts, None, component),
            means,
        };
        outputs.extend(writer.outputs()?);
        means.progress.end(Stage::Pack);
    }
    Ok((outputs, recombined.findings))
}

fn is_wanted(arch: &BaseArch, targets: &BTreeSet<BaseArch>) -> bool {
    targets.is_empty() || targets.contains(arch)
}

/// Makes a group of each of `targets`; of each arch of the input if `targets` is empty.
fn each_arch_alone(targets: &BTreeSet<BaseArch>) -> Grouping {
    let groups = targets.iter().map(|arch| Group {
        name: arch.to_string(),
        display_name: arch.to_string(),
        archs: vec![arch.clone()],
    });
    Grouping { groups: groups.collect(), primary_shard: None }
}
