//! Counts the device code that is in no package, and lists its files and digests. This includes the code of builds
//! that are not packed, and generic code and SPIR-V that GPUs without code of their own would run.
//!
//! A binary that cannot be transformed keeps its device code and is packed from one shard. The code of another
//! shard's build is then in no package, and its finding reports the code as dropped, not as kept.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use rockpack_core::content::{Content, Sha256Digest};
use rockpack_core::error::Result;
use rockpack_core::gfx::{self, BaseArch, Target};
use rockpack_core::tree::{Node, TreePath};
use rockpack_elf::code_object::is_code_object;

use super::host::{HostClaims, label};
use super::{Group, Join, Kernel};
use rockpack_report::{
    ComponentFile, ComponentName, Finding, Findings, InputArtifact, InputFile, LeftOutFile, found,
};
use rockpack_split::{HostFile, SplitArtifact, standalone_code};

/// The code objects and database files that are left out for one reason, each with its file (`<component>/<path>`, or
/// a path).
#[derive(Debug, Default)]
pub struct LeftOutCode(Vec<(String, Content)>);

pub struct LeftOutCounts {
    /// The number of code objects and database files.
    pub count: usize,
    /// The number of distinct ones.
    pub different: usize,
    pub places: Vec<LeftOutFile>,
    /// The SHA-256 of each of them, and of each code object inside a bundle.
    pub code_objects: Vec<Sha256Digest>,
}

impl LeftOutCode {
    pub fn add(&mut self, place: String, content: &Content) {
        self.0.push((place, content.clone()));
    }

    pub fn counted(&self) -> Result<LeftOutCounts> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (place, _) in &self.0 {
            *counts.entry(place.as_str()).or_default() += 1;
        }
        let places =
            counts.into_iter().map(|(file, count)| LeftOutFile { file: file.to_owned(), count });
        let digests: BTreeSet<Sha256Digest> =
            self.0.par_iter().map(|(_, content)| content.digest()).collect::<Result<_>>()?;
        let inside: Vec<BTreeSet<Sha256Digest>> =
            self.0.par_iter().map(|(_, content)| code_digests(content)).collect::<Result<_>>()?;
        let all: BTreeSet<_> =
            inside.into_iter().flatten().chain(digests.iter().copied()).collect();
        Ok(LeftOutCounts {
            count: self.0.len(),
            different: digests.len(),
            places: places.collect(),
            code_objects: all.into_iter().collect(),
        })
    }
}

/// The digests of the code objects inside a bundle, because users may look up each; empty for a code object.
fn code_digests(content: &Content) -> Result<BTreeSet<Sha256Digest>> {
    if is_code_object(content)? {
        return Ok(BTreeSet::new());
    }
    let found = standalone_code(content, None)?;
    found.into_iter().map(|code| code.digest(content)).collect()
}

/// The builds that are not packed, each with the artifact that provides the packed build.
pub(super) type NotPacked = BTreeMap<InputFile, InputArtifact>;

impl Join<'_> {
    pub(super) fn note_not_packed(&mut self, parts: &[SplitArtifact], claims: &HostClaims<'_>) {
        for part in parts {
            for finding in part.findings.iter() {
                let Some(found::KeptFat { file, .. }) = finding.found() else { continue };
                let Some(claim) = claims.get(&file.path) else { continue };
                let node = part.host.get(&file.path);
                let same = match (plain_content(claim.node), node.and_then(plain_content)) {
                    (Some(packed), Some(own)) => self.faults.keep(packed.same_bytes(own)),
                    _ => Some(false),
                };
                if same == Some(false) {
                    self.not_packed.insert(file.clone(), label(claim.part));
                }
            }
        }
    }
}

pub(super) fn plain_content(node: &Node<HostFile>) -> Option<&Content> {
    node.data()?.plain()
}

/// Replaces `KeptFat` by `KeptFatDropped` in findings about builds that are not packed.
pub(super) fn correct_not_packed(findings: &Findings, not_packed: &NotPacked) -> Findings {
    let kept = findings.iter().filter_map(|finding| finding.found::<found::KeptFat>());
    let packed = kept.filter(|kept| !not_packed.contains_key(&kept.file));
    let packed: BTreeSet<&Sha256Digest> = packed.flat_map(|kept| &kept.code_objects).collect();
    let dropped = |finding: &Finding| {
        let found::KeptFat { file, code_objects, .. } = finding.found()?;
        let missing = code_objects.iter().filter(|digest| !packed.contains(digest));
        Some(Finding::from(found::KeptFatDropped {
            file: file.clone(),
            provided_by: not_packed.get(file)?.clone(),
            code_objects: missing.copied().collect(),
        }))
    };
    let mut corrected = Findings::default();
    corrected.extend(findings.iter().map(|it| dropped(it).unwrap_or_else(|| it.clone())));
    corrected.sort();
    corrected
}

/// The targets that each wrapper has code for, by binary and index.
pub type WrapperTargets<'a> = BTreeMap<(&'a TreePath, u32), BTreeSet<&'a Target>>;

pub fn wrapper_targets<'a>(kernels: impl IntoIterator<Item = &'a Kernel>) -> WrapperTargets<'a> {
    let mut wrappers = WrapperTargets::new();
    for kernel in kernels {
        let targets = wrappers.entry((&kernel.binary, kernel.co_index)).or_default();
        targets.insert(&kernel.target);
    }
    wrappers
}

/// Whether every device of `arch`, with any features, runs code for a target of this arch in `targets`.
pub fn serves_all_devices(arch: &BaseArch, targets: &BTreeSet<&Target>) -> bool {
    let of_arch = || targets.iter().filter(|target| target.base() == arch);
    let fixed = of_arch().flat_map(|target| target.features()).map(|(name, _)| name.as_str());
    let features: BTreeSet<&str> = fixed.chain(arch.supported_features().iter().copied()).collect();
    let devices = arch.fully_specified(features);
    devices.iter().all(|device| of_arch().any(|target| target.runs_on(device)))
}

/// The generic target, or else SPIR-V, whose code serves devices of `arch`; `None` if code for `arch` itself serves
/// all of them, or if `targets` has no such code.
pub fn fallback_of<'a>(arch: &BaseArch, targets: &BTreeSet<&'a Target>) -> Option<&'a BaseArch> {
    if arch.is_generic() || arch.is_spirv() || serves_all_devices(arch, targets) {
        return None;
    }
    let mut archs = targets.iter().map(|target| target.base());
    let generic = archs.clone().find(|other| gfx::generic_of(arch) == Some(*other));
    generic.or_else(|| archs.find(|other| other.is_spirv()))
}

/// The groups that need code of other groups, by index: in some wrapper, only code of a generic target or SPIR-V
/// serves devices of one of their archs.
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

/// Reports the generic code and SPIR-V in `left_out` that devices of `archs` need, because a wrapper keeps no other
/// code for them.
pub fn note_lost_fallbacks(
    kept: &WrapperTargets<'_>,
    left_out: &WrapperTargets<'_>,
    archs: &[&BaseArch],
    component: impl Fn(&TreePath) -> ComponentName,
    findings: &mut Findings,
) {
    let no_targets = BTreeSet::new();
    let mut lost: BTreeMap<(&TreePath, &BaseArch, Vec<BaseArch>), Vec<u32>> = BTreeMap::new();
    for (wrapper, left) in left_out {
        let kept = kept.get(wrapper).unwrap_or(&no_targets);
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
        findings.add(found::FallbackLeftOut { file, fallback, wrappers, archs });
    }
}
