//! Packs the packages of a plan and writes them, one after the other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cache::Cache;
use crate::config::Config;
use crate::content::Content;
use crate::dependencies::distribution::PayloadCompression;
use crate::emit::{self, Compression, Contexts, EmitOptions, Staging, Turn, WholeSet, Written};
use crate::error::Result;
use crate::formats::compression::Method;
use crate::indexed::Indexed;
use crate::options::{BuildOptions, SetOptions};
use crate::pack::{self, PackOptions, PackedPackage, Packer, SetPacker};
use crate::package::Package;
use crate::plan::{self, Plan, Source};
use crate::recombine::Recombined;
use crate::report::{Progress, Silent, Stage};
use crate::run::{Budget, Use, shares};
use crate::signing::Signer;

/// How a build compresses, and what it may take.
pub(crate) struct Means {
    pub compression: Compression,
    pub budget: Budget,
}

impl Means {
    /// What cannot be is refused before anything is read.
    pub fn of(options: &BuildOptions) -> Result<Self> {
        let BuildOptions { policy, set, .. } = options;
        let method = policy.method.map_or_else(|| readable(set), Ok)?;
        let compression = policy.payload(method)?;
        let needs = shares::BuildNeeds {
            compressors: compression.memory(1).saturating_mul(set.formats.len() as u64),
            thread: pack::thread_memory(policy.archive_level()?),
            jobs: set.jobs,
        };
        let budget = Budget::new(shares::of_build(policy.memory, needs)?);
        Ok(Self { compression, budget })
    }

    /// Everything beside the plan that decides the bytes of packages.
    pub fn settings(&self, options: &BuildOptions) -> Result<String> {
        let (compression, level) = (self.compression, options.policy.archive_level()?);
        let signer = options.signer.as_ref().map(|signer| signer.fingerprint());
        Ok(format!("{compression:?} {level} {:?} {signer:?}", options.set.source_date_epoch))
    }
}

/// How payloads are compressed that the package managers of a set can read.
fn readable(set: &SetOptions) -> Result<Method> {
    let readable = plan::readable_payloads(&set.config, set.distro.as_deref(), &set.formats)?;
    Ok(match readable {
        PayloadCompression::Zstd => Method::Zstd,
        PayloadCompression::Xz => Method::Xz,
    })
}

/// What a build writes with, and where.
pub(crate) struct WriteOptions<'a> {
    pub options: &'a BuildOptions,
    pub means: &'a Means,
    pub staging: &'a Staging,
    pub cache: Option<&'a Cache>,
    /// Whether the packages are to be published.
    pub indexed: bool,
}

/// Packs one package after the other on all cores and writes each in its turn.
pub(crate) fn write(
    recombined: &Recombined,
    plan: &Plan,
    write_options: &WriteOptions<'_>,
    progress: &dyn Progress,
) -> Result<Vec<Written>> {
    let WriteOptions { options, means, staging, cache, indexed } = *write_options;
    let Means { compression, budget } = means;
    // Where records need more than usual, the frames have less.
    let _records = budget.draw(Use::Frames, budget.excess_records());
    let pack_options = PackOptions {
        level: options.policy.archive_level()?,
        spool_dir: &options.out,
        budget: budget.clone(),
        cache,
        progress,
    };
    let content_date = i64::from(plan.content_date);
    let emit_options = EmitOptions {
        jobs: options.set.jobs,
        budget: budget.clone(),
        contexts: Contexts::default(),
        compression: *compression,
        content_date,
        source_date_epoch: options.set.source_date_epoch.unwrap_or(content_date),
        indexed,
        sha1: options.sbom,
        signer: options.signer.as_ref(),
        cache,
        progress,
    };
    let mut packer = SetPacker::new(recombined, plan, Packer::new(&pack_options)?);
    progress.expect(Stage::Pack, packer.device_bytes());
    progress.expect(Stage::Emit, packer.known_bytes()?);
    let make = |package| packer.pack(package);
    let written = emit::in_turn(&plan.packages, &emit_options, make, |packed, turn| {
        write_one(packed, turn, staging, &emit_options)
    })?;
    Ok(written)
}

/// What the receipt of `plan`, or of one part of it, says of the whole set.
pub(crate) fn whole_set(plan: &Plan) -> WholeSet<'_, Source> {
    WholeSet {
        version: &plan.version,
        prefix: plan.prefix.absolute(),
        content_date: plan.content_date,
        packages: &plan.packages,
        left_out: plan.left_out_paths(),
    }
}

/// Its content and cores are let go before the disk is waited for.
fn write_one(
    packed: PackedPackage,
    turn: Turn,
    staging: &Staging,
    options: &EmitOptions<'_>,
) -> Result<Written> {
    let PackedPackage { package, mut code_objects, code_files, distinct, made } = packed;
    options.progress.expect(Stage::Emit, made);
    let unsealed = emit::write_package(&package, staging, options)?;
    let role = package.role.clone();
    drop((package, turn));
    let emitted = unsealed.seal(staging, options)?;
    let digests = emit::file_digests(&emitted);
    let records = code_files.into_iter().map(|code| code.record(&digests));
    code_objects.extend(records.collect::<Result<Vec<_>>>()?);
    Ok(Written { role, distinct, code_objects, emitted })
}

/// Writes the package with the keys of a repository into `folder` and says what the index has of its
/// files. It has a fixed date: the same keys and version give the same bytes.
pub fn write_key_package(
    package: &Package<Content>,
    folder: &Path,
    signer: Option<&Arc<dyn Signer>>,
) -> Result<BTreeMap<PathBuf, Indexed>> {
    let date = i64::from(Config::default().content_date);
    let options = EmitOptions {
        jobs: 1,
        budget: Budget::default(),
        contexts: Contexts::default(),
        compression: Compression::XZ,
        content_date: date,
        source_date_epoch: date,
        indexed: true,
        sha1: false,
        signer,
        cache: None,
        progress: &Silent,
    };
    let staging = Staging::begin(folder)?;
    let emitted = emit::emit_package(package, &staging, &options)?;
    let receipt = serde_json::json!({ "packages": emitted });
    staging.commit(|sink| Ok(serde_json::to_writer(sink, &receipt)?))?;
    let indexed = emitted.into_iter().filter_map(|e| Some((folder.join(&e.file_name), e.indexed?)));
    Ok(indexed.collect())
}
