//! The targets that an archive lists, and the code object for each of them.
//!
//! Behaviour of loaders (AMD's `rocm_kpack` runtime; its sources between 2025 and 2026): from the target ID
//! that the device reports they form all target IDs with some of its features left out, those with most
//! features first, and among equally many those that keep the earlier features first. Released loaders commit
//! to the first of these that is in an archive's `gfx_arches`, and fail if the wrapper has no row for it;
//! later ones go on to the next. Both look for a row per wrapper, while `gfx_arches` holds for the whole
//! archive.
//!
//! **Invariant.** For every device and every wrapper, both kinds of loader find the wrapper's most specific
//! code object that the device can run, if there is one; and every listed target has a row. It holds because
//! as soon as any target of the archive fixes a feature, the archive lists every fully specified target ID
//! that can run some code object. Devices report fully specified target IDs. If the archive lists a device's
//! own, a loader looks for it first, and each wrapper has a row for it with the most specific code object
//! that the device can run; a wrapper without that row has no such code object. If the archive does not list
//! it, the device can run no code object of the archive, so none of the shorter target IDs is listed either,
//! and the loader skips the archive.
//!
//! The runtime also asks for the generic target of a device's arch, but released loaders stop, with an error
//! for every device, at the archive of the arch itself if that lacks a row for the wrapper (measured with
//! librocm_kpack 0.1.0 of ROCm 7.14). So the archive of an arch also has rows for the wrappers that have no code
//! for some of its devices, but code for its generic target: copies of that code, under the features that it was
//! built for. Where code for the arch itself runs on a device, its row comes first. An arch
//! without code of its own in a set has no archive, and loaders go on to that of the generic target. No
//! archive repeats SPIR-V, which a loader would take for machine code.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use rockpack_core::gfx::{BaseArch, Target};

/// The targets to list in an archive with code objects for `targets`, all of `arch`: most specific first.
pub(super) fn listed(arch: &BaseArch, targets: &BTreeSet<&Target>) -> Vec<Target> {
    let mut distinct: BTreeSet<Target> = targets.iter().copied().cloned().collect();
    let mut features: BTreeSet<&str> = targets
        .iter()
        .flat_map(|target| target.features())
        .map(|(name, _)| name.as_str())
        .collect();
    if !features.is_empty() {
        // Features in use count as supported, even if the table does not know the arch.
        features.extend(arch.supported_features());
        let devices = arch.fully_specified(features).into_iter();
        distinct.extend(devices.filter(|device| targets.iter().any(|t| t.runs_on(device))));
    }
    let mut listed: Vec<Target> = distinct.into_iter().collect();
    listed.sort_by_key(|target| Reverse(target.features().len()));
    listed
}

/// The most specific of `candidates` that can run on `target`, in the order of loaders.
pub(super) fn most_specific<'a>(
    candidates: impl IntoIterator<Item = &'a Target>,
    target: &Target,
) -> Option<&'a Target> {
    candidates.into_iter().filter(|candidate| candidate.runs_on(target)).min_by(|a, b| {
        let (a, b) = (a.features(), b.features());
        b.len().cmp(&a.len()).then_with(|| a.cmp(b))
    })
}
