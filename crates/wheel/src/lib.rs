//! Python wheels: fat wheels in, host wheels and device wheels out.
//!
//! ```text
//! wheel ─ input::wheel ─ split ─ recombine ─ plan ─ pack ─ emit ─► wheels, wheels.json
//! ```
//!
//! `plan` decides the wheels that an input wheel is split into, `pack` makes the content of their members, and `emit`
//! writes the files. Wheels are split one after the other, required ones first, and committed together.

mod batch;
mod emit;
mod pack;
mod plan;
mod shared;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use rockpack_archive::wheel::normalized;
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::run::{Budget, Limits, MemoryUse, threads};
use rockpack_elf::kpack::split_key;
use rockpack_emit::Staging;
use rockpack_emit::pack::Packer;
use rockpack_files::cache::{Cache, CacheSettings};
use rockpack_package::receipt::wheels::{FILE_NAME, SCHEMA, WheelKind, WheelReceipt, WheelRecord};
use rockpack_package::receipt::{CodeObjectRecord, write_lines};
use rockpack_plan::config::{Config, SetScope};
use rockpack_plan::{Shim, recombine};
use rockpack_report::{Code, Findings, InputFile, Progress, Stage, found};
use rockpack_signing::IndexSigner;
use rockpack_split::input::artifact::ScanOptions;
use rockpack_split::input::wheel::{self, Wheel};
use rockpack_split::{self as split, SplitArtifact, SplitPolicy};
use serde::Serialize;

use emit::WriteOptions;
use plan::{PlannedWheel, SplitHosts};

pub use plan::{DeviceNamePattern, check_other_folders, check_requirements, distribution};

#[derive(Debug)]
pub struct WheelSettings {
    /// Wheels, or folders with wheels.
    pub wheels: Vec<PathBuf>,
    /// The folder for the wheels; created if missing.
    pub out: PathBuf,
    /// Groups, rules of databases and of components, and accepted findings.
    pub config: Config,
    pub device_name: DeviceNamePattern,
    pub runtime: HipRuntime,
    /// Normalized names of distributions that other runs split.
    pub split_elsewhere: BTreeSet<String>,
    /// A repository, or a folder, with device wheels of the same releases for other Pythons.
    pub index: Option<PathBuf>,
    pub strict: bool,
    pub skip_bad: bool,
    /// zstd level of the code objects in kernel archives.
    pub archive_level: i32,
    pub jobs: usize,
    pub limits: Limits,
    pub cache: Option<CacheSettings>,
    /// Time of all members, in seconds since 1970.
    pub time: i64,
    /// The signer of the receipt, if it is to be signed.
    pub signer: Option<Arc<dyn IndexSigner>>,
}

/// The HIP runtime that loads the device code of a wheel.
#[derive(Debug)]
pub enum HipRuntime {
    /// The one in the wheel, or the one that its binaries need; it must read kernel archives.
    Own,
    /// Another one, which reads kernel archives and takes its place.
    Other,
    /// Any: binaries register with this library.
    Any(Shim),
}

impl HipRuntime {
    /// The library by which binaries register with any runtime.
    fn shim(&self) -> Option<&Shim> {
        match self {
            Self::Any(shim) => Some(shim),
            Self::Own | Self::Other => None,
        }
    }
}

#[derive(Debug, Serialize)]
pub struct WheelsReport {
    /// The receipt: the last file written.
    #[serde(flatten)]
    pub receipt: WheelReceipt,
    /// Wheels of the earlier set in the output folder that are not in this one and were removed.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub removed: BTreeSet<String>,
    #[serde(skip)]
    pub findings: Findings,
}

/// Splits the wheels. The results replace those of an earlier run in the output folder; after an error the
/// earlier ones stay.
pub fn split_wheels(settings: &WheelSettings, progress: &dyn Progress) -> Result<WheelsReport> {
    let budget = Budget::new(settings.limits);
    threads::with(settings.jobs, || run(settings, &budget, progress))
}

fn run(settings: &WheelSettings, budget: &Budget, progress: &dyn Progress) -> Result<WheelsReport> {
    let cache = settings.cache.as_ref().map(|cache| cache.open(progress)).transpose()?.flatten();
    let mut doubles = Faults::default();
    let mut paths = wheel::find(&settings.wheels, &mut doubles)?;
    let doubles = doubles.finish().err();
    let further = &settings.config.keys.wheels.host_requires;
    wheel::sort_required_first(&mut paths, further, budget);
    let mut left_out = Vec::new();
    let (staging, mut made) = loop {
        let signer = settings.signer.clone();
        let staging = Staging::begin_with(&settings.out, FILE_NAME, false)?.signed_by(signer);
        let run = WheelSplitter { settings, staging: &staging, cache: cache.as_ref(), progress };
        let (made, bad) = run.split_all(&paths, budget);
        if bad.is_empty() && doubles.is_none() {
            break (staging, made);
        }
        // Of two wheels with one name, it is unknown which is bad.
        let can_go_on = doubles.is_none() && batch::can_be_left_out(&bad);
        paths.retain(|path| bad.iter().all(|(bad, _)| bad != path));
        left_out.extend(bad);
        if !settings.skip_bad || !can_go_on || paths.is_empty() {
            report_cache(cache.as_ref(), progress);
            let faults =
                left_out.into_iter().map(|(_, error)| error).chain(doubles).map(Err::<(), _>);
            let failed = Faults::all(faults).and(Err(Error::bug("a fault is gone")));
            return settings.config.accept_in_error(made.findings.explain(failed));
        }
    };
    report_cache(cache.as_ref(), progress);
    made.findings.extend(batch::left_out(&left_out));
    let budget = budget.scope();
    let write = WriteOptions { staging: &staging, time: settings.time, budget: &budget, progress };
    shared::share(&mut made, settings.index.as_deref(), &write)?;
    made.wheels.iter().for_each(|wheel| progress.package(&wheel.file_name, wheel.size));
    let (receipt, findings) = made.into_receipt(settings)?;
    let removed = staging.commit(&BTreeSet::new(), |sink| write_lines(&receipt, sink))?;
    Ok(WheelsReport { receipt, removed, findings })
}

/// Reports the faults of the cache, whether or not the run succeeded.
fn report_cache(cache: Option<&Cache>, progress: &dyn Progress) {
    cache.into_iter().flat_map(Cache::findings).for_each(|finding| progress.warn(&finding));
}

/// The distribution of a file's wheel, and its version with the name of the file.
fn versioned_name(file: &InputFile) -> (String, String) {
    let (distribution, rest) = file.owner.shard().split_once('-').unwrap_or_default();
    let (version, _) = rest.split_once('-').unwrap_or_default();
    (normalized(distribution), format!("{version}/{}", file.path.name()))
}

/// Refuses a copied wheel with the name of a new device wheel, unless hosts are copied, too.
fn refuse_namesakes(wheels: &[WheelRecord]) -> Result<()> {
    let named = |role: WheelKind| -> BTreeSet<String> {
        let own = wheels.iter().filter(|it| it.role == role);
        own.map(|it| normalized(&it.distribution)).collect()
    };
    let copies = named(WheelKind::Copy);
    match copies.intersection(&named(WheelKind::Device)).next() {
        Some(name) if copies.is_disjoint(&named(WheelKind::Host)) => {
            let message = format!("{name} is in the input, but device wheels get its name");
            Err(Error::new(Kind::Conflict, message).hint("split the two in separate runs"))
        }
        _ => Ok(()),
    }
}

#[derive(Default)]
struct SplitResults {
    wheels: Vec<WheelRecord>,
    code_objects: Vec<CodeObjectRecord>,
    findings: Findings,
    /// The distributions of copied device wheels, and of their hosts.
    split_before: BTreeSet<String>,
    /// The binaries whose code is in copied device wheels: version and file name.
    archived: BTreeSet<String>,
    /// The bytes of the wheels that were split, by file name.
    sizes: BTreeMap<String, u64>,
    hosts: SplitHosts,
}

impl SplitResults {
    /// Records the content of a device wheel that is copied.
    fn note_device_wheel(&mut self, wheel: &Wheel, taken: &[SplitArtifact]) {
        self.split_before.extend(taken.iter().map(|part| part.name.name.clone()));
        self.split_before.extend(wheel.pinned());
        let archives = taken.iter().flat_map(|part| &part.archives);
        let keys = archives.flat_map(|archive| archive.reader.toc().rows.keys());
        let paths = keys.map(|key| split_key(key).map_or(key.as_str(), |(path, _)| path));
        // AMD's keys begin with folders of the build.
        let names = paths.filter_map(|path| path.rsplit('/').next());
        self.archived.extend(names.map(|name| format!("{}/{name}", wheel.name.version)));
    }

    /// The receipt of all wheels, and the remaining findings. Fails if warnings are refused.
    fn into_receipt(self, settings: &WheelSettings) -> Result<(WheelReceipt, Findings)> {
        let Self { mut wheels, mut code_objects, mut findings, .. } = self;
        let Self { split_before, archived, sizes, .. } = self;
        wheels.sort_by(|one, other| one.made_of.cmp(&other.made_of));
        let made_of: BTreeMap<&str, &str> =
            wheels.iter().map(|it| (it.file_name.as_str(), it.made_of.as_str())).collect();
        code_objects.sort_by_key(|it| made_of.get(it.package.as_str()));
        refuse_namesakes(&wheels)?;
        findings.extend(emit::pypi_refusals(&wheels)?);
        findings.extend(emit::savings(&sizes, &wheels));
        let device = wheels.iter().find(|it| it.role == WheelKind::Device);
        if let Some(device) = device.filter(|_| settings.device_name.is_without_owner()) {
            let distribution = device.distribution.clone();
            findings.add(found::WheelNamesUnregistered { distribution });
        }
        findings.retain(|finding| {
            if let Some(found::WheelMembersDropped { wheel, .. }) = finding.found() {
                // A copy has all members.
                let is_copied =
                    |it: &WheelRecord| it.role == WheelKind::Copy && it.file_name == *wheel;
                return !wheels.iter().any(is_copied);
            }
            // Other wheels that were split off have them.
            let transformed = finding.found().map(|found::AlreadyTransformed { file }| file);
            let elsewhere = transformed
                .filter(|file| archived.contains(&versioned_name(file).1))
                .or_else(|| finding.found().map(|found::DatabaseUnpaired { file, .. }| file))
                .or_else(|| finding.found().map(|found::DatabaseUnresolved { file, .. }| file));
            elsewhere.is_none_or(|file| !split_before.contains(&versioned_name(file).0))
        });
        findings.sort();
        settings.config.accept(&mut findings, SetScope::Limited);
        if settings.strict {
            let otherwise = "accept them by `accept` in the configuration, or split without it";
            findings.refuse_warnings(otherwise)?;
        }
        let keys = &settings.config.keys.wheels;
        let lists = keys.device_lists().into_iter();
        let receipt = WheelReceipt {
            schema: SCHEMA,
            rockpack_version: env!("CARGO_PKG_VERSION").to_owned(),
            content_date: settings.time,
            wheels,
            host_requires: keys.host_requires.clone(),
            device_requires: lists.flat_map(|(_, list)| list.clone()).collect(),
            code_objects,
            findings: findings.clone(),
        };
        Ok((receipt, findings))
    }
}

/// Splits wheels, with the resources of a run.
struct WheelSplitter<'a> {
    settings: &'a WheelSettings,
    staging: &'a Staging,
    cache: Option<&'a Cache>,
    progress: &'a dyn Progress,
}

impl WheelSplitter<'_> {
    fn split(&self, path: &Path, budget: &Budget, made: &mut SplitResults) -> Result<()> {
        let scan_options = ScanOptions::next_to_output(&self.settings.out, budget);
        let wheel = wheel::read(path, &scan_options, self.progress)?;
        made.findings.extend(plan::check_other_folders(&wheel)?);
        made.findings.extend(wheel.scan.findings.clone());
        let config = &self.settings.config;
        let any_runtime = self.settings.runtime.shim().is_some();
        let policy = SplitPolicy {
            rules: &config.databases,
            // Every HIP runtime loads binaries that keep their device code.
            keeps_fat: &|name| any_runtime || config.keeps_fat(name),
            keeps_old: matches!(self.settings.runtime, HipRuntime::Own),
            any_runtime,
            opens_bundles: true,
            allows_other_machine: &|path| config.allows_other_machine(path),
            cache: self.cache,
        };
        let artifact = wheel.artifact()?;
        self.progress.expect(Stage::Split, artifact.bytes());
        self.progress.begin(Stage::Split);
        let taken = split::split_each(&[artifact], &policy, self.progress);
        self.progress.end(Stage::Split);
        let taken = wheel.scan.inputs.explain(taken)?;
        let Self { settings, staging, progress, .. } = *self;
        let write = WriteOptions { staging, time: settings.time, budget, progress };
        let pattern = &self.settings.device_name;
        let has_binaries = taken.iter().any(|part| part.binaries().next().is_some());
        // The binaries of a device wheel are in another wheel.
        let is_device = !has_binaries && plan::is_device_wheel(&wheel, &taken, pattern);
        if is_device {
            made.note_device_wheel(&wheel, &taken);
        }
        let taken = if is_device { taken } else { split::join(taken, &[artifact], &policy)? };
        if is_device || plan::is_unchanged(&taken) {
            // A host wheel may have such binaries and transformed ones.
            if !has_binaries {
                let hint = "nothing else can be split: leave the wheel as it is, or build it for ROCm 7; --hip-runtime \
                            any splits it for every runtime";
                let findings = Findings::of(taken.iter().map(|part| &part.findings));
                findings.refuse(|code| code == Code::OldRuntimeNeeded, hint)?;
            }
            for part in taken {
                made.findings.extend(recombine::findings_of_unsplit(part, &config.databases)?);
            }
            made.findings.add(found::WheelUnchanged { wheel: wheel.name.to_string() });
            made.hosts.add(&wheel, wheel.metadata.extras(), Vec::new())?;
            made.wheels.push(emit::copy(&wheel, &write)?);
        } else {
            let packed = self.pack(&wheel, taken, budget, made)?;
            let written = self.write(&wheel, packed, &write, made)?;
            made.wheels.extend(written);
        }
        wheel.scan.inputs.recheck()
    }

    /// Packs the wheels made from `wheel`, in the order of the plan.
    fn pack(
        &self,
        wheel: &Wheel,
        taken: Vec<SplitArtifact>,
        budget: &Budget,
        made: &mut SplitResults,
    ) -> Result<Vec<PlannedWheel>> {
        let settings = self.settings;
        self.progress.begin(Stage::Plan);
        let config = &settings.config;
        let recombined = recombine::recombine(taken, config, &config.grouping);
        let planned = recombined.and_then(|recombined| {
            let plan = plan::plan(wheel, &recombined, settings, &mut made.hosts);
            recombined.findings.explain(plan).map(|plan| (recombined, plan))
        });
        self.progress.end(Stage::Plan);
        let (recombined, mut plan) = planned?;
        made.findings.extend(recombined.findings.clone());
        made.findings.extend(std::mem::take(&mut plan.findings));
        let [component] = recombined.components.as_slice() else {
            return Err(Error::bug("a wheel is one component"));
        };
        // If records need more than usual, the frames have less.
        let _records = budget.draw(MemoryUse::Frames, budget.excess_records());
        let packer = Packer {
            spool_dir: &self.settings.out,
            budget: budget.clone(),
            cache: self.cache,
            progress: self.progress,
        };
        let bytes = component.kernels.iter().map(|kernel| kernel.content.len()).sum();
        self.progress.expect(Stage::Pack, bytes);
        self.progress.begin(Stage::Pack);
        let packed = pack::pack(wheel, component, plan, &packer, settings.archive_level);
        self.progress.end(Stage::Pack);
        packed
    }

    fn write(
        &self,
        wheel: &Wheel,
        packed: Vec<PlannedWheel>,
        options: &WriteOptions<'_>,
        made: &mut SplitResults,
    ) -> Result<Vec<WheelRecord>> {
        made.sizes.insert(wheel.name.to_string(), wheel.size);
        for packed in &packed {
            made.code_objects.extend(packed.code_objects.iter().cloned());
            self.progress.expect(Stage::Emit, packed.bytes());
        }
        packed.into_par_iter().map(|packed| emit::write(packed, options)).collect()
    }
}
