//! The pipeline: from artifacts to packages.
//!
//! ```text
//! settings ─ resolve: everything that can be refused without input
//! artifacts ─ artifact::scan ─ split ─ recombine ─ plan ─ pack ─ emit ─► .deb, .rpm, packages.json
//!                                                                  verify ◄─ the finished output
//! ```
//!
//! Each stage is a function from the previous stage's value to its own. `decide` leads from artifacts to packages,
//! `write_set` from packages to files.

mod write;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use rockpack_core::error::{Result, ResultExt};
use rockpack_core::run::{Budget, threads};
use serde::Serialize;

use crate::inspect::discover;
use crate::settings::{BuildSettings, DiscoverSettings, SetSettings};
use rockpack_emit::pack::planned::{self, Digests, Planned};
use rockpack_emit::pack::{self, kept, partition};
use rockpack_emit::{self as emit, Staging, sbom};
use rockpack_files::cache::Cache;
use rockpack_package::indexed::IndexedPackage;
use rockpack_package::receipt::listing::{self, Listing};
use rockpack_package::receipt::{self, PartRecord, Receipt, SetPart};
use rockpack_plan::config::Grouping;
use rockpack_plan::recombine::{self, Recombined};
use rockpack_plan::{self as plan, Plan};
use rockpack_repo as repo;
use rockpack_report::{Code, Findings, Progress, Stage};
use rockpack_split::input::artifact::{self, Scan, ScanOptions};
use rockpack_split::input::database::DatabaseRules;
use rockpack_split::{self as split, SplitArtifact, SplitPolicy};

pub use write::write_key_package;
use write::{WriteOptions, write};

/// A written set, and the index facts of its packages by path.
type WrittenSet = (Built, BTreeMap<PathBuf, IndexedPackage>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Built {
    /// The receipt: the last file written.
    #[serde(flatten)]
    pub receipt: Receipt,
    /// The names of packages that were removed: those of the earlier set in the output folder that are not in
    /// this one. They are not in the receipt, which does not depend on earlier content.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub removed: BTreeSet<String>,
}

/// Builds the set, and frees the memory for the lists of the input at the end.
fn build_set(
    settings: &BuildSettings,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<WrittenSet> {
    threads::with(budget.threads(), || {
        let budget = &budget.scope();
        let BuildSettings { set, output, .. } = settings;
        let cache = output.cache.as_ref().map(|cache| cache.open(progress)).transpose()?.flatten();
        let scan_options = ScanOptions::next_to_output(&output.folder, budget);
        let decided = decide(set, &scan_options, cache.as_ref(), progress);
        let written = decided.and_then(|decided| {
            let findings = decided.findings.clone();
            findings.explain(write_set(decided, settings, cache.as_ref(), budget, progress))
        });
        // The faults of the cache are reported whether or not the run succeeded.
        let faults = cache.iter().flat_map(Cache::findings);
        faults.for_each(|finding| progress.warn(&finding));
        written
    })
}

/// Builds the packages of the artifacts. They replace the set that an earlier build wrote into the output folder; after
/// an error that set is unchanged. Then publishes them if the settings say so, without reading them again: on the same
/// file system, the repository gets hard links. All checks of the repository that need no packages come before the
/// build.
pub fn build(
    settings: &BuildSettings,
    progress: &dyn Progress,
) -> Result<(Built, Option<repo::Published>)> {
    let (jobs, budget) = (settings.set.jobs, Budget::new(settings.cost.limits));
    let repo = settings.publish.clone();
    if let Some(repo) = &repo {
        threads::with(jobs, || repo::check_ahead(repo, &budget))?;
    }
    let (built, indexed) = build_set(settings, &budget, progress)?;
    let Some(repo) = repo else {
        return Ok((built, None));
    };
    let packages = indexed.keys().cloned().collect();
    let repo = repo::RepoOptions { packages, built: indexed, ..repo };
    let published = threads::with(jobs, || repo::publish(&repo, &budget, progress))
        .context(|| "the packages are written, and not published".to_owned());
    let published = built.receipt.findings.explain(published)?;
    Ok((built, Some(published)))
}

/// Decides the packages and predicts their sizes; writes nothing.
pub fn plan_set(
    settings: &SetSettings,
    digests: Digests,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Planned> {
    threads::with(settings.jobs, || {
        let decided = decide(settings, &ScanOptions::within(budget), None, progress)?;
        let DecidedSet { scan, recombined, plan, findings } = &decided;
        let levels = settings.archive_levels;
        let planned = planned::planned(recombined, plan, levels, findings.clone(), digests);
        findings.explain(planned.and_then(|planned| scan.inputs.recheck().map(|()| planned)))
    })
}

/// Decides the packages of the artifacts and divides them into parts for `jobs` machines.
pub fn plan_matrix(
    settings: &SetSettings,
    jobs: u32,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Vec<partition::Job>> {
    threads::with(settings.jobs, || {
        let decided = decide(settings, &ScanOptions::within(budget), None, progress)?;
        let DecidedSet { scan, recombined, plan, findings } = &decided;
        let divided = partition::divide(recombined, plan, jobs);
        let shares = divided.and_then(|shares| scan.inputs.recheck().map(|()| shares));
        findings.explain(shares).map(partition::jobs)
    })
}

/// Finds the targets in each artifact.
pub fn discover(
    settings: &DiscoverSettings,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<discover::Discovery> {
    threads::in_current_pool(|| {
        let prefix = settings.prefix.clone();
        let scan_options = ScanOptions { prefix, ..ScanOptions::within(budget) };
        let scan = artifact::scan(&settings.artifacts, &scan_options)?;
        let rules = DatabaseRules::builtin()?;
        // `build` fails on files that cannot be packaged; here they are findings.
        let split = split::split_all(&scan, &SplitPolicy::lenient(&rules), progress);
        let split = scan.findings.explain(split)?;
        let discovery = discover::discover(&scan, &split);
        discovery.findings.explain(scan.inputs.recheck())?;
        Ok(discovery)
    })
}

/// Writes the decided packages, and their receipt.
fn write_set(
    mut decided: DecidedSet,
    settings: &BuildSettings,
    cache: Option<&Cache>,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<WrittenSet> {
    let BuildSettings { set, output, .. } = settings;
    let part = output.part.map(|part| decided.keep_part(part, settings)).transpose()?;
    let DecidedSet { scan, recombined, plan, findings } = &decided;
    let signer = settings.receipt_signer.clone();
    let receipt_name = receipt::file_name(output.part);
    let staging =
        Staging::begin_with(&output.folder, &receipt_name, output.sbom)?.signed_by(signer);
    let write_options = WriteOptions { settings, budget, staging: &staging, cache };
    let written = write(recombined, plan, &write_options, progress)?;
    scan.inputs.recheck()?;
    let emitted = written.iter().flat_map(|written| &written.emitted);
    let indexed = emitted
        .filter_map(|e| Some((output.folder.join(&e.file_name), e.indexed.clone()?)))
        .collect();
    let mut spdx = None;
    if output.sbom {
        let stamp = i64::from(set.plan.time);
        let document = sbom::document(scan, recombined, plan, &written, stamp, output.part)?;
        spdx = Some(staging.write_sbom(|sink| document.write(sink), budget)?);
    }
    let receipt = emit::receipt(plan, written, spdx, part, findings)?;
    let kept = receipt
        .kept
        .iter()
        .flat_map(|kept| &kept.packages)
        .map(|record| record.file_name.clone())
        .collect();
    let removed = staging.commit(&kept, |sink| receipt::write_lines(&receipt, sink))?;
    Ok((Built { receipt, removed }, indexed))
}

/// A decided set, before anything is written.
struct DecidedSet {
    scan: Scan,
    recombined: Recombined,
    plan: Plan,
    /// The findings of all stages.
    findings: Findings,
}

impl DecidedSet {
    /// Keeps only the packages of `part`, and returns the record of the whole set.
    fn keep_part(&mut self, part: SetPart, settings: &BuildSettings) -> Result<PartRecord> {
        let settings = settings.bytes_key();
        let digest = partition::digest(&self.recombined, &self.plan, &self.findings, &settings)?;
        partition::keep(&self.recombined, &mut self.plan, part, digest)
    }
}

/// The pure part of a build: from artifacts to packages.
fn decide(
    settings: &SetSettings,
    scan_options: &ScanOptions,
    cache: Option<&Cache>,
    progress: &dyn Progress,
) -> Result<DecidedSet> {
    let decided = decide_scanned(settings, scan_options, cache, progress);
    settings.plan.config.accept_in_error(decided)
}

fn decide_scanned(
    settings: &SetSettings,
    scan_options: &ScanOptions,
    cache: Option<&Cache>,
    progress: &dyn Progress,
) -> Result<DecidedSet> {
    let listings = settings.since.iter().map(|path| {
        // A receipt with a bad signature is refused.
        let judge = |receipt: &[u8]| settings.trust.receipt_doubt(path, receipt);
        listing::read(path, &scan_options.budget, &judge)
    });
    let earlier = listings.collect::<Result<Vec<_>>>()?;
    let prefix = Some(settings.plan.prefix.path().clone());
    let (fetch_cache, expect) = (settings.fetch_cache.clone(), settings.expect.clone());
    let scan_options = ScanOptions { prefix, fetch_cache, expect, ..scan_options.clone() };
    let mut scan = artifact::scan(&settings.artifacts, &scan_options)?;
    let joined = join_scanned(settings, &mut scan, &earlier, cache, progress);
    let (mut recombined, mut plan) = scan.findings.explain(joined)?;
    plan.findings.clone().explain(kept::keep(&recombined, &mut plan))?;
    plan.note_effect(&settings.plan, &earlier);
    let stored = settings.stored_formats();
    if !stored.is_empty()
        && let Some(stored) = pack::archives_stored(&recombined, &plan, stored)?
    {
        plan.findings.add(stored);
    }
    let mut findings = scan.findings.clone();
    findings.extend(std::mem::take(&mut recombined.findings));
    findings.extend(std::mem::take(&mut plan.findings));
    findings.sort();
    settings.plan.config.accept(&mut findings, settings.scope);
    let hint = "set `hip_runtime = \"any\"` in the configuration (docs/guides/package-what-you-have.md), build the runtime with ROCM_KPACK_ENABLED, or accept \
                R143 where another runtime takes its place";
    let refused = findings.refuse(|code| code == Code::SetRuntimeCannotRead, hint);
    findings.notes().explain(refused)?;
    if settings.strict {
        let otherwise = "accept them by `accept` in the configuration, or build without it";
        findings.refuse_warnings(otherwise)?;
    }
    Ok(DecidedSet { scan, recombined, plan, findings })
}

/// The components of a scan, and the packages of a set that updates `earlier` ones. The scan loses its trees.
fn join_scanned(
    settings: &SetSettings,
    scan: &mut Scan,
    earlier: &[Listing],
    cache: Option<&Cache>,
    progress: &dyn Progress,
) -> Result<(Recombined, Plan)> {
    let config = &settings.plan.config;
    let split_options = SplitPolicy {
        rules: &config.databases,
        keeps_fat: &|name| config.keeps_fat(name),
        // `runtime_relation` requires the runtime of a set, so a finding is enough.
        keeps_old: false,
        any_runtime: settings.plan.shim.is_some(),
        opens_bundles: true,
        allows_other_machine: &|path| config.allows_other_machine(path),
        cache,
    };
    let split = split::split_all(scan, &split_options, progress)?;
    progress.begin(Stage::Plan);
    let grouping = grouping(settings, scan, &split, progress);
    let list = settings.packages.as_ref().map(|list| list.owners_in(scan));
    let artifacts = scan.shards.iter_mut().flat_map(|shard| &mut shard.artifacts);
    artifacts.for_each(|artifact| artifact.prefixes.clear());
    let mut recombined = recombine::recombine(split, config, &grouping)?;
    if let Some(shim) = &settings.plan.shim {
        let added = shim.add_to(&mut recombined, config);
        recombined.findings.explain(added)?;
    }
    let plan = plan::plan(&recombined, &settings.plan, list.as_ref(), earlier);
    let plan = recombined.findings.explain(plan)?;
    progress.end(Stage::Plan);
    Ok((recombined, plan))
}

/// The groups and the primary shard from the configuration, or from the artifacts.
fn grouping<'a>(
    settings: &'a SetSettings,
    scan: &Scan,
    split: &[SplitArtifact],
    progress: &dyn Progress,
) -> Cow<'a, Grouping> {
    if let Some(grouping) = &settings.grouping {
        return Cow::Borrowed(grouping);
    }
    let found = discover::discover(scan, split);
    let (grouping, note) = discover::default_grouping(&settings.artifacts, &found);
    note.iter().for_each(|note| progress.note(note));
    Cow::Owned(grouping)
}
