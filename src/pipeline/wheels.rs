//! Wheels in, wheels out.
//!
//! ```text
//! wheel ─ input::wheel ─ split ─ recombine ─ plan::wheels ─ pack::wheels ─ emit::wheels ─► wheels, wheels.json
//! ```
//!
//! The wheels are split one after the other, and the results appear together.

use std::collections::BTreeSet;
use std::path::Path;

use rayon::prelude::*;
use rockpack_base::error::{Error, Kind, Result, ResultExt};
use rockpack_base::formats::wheel::normalized;
use rockpack_base::run::{Budget, Use, threads};
use serde::Serialize;

use super::{open_cache, warn_of_faults};
use crate::cache::Cache;
use crate::config::SetScope;
use crate::emit::Staging;
use crate::emit::wheels::{self, WriteOptions};
use crate::input::artifact::ScanOptions;
use crate::input::wheel::{self, Wheel};
use crate::pack::wheels::PackedWheel;
use crate::pack::{self, PackOptions};
use crate::plan;
use crate::receipt::wheels::{SCHEMA, WheelKind, WheelReceipt, WheelRecord};
use crate::receipt::{CodeObjectRecord, FindingRecord};
use crate::recombine;
use crate::report::{Finding, Findings, Progress, Stage};
use crate::settings::WheelSettings;
use crate::split::{self, SplitArtifact, SplitPolicy};

/// The result of a run.
#[derive(Debug, Serialize)]
pub struct WheelsMade {
    /// The receipt: the last file written.
    #[serde(flatten)]
    pub receipt: WheelReceipt,
    /// Wheels of the earlier set in the output folder that are not in this one and were removed.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub removed: BTreeSet<String>,
    /// Facts that were noticed.
    #[serde(skip)]
    pub findings: Findings,
}

/// Splits the wheels. The results replace those of an earlier run in the output folder; after an error the
/// earlier ones stay.
pub fn split_wheels(settings: &WheelSettings, progress: &dyn Progress) -> Result<WheelsMade> {
    let budget = Budget::new(settings.limits);
    threads::with(settings.jobs, || run(settings, &budget, progress))
}

fn run(settings: &WheelSettings, budget: &Budget, progress: &dyn Progress) -> Result<WheelsMade> {
    let cache = open_cache(settings.cache.as_ref(), progress)?;
    let paths = wheel::find(&settings.wheels)?;
    let staging = Staging::begin_wheels(&settings.out)?;
    let mut made = Made::default();
    let split = paths.iter().try_for_each(|path| {
        let run = Run { settings, staging: &staging, cache: cache.as_ref(), progress };
        let done = run
            .split(path, &budget.scope(), &mut made)
            .context(|| format!("splitting {}", path.display()));
        settings.plan.config.accept_of_error(made.findings.explain(done))
    });
    warn_of_faults(cache.as_ref(), progress);
    split?;
    let Made { wheels, code_objects, mut findings } = made;
    refuse_namesakes(&wheels)?;
    findings.sort();
    settings.plan.config.accept(&mut findings, SetScope::Limited);
    if settings.strict {
        let otherwise = "accept them by `accept` in the configuration, or split without it";
        findings.notes().explain(findings.refuse_warnings(otherwise))?;
    }
    let receipt = WheelReceipt {
        schema: SCHEMA,
        generator: env!("CARGO_PKG_VERSION").to_owned(),
        time: settings.time,
        wheels,
        host_requires: settings.plan.config.keys.wheels.host_requires.clone(),
        code_objects,
        findings: FindingRecord::of(&findings),
    };
    let removed = staging.commit(&BTreeSet::new(), |sink| receipt.write(sink))?;
    Ok(WheelsMade { receipt, removed, findings })
}

/// Refuses a copied wheel with the name of a device wheel that was made, unless hosts are copied as well.
fn refuse_namesakes(wheels: &[WheelRecord]) -> Result<()> {
    let named = |role: WheelKind| -> BTreeSet<String> {
        let own = wheels.iter().filter(|it| it.role == role);
        own.map(|it| normalized(&it.distribution)).collect()
    };
    let copies = named(WheelKind::Copy);
    match copies.intersection(&named(WheelKind::Device)).next() {
        Some(name) if copies.is_disjoint(&named(WheelKind::Host)) => {
            let message = format!("{name} is in the input, and device wheels have its name");
            Err(Error::new(Kind::Conflict, message).hint("split the two by themselves"))
        }
        _ => Ok(()),
    }
}

/// The results so far.
#[derive(Default)]
struct Made {
    wheels: Vec<WheelRecord>,
    code_objects: Vec<CodeObjectRecord>,
    findings: Findings,
}

/// The means to split one wheel.
struct Run<'a> {
    settings: &'a WheelSettings,
    staging: &'a Staging,
    cache: Option<&'a Cache>,
    progress: &'a dyn Progress,
}

impl Run<'_> {
    /// Splits the wheel at `path`.
    fn split(&self, path: &Path, budget: &Budget, made: &mut Made) -> Result<()> {
        let scan_options = ScanOptions::beside(&self.settings.out, budget);
        let wheel = wheel::read(path, &scan_options, self.progress)?;
        plan::wheels::refuse_elsewhere(&wheel)?;
        made.findings.extend(wheel.scan.findings.clone());
        let config = &self.settings.plan.config;
        let policy = SplitPolicy {
            rules: &config.databases,
            keeps_fat: &|name| config.keeps_fat(name),
            allows_other_machine: &|path| config.allows_other_machine(path),
            cache: self.cache,
        };
        let artifact = wheel.artifact()?;
        self.progress.expect(Stage::Split, artifact.bytes());
        self.progress.begin(Stage::Split);
        let taken = split::take_apart(&[artifact], &policy, self.progress);
        self.progress.end(Stage::Split);
        let taken = wheel.scan.inputs.explain(taken)?;
        let write = WriteOptions {
            staging: self.staging,
            time: self.settings.time,
            budget,
            progress: self.progress,
        };
        if plan::wheels::is_unchanged(&wheel, &taken, &self.settings.plan.device_name) {
            // A copy has them all.
            let own = wheel.name.to_string();
            made.findings.retain(
                |it| !matches!(it, Finding::WheelMembersDropped { wheel, .. } if *wheel == own),
            );
            made.findings.add(Finding::WheelUnchanged { wheel: own });
            let written = wheels::copy(&wheel, &write)?;
            made.wheels.push(wheels::copy_record(written, &wheel));
        } else {
            let taken = split::join(taken, &[artifact], &policy)?;
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
        made: &mut Made,
    ) -> Result<Vec<PackedWheel>> {
        let settings = &self.settings.plan;
        self.progress.begin(Stage::Plan);
        let config = &settings.config;
        let recombined = recombine::recombine(taken, config, &config.grouping);
        let planned = recombined.and_then(|recombined| {
            let plan = plan::wheels::plan(wheel, &recombined, settings);
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
        let _records = budget.draw(Use::Frames, budget.excess_records());
        let options = PackOptions {
            level: self.settings.archive_level,
            spool_dir: &self.settings.out,
            budget: budget.clone(),
            cache: self.cache,
            progress: self.progress,
        };
        let bytes = component.kernels.iter().map(|kernel| kernel.content.len()).sum();
        self.progress.expect(Stage::Pack, bytes);
        self.progress.begin(Stage::Pack);
        let packed = pack::wheels::pack(wheel, component, plan, &options);
        self.progress.end(Stage::Pack);
        packed
    }

    /// Writes `packed`, several at a time.
    fn write(
        &self,
        wheel: &Wheel,
        packed: Vec<PackedWheel>,
        options: &WriteOptions<'_>,
        made: &mut Made,
    ) -> Result<Vec<WheelRecord>> {
        for packed in &packed {
            made.code_objects.extend(packed.code_objects.iter().cloned());
            self.progress.expect(Stage::Emit, packed.bytes());
        }
        let written: Vec<Result<WheelRecord>> = packed
            .into_par_iter()
            .map(|packed| {
                let (role, distribution) = (packed.role.clone(), packed.distribution.clone());
                let written = wheels::write(packed, options)?;
                Ok(wheels::record(written, wheel, &role, &distribution))
            })
            .collect();
        let written = written.into_iter().collect::<Result<Vec<_>>>()?;
        for WheelRecord { file_name, size, .. } in &written {
            let reasons = wheels::pypi_refusals(&file_name.parse()?, *size);
            if !reasons.is_empty() {
                let wheel = file_name.clone();
                made.findings.add(Finding::WheelNotForPypi { wheel, reasons });
            }
        }
        Ok(written)
    }
}
