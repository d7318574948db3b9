//! The releases of the channel of wheels.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::state::{PoolRecord, PoolRecords};
use crate::package::indexed::Facts;
use crate::package::releases::{OpenExtra, Releases};
use crate::report::{Finding, Findings};

/// The releases of the wheels among `records`.
pub(super) fn releases_of<'a>(
    records: impl IntoIterator<Item = (&'a String, &'a Arc<PoolRecord>)>,
) -> Releases<'a> {
    Releases::of(records.into_iter().filter_map(|(path, record)| match &record.indexed.facts {
        Facts::Wheel(package) => Some((path, &**package)),
        Facts::Deb(_) | Facts::Rpm(_) => None,
    }))
}

/// Paths of the wheels of `records` that do not stay.
pub(super) fn not_kept(records: &PoolRecords, keep: usize) -> BTreeSet<String> {
    let releases = releases_of(records);
    let kept = releases.kept(keep);
    records.keys().filter(|path| !kept.contains(path)).cloned().collect()
}

/// Findings about extras that do not bring all of a GPU, and about builds that nothing keeps apart.
pub(super) fn findings(records: &PoolRecords) -> Findings {
    let releases = releases_of(records);
    let mut findings = Findings::default();
    for OpenExtra { wheel, extra, requires, gap } in releases.open_extras() {
        findings.add(Finding::WheelExtraOpen { wheel, extra, requires, gap });
    }
    for mixed in releases.mixed_builds() {
        findings.add(Finding::WheelBuildsMixed { wheel: mixed.release, builds: mixed.builds });
    }
    findings
}
