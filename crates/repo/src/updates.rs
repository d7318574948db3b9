//! The effect of a publication on clients of a channel: which updates it makes them hold back, and what
//! they download.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::channel::Channel;
use super::published::{ClientDownload, Download, GpuDownload};
use super::state::{PoolRecord, PoolRecords};
use rockpack_package::Format;
use rockpack_package::indexed::Facts;
use rockpack_package::offered::Offered;
use rockpack_package::updates::Effect;
use rockpack_package::vendors::VendorChanges;
use rockpack_report::Finding;

/// The effect of `next` on clients that have the newest of `earlier`: findings about updates that are held back, and
/// the downloads for each architecture.
pub(super) fn of(
    channel: &Channel,
    format: Format,
    earlier: &PoolRecords,
    next: &PoolRecords,
) -> (Vec<Finding>, Vec<ClientDownload>) {
    let (before, after) = (newest(earlier), newest(next));
    let effect = Effect::of(format, &offered(&before), &offered(&after));
    let held_back = (!effect.misfits.is_empty()).then(|| Finding::UpdateHeldBack {
        channel: channel.name(),
        format,
        misfits: effect.misfits,
        held_back: effect.held_back.into_iter().collect(),
    });
    let clients = effect.downloads.into_iter().map(|(architecture, positions)| {
        let records = positions.into_iter().filter_map(|at| after.get(at).copied());
        client(architecture, records)
    });
    let vendors = vendor_changes(earlier, next, &after).into_findings();
    (held_back.into_iter().chain(vendors).collect(), clients.collect())
}

/// The packages of `newest` with another vendor than an older version, which clients may have. An update may change
/// the architecture to or from that of all machines.
fn vendor_changes(
    earlier: &PoolRecords,
    next: &PoolRecords,
    newest: &[&PoolRecord],
) -> VendorChanges {
    let mut by_name: BTreeMap<&str, Vec<&Facts>> = BTreeMap::new();
    for new in newest.iter().map(|record| &record.indexed.facts) {
        by_name.entry(new.name()).or_default().push(new);
    }
    let mut changes = VendorChanges::default();
    for old in earlier.values().chain(next.values()).map(|record| &record.indexed.facts) {
        let newer = by_name.get(old.name()).into_iter().flatten().filter(|new| {
            let archs = [new.arch(), old.arch()];
            new.compare_versions(old).is_gt() && (archs[0] == archs[1] || archs.contains(&"noarch"))
        });
        let update = newer.max_by(|one, other| one.compare_versions(other));
        if let (Facts::Rpm(from), Some(Facts::Rpm(to))) = (old, update) {
            changes.add(&from.name, &from.vendor, &to.vendor);
        }
    }
    changes
}

/// The packages as clients see them.
pub(super) fn offered<'a>(records: &[&'a PoolRecord]) -> Vec<Offered<'a>> {
    records.par_iter().map(|record| Offered::from(&record.indexed.facts)).collect()
}

/// The newest version of each package for each architecture.
fn newest(records: &PoolRecords) -> Vec<&PoolRecord> {
    let mut newest: BTreeMap<(&str, &str), &PoolRecord> = BTreeMap::new();
    for record in records.values().map(Arc::as_ref) {
        let facts = &record.indexed.facts;
        let best = newest.entry((facts.name(), facts.arch())).or_insert(record);
        if facts.compare_versions(&best.indexed.facts).is_gt() {
            *best = record;
        }
    }
    newest.into_values().collect()
}

/// The download of a client of `architecture` that gets `records`.
fn client<'a>(
    architecture: String,
    records: impl Iterator<Item = &'a PoolRecord>,
) -> ClientDownload {
    let (mut all, mut without) = (Download::default(), Download::default());
    let mut by_arch: BTreeMap<&str, Download> = BTreeMap::new();
    for record in records {
        let size = record.indexed.size;
        all.add(size);
        let archs = record.indexed.facts.gpu_archs();
        if archs.is_empty() {
            without.add(size);
        }
        archs.into_iter().for_each(|arch| by_arch.entry(arch).or_default().add(size));
    }
    let most = by_arch.into_iter().min_by_key(|(_, download)| Reverse(download.bytes));
    let largest_gpu = most.map(|(arch, own)| GpuDownload { arch: arch.to_owned(), own });
    ClientDownload { architecture, all, without_gpu_code: without, largest_gpu }
}
