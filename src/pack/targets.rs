//! Which targets an archive lists, and which code object each of them gets.
//!
//! What loaders do (AMD's `rocm_kpack` runtime; its sources between 2025 and 2026): from the
//! target ID that the device reports they form all target IDs with some of its features left out,
//! most features first, and among equally many those that keep the earlier ones first. Released
//! ones commit to the first of these that is in an archive's `gfx_arches` and fail if the wrapper
//! has no row for it; later ones go on to the next. Both find a row or not per wrapper, while
//! `gfx_arches` holds for the whole archive.
//!
//! **Invariant.** For every device and every wrapper, either kind of loader finds the most
//! specific code object of the wrapper that the device can run, if there is one; and no target is
//! listed for which there is no row at all. It holds because as soon as any target of the archive
//! fixes a feature, every fully specified target ID that some code object can run on is listed.
//! Devices report fully specified target IDs. If a device's own is listed, it is the first that a
//! loader looks for, and each wrapper has a row for it that names the most specific of the code
//! objects that can run on it; a wrapper without that row has none. If it is not listed, no code
//! object of the archive can run on the device, so none of the shorter target IDs is listed
//! either, and the loader passes over the archive.
//!
//! A wrapper that has no code object of an arch is not in that arch's archive. Loaders then go
//! on to the next arch they were asked for (a generic one, SPIR-V), which has an archive of its own.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use rockpack_base::gfx::{BaseArch, Target};

/// The targets to list in an archive that holds code objects for `targets`, all of `arch`: most
/// specific first.
pub(super) fn listed(arch: &BaseArch, targets: &BTreeSet<&Target>) -> Vec<Target> {
    let mut listed: BTreeSet<Target> = targets.iter().copied().cloned().collect();
    let mut features: BTreeSet<&str> = targets
        .iter()
        .flat_map(|target| target.features())
        .map(|(name, _)| name.as_str())
        .collect();
    if !features.is_empty() {
        // Features that occur count as supported, even where the table does not know the arch.
        features.extend(arch.supported_features());
        let devices = arch.fully_specified(features).into_iter();
        listed.extend(devices.filter(|device| targets.iter().any(|t| t.runs_on(device))));
    }
    let mut listed: Vec<Target> = listed.into_iter().collect();
    listed.sort_by_key(|target| Reverse(target.features().len()));
    listed
}

/// The most specific of `candidates` that can run on what `target` names, as loaders rank them.
pub(super) fn most_specific<'a>(
    candidates: impl IntoIterator<Item = &'a Target>,
    target: &Target,
) -> Option<&'a Target> {
    candidates.into_iter().filter(|candidate| candidate.runs_on(target)).min_by(|a, b| {
        let count = |target: &Target| Reverse(target.features().len());
        count(a).cmp(&count(b)).then_with(|| a.features().cmp(b.features()))
    })
}
