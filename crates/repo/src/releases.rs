//! The releases of the channel of wheels.

use std::collections::BTreeSet;
use std::sync::Arc;

use rockpack_core::error::{Error, Kind, Result};

use super::state::{PoolRecord, PoolRecords};
use super::unmet::UNMET_HINT;
use rockpack_package::indexed::Facts;
use rockpack_package::releases::{OpenExtra, Releases};
use rockpack_report::{Finding, Findings};

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

/// Fails if device wheels of `next` do not find their host, and are not known for that from `earlier`.
pub(super) fn check_hosts(earlier: &PoolRecords, next: &PoolRecords) -> Result<()> {
    let [before, after] = [earlier, next].map(|records| releases_of(records).open_extras());
    let lost = after.iter().filter(|open| open.extra.is_empty() && !before.contains(*open));
    let faults = lost.map(|OpenExtra { wheel, extra, requires, gap }| {
        let error = Error::new(Kind::Conflict, gap.describe(extra, requires));
        error.structure(wheel.clone()).hint(UNMET_HINT)
    });
    Error::gather(faults.collect()).map_or(Ok(()), Err)
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
