//! Packs the packages of a plan one after the other, and writes each on its own thread.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rockpack_core::content::{Content, hex};
use rockpack_core::error::Result;
use rockpack_core::run::{Budget, MemoryUse};

use crate::settings::BuildSettings;
use rockpack_emit::pack::{PackedPackage, Packer, SetPacker};
use rockpack_emit::{
    self, Compression, Contexts, EmitOptions, Staging, WorkerSlot, WrittenPackage,
};
use rockpack_files::cache::Cache;
use rockpack_package::Package;
use rockpack_package::indexed::IndexedPackage;
use rockpack_package::lengths::refuse_overlong;
use rockpack_plan::Plan;
use rockpack_plan::config::Config;
use rockpack_plan::recombine::Recombined;
use rockpack_report::{Progress, Silent, Stage};
use rockpack_signing::OpenPgpKey;
use serde_json::json;

impl BuildSettings {
    /// All settings outside the plan that affect the bytes of packages.
    pub(crate) fn bytes_key(&self) -> String {
        let (compression, levels) = (self.cost.compression, self.cost.archive_levels);
        let signer = self.signer.as_ref().map(|signer| signer.fingerprint());
        format!("{compression:?} {levels:?} {:?} {signer:?}", self.set.plan.time)
    }
}

/// What `write` needs besides the plan.
pub(crate) struct WriteOptions<'a> {
    pub settings: &'a BuildSettings,
    pub budget: &'a Budget,
    pub staging: &'a Staging,
    pub cache: Option<&'a Cache>,
}

/// Packs one package after the other on all cores and writes each in its turn.
pub(crate) fn write(
    recombined: &Recombined,
    plan: &Plan,
    write_options: &WriteOptions<'_>,
    progress: &dyn Progress,
) -> Result<Vec<WrittenPackage>> {
    let WriteOptions { settings, budget, staging, cache } = *write_options;
    let BuildSettings { set, output, cost, .. } = settings;
    // Records that exceed their budget reduce that of frames.
    let _records = budget.draw(MemoryUse::Frames, budget.excess_records());
    let packer = Packer { spool_dir: &output.folder, budget: budget.clone(), cache, progress };
    let emit_options = EmitOptions {
        jobs: set.jobs,
        budget: budget.clone(),
        contexts: Contexts::default(),
        compression: cost.compression,
        content_date: plan.content_date,
        source_date_epoch: set.plan.time,
        indexed: settings.publish.is_some(),
        sha1: output.sbom,
        signer: settings.signer.as_ref(),
        cache,
        progress,
    };
    let mut packer = SetPacker::new(recombined, plan, &packer, cost.archive_levels);
    progress.expect(Stage::Pack, packer.device_bytes());
    progress.expect(Stage::Emit, packer.known_bytes()?);
    rockpack_emit::schedule_packages(
        &plan.packages,
        &emit_options,
        |package| packer.pack(package),
        |packed, slot| write_one(packed, slot, staging, &emit_options),
    )
}

/// Writes one package. Frees its content and worker slot before waiting for fsync.
fn write_one(
    packed: PackedPackage,
    slot: WorkerSlot,
    staging: &Staging,
    options: &EmitOptions<'_>,
) -> Result<WrittenPackage> {
    let PackedPackage { package, mut code_objects, code_files, made } = packed;
    options.progress.expect(Stage::Emit, made);
    let unsynced = rockpack_emit::write_package(&package, staging, options)?;
    let role = package.role.clone();
    drop((package, slot));
    let emitted = unsynced.seal(staging, options)?;
    let of_code = if code_files.is_empty() { &[] } else { emitted.as_slice() };
    let digests = rockpack_emit::file_digests(of_code);
    let records = code_files.into_iter().map(|code| code.record(&digests));
    code_objects.extend(records.collect::<Result<Vec<_>>>()?);
    Ok(WrittenPackage { role, code_objects, emitted })
}

/// Writes the package with the keys of a repository into `folder`, and returns the index facts of its files.
/// Its date is fixed, so the same package and signer give the same bytes.
pub fn write_key_package(
    package: &Package<Content>,
    folder: &Path,
    signer: Option<&Arc<OpenPgpKey>>,
    budget: &Budget,
) -> Result<BTreeMap<PathBuf, IndexedPackage>> {
    refuse_overlong(std::slice::from_ref(package))?;
    let date = Config::defaults()?.content_date;
    let options = EmitOptions {
        jobs: 1,
        budget: budget.clone(),
        contexts: Contexts::default(),
        compression: Compression::XZ.into(),
        content_date: date,
        source_date_epoch: date,
        indexed: true,
        sha1: false,
        signer,
        cache: None,
        progress: &Silent,
    };
    let staging = Staging::begin(folder)?;
    let emitted = rockpack_emit::emit_package(package, &staging, &options)?;
    // Only what the commit reads.
    let named =
        emitted.iter().map(|it| json!({ "file_name": it.file_name, "sha256": hex(&it.sha256) }));
    let receipt = json!({ "packages": Vec::from_iter(named) });
    staging.commit(&BTreeSet::new(), |sink| Ok(serde_json::to_writer(sink, &receipt)?))?;
    let indexed = emitted.into_iter().filter_map(|e| Some((folder.join(&e.file_name), e.indexed?)));
    Ok(indexed.collect())
}
