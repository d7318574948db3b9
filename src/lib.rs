//! rockpack turns ROCm build artifacts into distribution packages in one pass.
//!
//! ```text
//! artifacts ─ artifact::scan ─ split ─ recombine ─ plan ─ pack ─ emit ─► .deb, .rpm, packages.json
//!                                                                  verify ◄─ the finished output
//! ```
//!
//! Each stage is a function from the previous stage's value to its own; nothing reaches back.
//! [`build`] is that line.

pub mod artifact;
pub mod cache;
pub mod cli;
pub mod config;
pub mod content;
pub mod database;
pub mod dependencies;
pub mod difference;
pub mod directories;
pub mod discover;
pub mod emit;
pub mod error;
pub mod extract;
pub mod files;
pub mod formats;
pub mod gfx;
pub mod host_binary;
pub mod indexed;
pub mod inspect;
pub mod keyring;
pub mod listing;
pub mod once;
pub mod options;
pub mod pack;
pub mod package;
pub mod partition;
pub mod plan;
pub mod planned;
pub mod policy;
pub mod receipt;
pub mod recombine;
pub mod render;
pub mod repo;
pub mod report;
pub mod run;
pub mod sbom;
pub mod signing;
pub mod split;
pub mod tree;
pub mod verify;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Serialize;

use artifact::{Scan, ScanOptions};
use cache::Cache;
use config::PackageList;
use database::Rules;
use emit::Staging;
use error::{Error, Kind, Result, ResultExt};
use indexed::Indexed;
pub use options::{BuildOptions, CacheOptions, SetOptions};
use package::Format;
use plan::{Import, Plan, PlanOptions};
use planned::{Digests, Planned};
use receipt::{Part, PartRecord, Receipt};
use recombine::Recombined;
use report::{Findings, Progress, Stage};
use run::{Budget, threads};
use split::SplitOptions;
pub use write::write_key_package;
use write::{Means, WriteOptions, whole_set, write};

impl CacheOptions {
    fn open(&self, set: &SetOptions) -> Result<Cache> {
        artifact::refuse_inside(&set.artifacts, &self.folder, "cache")?;
        Cache::open(&self.folder, self.limit)
    }
}

/// A set that was written, and what the index of a repository says of its packages, by path.
type WrittenSet = (Built, BTreeMap<PathBuf, Indexed>);

/// What a build wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Built {
    /// The receipt: the last file written.
    #[serde(flatten)]
    pub receipt: Receipt,
    /// Packages of the earlier set in the output folder that are not in this one and were removed,
    /// by name. They are not in the receipt, which is the same whatever was there before.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub removed: BTreeSet<String>,
}

/// Builds the packages of the artifacts. They replace the set that an earlier build wrote into the
/// output folder; on an error that set stays.
pub fn build(options: &BuildOptions, progress: &dyn Progress) -> Result<Built> {
    build_set(options, false, progress).map(|(built, _)| built)
}

fn build_set(options: &BuildOptions, indexed: bool, progress: &dyn Progress) -> Result<WrittenSet> {
    let means = Means::of(options)?;
    threads::with(means.budget.threads(), || run_build(options, &means, indexed, progress))
}

/// [`build`], and publishes what was written. The packages are not read again; where the repository
/// is on the same file system, they are hard links there. `repo` says where and how; what can be
/// refused of it without the packages is refused before they are built.
pub fn build_and_publish(
    options: &BuildOptions,
    repo: repo::RepoOptions<'_>,
    progress: &dyn Progress,
) -> Result<(Built, repo::Published)> {
    let formats = match repo.formats.is_empty() {
        true => options.set.formats.clone(),
        false => repo.formats.clone(),
    };
    let repo = repo::RepoOptions { formats, ..repo };
    let jobs = options.set.jobs;
    threads::with(jobs, || repo::check_ahead(&repo))?;
    let (built, indexed) = build_set(options, true, progress)?;
    let packages = indexed.keys().cloned().collect();
    let repo = repo::RepoOptions { packages, built: indexed, ..repo };
    let doing = || "the packages are written, and not published".to_owned();
    let published = threads::with(jobs, || repo::publish(&repo, progress)).context(doing)?;
    Ok((built, published))
}

/// Decides the packages of the artifacts and says what they would be; writes nothing.
pub fn plan_set(
    options: &SetOptions,
    digests: Digests,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Planned> {
    threads::with(options.jobs, || {
        let decided = decide(options, &ScanOptions::within(budget), progress)?;
        let Decided { scan, recombined, plan, findings } = &decided;
        let planned = planned::planned(recombined, plan, findings.clone(), digests)?;
        scan.inputs.recheck()?;
        Ok(planned)
    })
}

/// Decides the packages of the artifacts and cuts them into parts for `jobs` machines.
pub fn plan_matrix(
    options: &SetOptions,
    jobs: u32,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<partition::Matrix> {
    threads::with(options.jobs, || {
        let decided = decide(options, &ScanOptions::within(budget), progress)?;
        let shares = partition::divide(&decided.recombined, &decided.plan, jobs)?;
        decided.scan.inputs.recheck()?;
        Ok(partition::matrix(shares))
    })
}

/// Looks which targets are inside of which artifact of `artifacts`, shards or folders of shards.
pub fn discover(
    artifacts: &[PathBuf],
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<discover::Discovery> {
    threads::some(|| {
        let scan = artifact::scan_with(artifacts, &ScanOptions::within(budget))?;
        let rules = Rules::builtin()?;
        // A binary that cannot be transformed is for `build` to refuse; here it is a finding.
        let split_options = SplitOptions { rules: &rules, keeps_fat: &|_| true };
        let split = split::split_all(&scan, &split_options, progress)?;
        let discovery = discover::discover(&scan, &split);
        scan.inputs.recheck()?;
        Ok(discovery)
    })
}

fn run_build(
    options: &BuildOptions,
    means: &Means,
    indexed: bool,
    progress: &dyn Progress,
) -> Result<WrittenSet> {
    check_signer(options)?;
    artifact::refuse_inside(&options.set.artifacts, &options.out, "output folder")?;
    let cache = options.cache.as_ref().map(|cache| cache.open(&options.set)).transpose()?;
    let scan_options = ScanOptions::beside(&options.out, &means.budget);
    let mut decided = decide(&options.set, &scan_options, progress)?;
    let keep_part = |part| decided.keep_part(part, &means.settings(options)?);
    let part = options.part.map(keep_part).transpose()?;
    let Decided { scan, recombined, plan, findings } = &decided;
    let staging = Staging::begin_part(&options.out, options.part)?;
    if options.sbom {
        staging.expect_sbom()?;
    }
    let cache = cache.as_ref();
    let write_options = WriteOptions { options, means, staging: &staging, cache, indexed };
    let written = write(recombined, plan, &write_options, progress)?;
    for finding in cache.into_iter().flat_map(Cache::findings) {
        progress.warn(&finding);
    }
    scan.inputs.recheck()?;
    let emitted = written.iter().flat_map(|written| &written.emitted);
    let indexed =
        emitted.filter_map(|e| Some((options.out.join(&e.file_name), e.indexed.clone()?)));
    let indexed = indexed.collect();
    if options.sbom {
        let stamp = options.set.source_date_epoch.unwrap_or(i64::from(plan.content_date));
        let document = sbom::document(scan, recombined, plan, &written, stamp, options.part)?;
        staging.write_sbom(|sink| document.write(sink))?;
    }
    let receipt = emit::receipt(whole_set(plan), written, part, findings);
    let removed = staging.commit(|sink| receipt.write(sink))?;
    Ok((Built { receipt, removed }, indexed))
}

/// A set before anything of it is written.
struct Decided {
    scan: Scan,
    recombined: Recombined,
    plan: Plan,
    /// Those of all stages.
    findings: Findings,
}

impl Decided {
    /// Leaves what belongs to `part`, and says what the whole set is.
    fn keep_part(&mut self, part: Part, settings: &str) -> Result<PartRecord> {
        let digest = partition::digest(&self.recombined, &self.plan, &self.findings, settings)?;
        partition::keep(&self.recombined, &mut self.plan, part, digest)
    }
}

/// The pure part of a build: from artifacts to packages.
fn decide(
    options: &SetOptions,
    scan_options: &ScanOptions,
    progress: &dyn Progress,
) -> Result<Decided> {
    let scan = artifact::scan_with(&options.artifacts, scan_options)?;
    let rules = options.config.database_rules()?;
    let keeps_fat = |name: &_| options.config.keeps_fat(name);
    let split_options = SplitOptions { rules: &rules, keeps_fat: &keeps_fat };
    let split = split::split_all(&scan, &split_options, progress)?;
    progress.begin(Stage::Plan);
    let mut recombined = recombine::recombine(split, &options.config)?;
    let mut plan = plan::plan(&recombined, &options.config, &plan_options(options, &scan))?;
    progress.end(Stage::Plan);
    let findings = findings(&scan, &mut recombined.findings, &mut plan.findings);
    if options.strict {
        findings.refuse_warnings()?;
    }
    Ok(Decided { scan, recombined, plan, findings })
}

/// A key that cannot sign is refused before anything is read.
fn check_signer(options: &BuildOptions) -> Result<()> {
    let Some(signer) = &options.signer else {
        return Ok(());
    };
    if !options.set.formats.contains(&Format::Rpm) && !options.signs_indexes {
        let message = "a signing key was given, but only .rpm packages are signed";
        let hint = "leave --sign-key out, or make .rpm packages, too";
        return Err(Error::new(Kind::Usage, message).hint(hint));
    }
    let date = options.set.source_date_epoch.unwrap_or(i64::from(options.set.config.content_date));
    signer.sign(&[], u32::try_from(date).unwrap_or(u32::MAX)).map(drop)
}

fn plan_options(options: &SetOptions, scan: &Scan) -> PlanOptions {
    let import = |list: &PackageList| Import { list: list.clone(), places: plan::Places::of(scan) };
    PlanOptions {
        import: options.packages.as_ref().map(import),
        scheme: options.scheme.clone(),
        variant: options.variant.clone(),
        version: options.version.clone(),
        release: options.release.clone(),
        prefix: options.prefix.clone(),
        distro: options.distro.clone(),
        formats: options.formats.clone(),
        only: options.only.clone(),
        changelog_date: options.source_date_epoch,
        since: options.since.clone(),
    }
}

fn findings(scan: &Scan, recombined: &mut Findings, plan: &mut Findings) -> Findings {
    let mut findings = scan.findings.clone();
    findings.extend(std::mem::take(recombined));
    findings.extend(std::mem::take(plan));
    findings.sort();
    findings
}
