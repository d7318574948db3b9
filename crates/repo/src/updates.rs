//! The effect of a publication on clients of a channel: updates that they hold back, their downloads, and unmet
//! requirements.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rayon::prelude::*;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_package::Format;
use rockpack_package::indexed::IndexMetadata;
use rockpack_package::offered::OfferedPackage;
use rockpack_package::requirement::Bound;
use rockpack_package::resolver::{Origin, Resolver, by_machine, each_unmet};
use rockpack_package::updates::{Effect, VendorChanges};
use rockpack_report::words::{counted, few};
use rockpack_report::{Finding, found};

use super::channel::Channel;
use super::input::GivenPackage;
use super::next::Publication;
use super::published::{ClientDownload, Download, GpuDownload};
use super::python;
use super::state::{PoolRecord, PoolRecords};

/// The effect of `next` on clients with the newest earlier packages: findings about updates that are held back, and
/// the downloads by architecture.
pub(super) fn of(
    run: &Publication<'_>,
    format: Format,
    next: &PoolRecords,
) -> (Vec<Finding>, Vec<ClientDownload>) {
    let earlier = &run.earlier.records;
    let (before, after) = (newest(earlier), newest(next));
    let effect = Effect::of(format, &offered(&before), &offered(&after));
    let held_back = (!effect.misfits.is_empty()).then(|| {
        Finding::from(found::UpdateHeldBack {
            channel: run.channel.name(),
            format,
            misfits: effect.misfits,
            held_back: effect.held_back.into_iter().collect(),
        })
    });
    let clients = effect.downloads.into_iter().map(|(architecture, positions)| {
        let records = positions.into_iter().filter_map(|at| after.get(at).copied());
        client(architecture, records)
    });
    // Packages whose vendor differs from that of an older version, which clients may have. An update may change the
    // architecture to or from `noarch`.
    let mut by_name: BTreeMap<&str, Vec<&IndexMetadata>> = BTreeMap::new();
    for new in after.iter().map(|record| &record.indexed.facts) {
        by_name.entry(new.name()).or_default().push(new);
    }
    let mut vendors = VendorChanges::default();
    for old in earlier.values().chain(next.values()).map(|record| &record.indexed.facts) {
        let newer = by_name.get(old.name()).into_iter().flatten().filter(|new| {
            let archs = [new.arch(), old.arch()];
            new.compare_versions(old).is_gt() && (archs[0] == archs[1] || archs.contains(&"noarch"))
        });
        let update = newer.max_by(|one, other| one.compare_versions(other));
        if let (IndexMetadata::Rpm(from), Some(IndexMetadata::Rpm(to))) = (old, update) {
            vendors.add(&from.name, &from.vendor, &to.vendor);
        }
    }
    (held_back.into_iter().chain(vendors.into_findings()).collect(), clients.collect())
}

fn offered<'a>(records: &[&'a PoolRecord]) -> Vec<OfferedPackage<'a>> {
    records.par_iter().map(|record| OfferedPackage::from(&record.indexed.facts)).collect()
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
    let mut by_arch: BTreeMap<String, Download> = BTreeMap::new();
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
    let largest_gpu = most.map(|(arch, own)| GpuDownload { arch, own });
    ClientDownload { architecture, all, without_gpu_code: without, largest_gpu }
}

pub(super) const UNMET_HINT: &str = "give the required packages to the same run of `repo`, or also remove those that require them (--remove NAME \
     for each); --allow=unmet publishes anyway";

/// The packages with a requirement, by the requirement and the package in their receipt that would meet it.
type Needed<'a> = BTreeMap<(String, Option<&'a String>), BTreeSet<String>>;

/// Fails if packages of `next` have requirements that no package of the channel meets, and that only this repository
/// can meet: those of new packages on their own source or their receipt, and those of other packages on a removed one.
/// `verify` reports requirements that were already unmet.
pub(super) fn check_requirements(
    run: &Publication<'_>,
    next: &PoolRecords,
    given: &[&GivenPackage],
) -> Result<()> {
    let (channel, earlier, options) = (run.channel, &run.earlier.records, run.options);
    if options.changes.allow_unmet || earlier.keys().eq(next.keys()) {
        return Ok(());
    }
    let Some(format) = channel.format() else { return python::check_hosts(earlier, next) };
    let siblings = given.iter().map(|given| &given.siblings);
    let paths = given.iter().map(|given| given.indexed.facts.pool_path(&options.component));
    let siblings: BTreeMap<String, _> = paths.zip(siblings).collect();
    let removes = earlier.keys().any(|path| !next.contains_key(path));
    let [before, after] = [earlier, next]
        .map(|records| offered(&records.values().map(Arc::as_ref).collect::<Vec<_>>()));
    let [old, new] = [earlier, next].map(|records| records.keys().collect::<Vec<_>>());
    let had = Resolver::new(format, before.iter().collect());
    let mut open = BTreeSet::new();
    each_unmet(format, &before, &by_machine(format, &before), |_, it| {
        open.insert((old[it.package], it.requirement));
    });
    let mut needed = Needed::new();
    each_unmet(format, &after, &by_machine(format, &after), |_, it| {
        let (path, package) = (new[it.package], &after[it.package]);
        let named = siblings.get(path);
        let sibling_of = |bound: &Bound<'_>| named?.get(&(format, bound.name.to_string()));
        let is_own = |bound: &Bound<'_>| sibling_of(bound).is_some() || had.knows(&bound.name);
        // Another alternative may be in the distribution.
        let asks_others = it.requirement.holds(&|bound| is_own(bound).then_some(false)).is_none();
        let sibling = it.requirement.bounds().into_iter().find_map(sibling_of);
        let is_fault = if earlier.contains_key(path) {
            removes && !asks_others && !open.contains(&(path, it.requirement))
        } else {
            it.origin == Origin::SameSource || sibling.is_some() && !asks_others
        };
        if is_fault {
            let by = needed.entry((it.requirement.to_string(), sibling)).or_default();
            by.insert(package.name_and_version());
        }
    });
    Error::gather(unmet_faults(channel, needed)).map_or(Ok(()), Err)
}

/// One error for all requirements that the same packages have on the same package.
fn unmet_faults(channel: &Channel, needed: Needed<'_>) -> Vec<Error> {
    let mut together: BTreeMap<(Option<&String>, BTreeSet<String>), Vec<String>> = BTreeMap::new();
    for ((requirement, sibling), by) in needed {
        together.entry((sibling, by)).or_default().push(requirement);
    }
    let faults = together.into_iter().map(|((sibling, by), requirements)| {
        let file = sibling.map(|file| format!("; {file} is not given")).unwrap_or_default();
        let by: Vec<String> = by.into_iter().collect();
        let (count, by) = (counted(by.len(), "package"), few(&by, 3));
        let needed = requirements.join(" and ");
        let message =
            format!("the repository would lack {needed}, required by {count} ({by}){file}");
        Error::new(Kind::Conflict, message).structure(channel.name()).hint(UNMET_HINT)
    });
    faults.collect()
}
