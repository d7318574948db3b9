//! Code of generic targets and of SPIR-V, for GPUs that a wrapper has no code of their own for.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::gfx::{self, BaseArch, Target};
use rockpack_core::tree::TreePath;

use super::{Group, Kernel};
use rockpack_report::{ComponentFile, ComponentName, Finding, Findings};

/// The targets that each wrapper has code for, by binary and index.
pub type WrapperTargets<'a> = BTreeMap<(&'a TreePath, u32), BTreeSet<&'a Target>>;

/// The targets of `kernels`, by wrapper.
pub fn wrapper_targets<'a>(kernels: impl IntoIterator<Item = &'a Kernel>) -> WrapperTargets<'a> {
    let mut wrappers = WrapperTargets::new();
    for kernel in kernels {
        let targets = wrappers.entry((&kernel.binary, kernel.co_index)).or_default();
        targets.insert(&kernel.target);
    }
    wrappers
}

/// Whether each device of `arch`, whatever its features, runs code for one of `targets` of this arch.
pub fn serves_all_devices(arch: &BaseArch, targets: &BTreeSet<&Target>) -> bool {
    let own = || targets.iter().filter(|target| target.base() == arch);
    let fixed = own().flat_map(|target| target.features()).map(|(name, _)| name.as_str());
    let features: BTreeSet<&str> = fixed.chain(arch.supported_features().iter().copied()).collect();
    let devices = arch.fully_specified(features);
    devices.iter().all(|device| own().any(|target| target.runs_on(device)))
}

/// The generic target, or else SPIR-V, whose code among that for `targets` serves devices of `arch`; `None` if
/// code for `arch` itself serves all of them, or no other code does.
pub fn fallback_of<'a>(arch: &BaseArch, targets: &BTreeSet<&'a Target>) -> Option<&'a BaseArch> {
    if arch.is_generic() || arch.is_spirv() || serves_all_devices(arch, targets) {
        return None;
    }
    let mut archs = targets.iter().map(|target| target.base());
    let generic = archs.clone().find(|other| gfx::generic_of(arch) == Some(*other));
    generic.or_else(|| archs.find(|other| other.is_spirv()))
}

/// Finds the groups that need code of another group: a wrapper serves devices of one of their archs by code of
/// a generic target, or SPIR-V, alone. Returns the indexes of the groups.
pub fn fallback_groups<'a>(
    kernels: impl IntoIterator<Item = &'a Kernel>,
    groups: &[Group],
) -> BTreeMap<usize, BTreeSet<usize>> {
    let sets: BTreeSet<BTreeSet<&Target>> = wrapper_targets(kernels).into_values().collect();
    let mut found: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for targets in &sets {
        for (number, group) in groups.iter().enumerate() {
            let fallbacks = group.archs.iter().filter_map(|arch| fallback_of(arch, targets));
            let others = fallbacks.filter_map(|fallback| {
                groups.iter().position(|other| other.archs.contains(fallback))
            });
            let others: BTreeSet<usize> = others.filter(|other| *other != number).collect();
            if !others.is_empty() {
                found.entry(number).or_default().extend(others);
            }
        }
    }
    found
}

/// Notes the code of generic targets and SPIR-V in `left_out` that alone serves devices of some of `archs`, by
/// what each wrapper keeps.
pub fn note_lost_fallbacks(
    kept: &WrapperTargets<'_>,
    left_out: &WrapperTargets<'_>,
    archs: &[&BaseArch],
    component: impl Fn(&TreePath) -> ComponentName,
    findings: &mut Findings,
) {
    let none = BTreeSet::new();
    let mut lost: BTreeMap<(&TreePath, &BaseArch, Vec<BaseArch>), Vec<u32>> = BTreeMap::new();
    for (wrapper, left) in left_out {
        let kept = kept.get(wrapper).unwrap_or(&none);
        let mut archs_of: BTreeMap<&BaseArch, Vec<BaseArch>> = BTreeMap::new();
        for arch in archs.iter().filter(|arch| !serves_all_devices(arch, kept)) {
            let fallback = fallback_of(arch, left).filter(|_| fallback_of(arch, kept).is_none());
            if let Some(fallback) = fallback {
                archs_of.entry(fallback).or_default().push((*arch).clone());
            }
        }
        for (fallback, archs) in archs_of {
            lost.entry((wrapper.0, fallback, archs)).or_default().push(wrapper.1);
        }
    }
    for ((binary, fallback, archs), wrappers) in lost {
        let file = ComponentFile::new(component(binary), binary);
        let fallback = fallback.clone();
        findings.add(Finding::FallbackLeftOut { file, fallback, wrappers, archs });
    }
}
