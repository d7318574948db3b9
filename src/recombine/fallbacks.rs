//! Code of generic targets and of SPIR-V, for GPUs that a wrapper has no code of their own for.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_base::gfx::{self, BaseArch};
use rockpack_base::tree::TreePath;

use super::{Group, Kernel};
use crate::report::{ComponentFile, ComponentName, Finding, Findings};

/// The archs that each wrapper has code for, by binary and index.
pub type WrapperArchs<'a> = BTreeMap<(&'a TreePath, u32), BTreeSet<&'a BaseArch>>;

/// The archs of `kernels`, by wrapper.
pub fn wrapper_archs<'a>(kernels: impl IntoIterator<Item = &'a Kernel>) -> WrapperArchs<'a> {
    let mut wrappers = WrapperArchs::new();
    for kernel in kernels {
        let archs = wrappers.entry((&kernel.binary, kernel.co_index)).or_default();
        archs.insert(kernel.target.base());
    }
    wrappers
}

/// The generic target, or else SPIR-V, whose code among that for `archs` serves `arch`; `None` if there is code
/// for `arch` itself, or no other code serves it.
pub fn fallback_of<'a>(arch: &BaseArch, archs: &BTreeSet<&'a BaseArch>) -> Option<&'a BaseArch> {
    if arch.is_generic() || arch.is_spirv() || archs.contains(arch) {
        return None;
    }
    let generic = gfx::generic_of(arch).and_then(|generic| archs.get(generic));
    generic.or_else(|| archs.iter().find(|arch| arch.is_spirv())).copied()
}

/// Finds the groups that need code of another group: a wrapper serves one of their archs by code of a generic
/// target, or SPIR-V, alone. Returns the indexes of the groups.
pub fn fallback_groups<'a>(
    kernels: impl IntoIterator<Item = &'a Kernel>,
    groups: &[Group],
) -> BTreeMap<usize, BTreeSet<usize>> {
    let archs_of: BTreeSet<BTreeSet<&BaseArch>> = wrapper_archs(kernels).into_values().collect();
    let mut found: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for archs in &archs_of {
        for (number, group) in groups.iter().enumerate() {
            let fallbacks = group.archs.iter().filter_map(|arch| fallback_of(arch, archs));
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

/// Notes the code of generic targets and SPIR-V in `left_out` that alone serves some of `archs`, by what each
/// wrapper keeps.
pub fn note_lost_fallbacks(
    kept: &WrapperArchs<'_>,
    left_out: &WrapperArchs<'_>,
    archs: &[&BaseArch],
    component: impl Fn(&TreePath) -> ComponentName,
    findings: &mut Findings,
) {
    let mut lost: BTreeMap<(&TreePath, &BaseArch), LostFallback> = BTreeMap::new();
    let none = BTreeSet::new();
    for (wrapper, left) in left_out {
        let kept = kept.get(wrapper).unwrap_or(&none);
        let unserved = archs.iter().filter(|arch| !kept.contains(*arch));
        for arch in unserved.filter(|arch| fallback_of(arch, kept).is_none()) {
            if let Some(fallback) = fallback_of(arch, left) {
                let known = lost.entry((wrapper.0, fallback)).or_default();
                known.wrappers.insert(wrapper.1);
                known.archs.insert((*arch).clone());
            }
        }
    }
    for ((binary, fallback), LostFallback { wrappers, archs }) in lost {
        findings.add(Finding::FallbackLeftOut {
            file: ComponentFile::new(component(binary), binary),
            fallback: fallback.clone(),
            wrappers: wrappers.into_iter().collect(),
            archs: archs.into_iter().collect(),
        });
    }
}

/// The wrappers of a binary that have one fallback alone for some archs.
#[derive(Default)]
struct LostFallback {
    wrappers: BTreeSet<u32>,
    archs: BTreeSet<BaseArch>,
}
