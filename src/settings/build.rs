//! The settings of a build: its output, its compression and its memory.
//!
//! Compression levels change the bytes of packages; memory never does. Levels that package managers cannot read, and
//! less memory than one package needs, are errors.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use rockpack_core::compression::{Compression, LongMatches, PayloadCompressions, WINDOW_LOG_MAX};
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::run::{BuildNeeds, Limits, parse_size};
use rockpack_distribution::PayloadCompression;
use rockpack_elf::ccob;
use rockpack_emit::{Staging, pack};
use rockpack_files::cache::{self, CacheSettings};
use rockpack_package::Format;
use rockpack_package::indexed::PackageKind;
use rockpack_package::receipt::{self, SetPart};
use rockpack_plan::PlanSettings;
use rockpack_plan::config::{ArchiveLevel, ArchiveLevels};
use rockpack_repo as repo;
use rockpack_signing::{IndexSigner, OpenPgpKey, PASSPHRASE_VARIABLE, PublicKeys};
use rockpack_split::input::artifact;
use rockpack_split::input::tree::InputPath;
use serde_json::Value;

use super::origin::{GivenOptions, Origin, Resolution};
use super::publish::{publication_options, with_settings, with_signer};
use super::set::{SetArguments, SetSettings};
use super::signing::SigningArguments;
use super::{Environment, MemoryArguments, output_path};

#[derive(Debug, Args)]
pub struct BuildArguments {
    #[command(flatten)]
    set: SetArguments,
    #[command(flatten)]
    output: OutputArguments,
    #[command(flatten, next_help_heading = "Cost")]
    cost: CostArguments,
    #[command(flatten, next_help_heading = "Signing")]
    pub(crate) signing: SigningArguments,
    /// Also publish the packages in this repository
    ///
    /// The same as `rockpack repo` with the table `repository` of the configuration, but without reading the packages
    /// again. If possible, the repository gets hard links to the packages in OUT
    #[arg(long, value_name = "REPO", value_parser = output_path(), help_heading = "Repository")]
    repo: Option<PathBuf>,
    /// Set a key of the table `repository`, as in name=rocm; may be given several times
    #[arg(
        long,
        hide_short_help = true,
        value_name = "KEY=VALUE",
        requires = "repo",
        help_heading = "Repository"
    )]
    repo_set: Vec<String>,
}

#[derive(Debug, Args)]
struct OutputArguments {
    /// Folder for the packages; created if missing
    #[arg(long, required = true, value_name = "DIR", value_parser = output_path())]
    out: Option<PathBuf>,
    /// Build one part of the set, of N parts
    ///
    /// `plan --matrix` lists the parts. OUT gets packages-I-of-N.json instead of packages.json, so that one folder can
    /// hold all parts; `verify --join` joins them
    #[arg(long, value_name = "I/N")]
    partition: Option<SetPart>,
    /// Cache compressed data here for later builds
    ///
    /// A later build with the same prefix that changes only the version, dependencies, scripts or descriptions
    /// compresses only the host packages and metapackages of .deb again, because their changelog changes. Packages are
    /// byte-identical with and without a cache. Several builds may use one cache at the same time. Anyone who can write
    /// to the cache can change the content of packages
    #[arg(long, value_name = "DIR", value_parser = output_path())]
    cache: Option<PathBuf>,
    /// Limit of the cache in bytes
    ///
    /// The suffixes K, M, G and T multiply by powers of 1024. The least recently used entries are removed first
    #[arg(long, hide_short_help = true, value_name = "BYTES", requires = "cache", default_value = "32G", value_parser = parse_size)]
    cache_size: u64,
    /// Also write an SPDX document of the set
    ///
    /// packages.spdx.json is an SPDX 2.3 document with every package and file of the set, their digests, and the
    /// artifacts that they were made from. A part of a set writes packages-I-of-N.spdx.json
    #[arg(long)]
    sbom: bool,
}

pub struct BuildSettings {
    pub set: SetSettings,
    pub output: OutputSettings,
    pub cost: CostSettings,
    /// The signer of `.rpm` headers, if they are to be signed.
    pub signer: Option<Arc<OpenPgpKey>>,
    /// The signer of the receipt, if it is to be signed.
    pub receipt_signer: Option<Arc<dyn IndexSigner>>,
    /// The repository that the packages are published in, if any.
    pub publish: Option<repo::RepoOptions<'static>>,
}

#[derive(Debug, Clone)]
pub struct OutputSettings {
    /// The folder for the packages; created if missing.
    pub folder: PathBuf,
    /// The part of the set to write; all of it if unset.
    pub part: Option<SetPart>,
    /// The cache of compressed data, if one is used.
    pub cache: Option<CacheSettings>,
    /// Whether to write an SPDX document next to the receipt.
    pub sbom: bool,
}

impl BuildArguments {
    /// Resolves the settings without reading input. Reports the faults of all settings together.
    pub fn resolve(self, given: &GivenOptions, environment: &Environment) -> Result<BuildSettings> {
        let mut resolution = Resolution::default();
        let settings = self.resolve_into(given, environment, &mut resolution);
        resolution.faults.into_settings_faults().settle(settings)
    }

    pub(super) fn resolve_into(
        self,
        given: &GivenOptions,
        environment: &Environment,
        resolution: &mut Resolution,
    ) -> Option<BuildSettings> {
        let Self { set, output, cost, signing, repo, repo_set } = self;
        let formats = set.formats();
        let OutputArguments { out, partition: part, cache, cache_size: limit, sbom } = output;
        let cache = cache.map(|folder| CacheSettings { folder, limit });
        // `config show` writes nothing, and so needs no folder.
        let output = OutputSettings { folder: out.unwrap_or_default(), part, cache, sbom };
        output.check(&set.inputs(), &mut resolution.faults);
        if let Some(repo) = &repo {
            resolution.faults.keep(artifact::refuse_inside(&set.inputs(), repo, "repository"));
            if !output.folder.as_os_str().is_empty() {
                let refused = repo::refuse_output_inside(repo, &output.folder, "output folder");
                resolution.faults.keep(refused);
            }
        }
        let mut set = set.resolve_into(environment, resolution);
        let cost = cost.resolve(set.as_ref(), formats.len(), given, resolution);
        // A faulty SOURCE_DATE_EPOCH is reported with the set.
        let needs_now = (repo.is_some() || signing.is_given()) && environment.epoch().is_ok();
        let now = needs_now.then(|| resolution.faults.keep(environment.now())).flatten();
        if environment.passphrase.is_some() && signing.has_key() {
            let variable = PASSPHRASE_VARIABLE;
            resolution.note(variable, "set", Origin::Environment { variable });
        }
        let signers = resolution.faults.keep(signing.signers(environment, now)).unwrap_or_default();
        let time = set.as_ref().map_or(u32::MAX, |set| set.plan.time);
        let receipt_signer = signers.receipt_signer(time.into(), now, &mut resolution.faults);
        let own = receipt_signer.as_deref().map(PublicKeys::of_signer).transpose();
        if let (Some(set), Some(own)) = (&mut set, resolution.faults.keep(own).flatten()) {
            set.trust.keys = std::mem::take(&mut set.trust.keys).and(own);
        }
        let signs_headers = formats.contains(&Format::Rpm);
        let others = resolution.faults.keep(signing.further_keys()).unwrap_or_default();
        let publish = repo.zip(set.as_ref()).and_then(|(repo, set)| {
            let kinds = formats.into_iter().map(PackageKind::from).collect();
            let faults = &mut resolution.faults;
            let keys = set.plan.config.keys.repository.clone();
            let keys = with_settings(keys, &repo_set, "--repo-set", faults);
            with_signer(publication_options(keys, repo, kinds, now), now, &signers, &others, faults)
        });
        let signer = signers.keys.into_iter().next().filter(|_| signs_headers);
        Some(BuildSettings { set: set?, output, cost: cost?, signer, receipt_signer, publish })
    }
}

impl OutputSettings {
    /// Refuses an output folder or cache that cannot be written or is inside `artifacts`, before the build
    /// spends time.
    fn check(&self, artifacts: &[InputPath], faults: &mut Faults) {
        // `config show` may lack an output folder.
        if !self.folder.as_os_str().is_empty() {
            let receipt = receipt::file_name(self.part);
            faults.keep(Staging::check_ahead(&self.folder, &receipt, self.sbom));
        }
        if let Some(cache) = &self.cache {
            faults.keep(cache::check_ahead(&cache.folder));
        }
        faults.keep(artifact::refuse_inside(artifacts, &self.folder, "output folder"));
        if let Some(cache) = &self.cache {
            faults.keep(artifact::refuse_inside(artifacts, &cache.folder, "cache"));
        }
    }
}

#[derive(Debug, Default, Args)]
pub(super) struct CostArguments {
    /// Compressor of payloads [default: the best for the distribution]
    ///
    /// The default is the best that the package manager of the distribution can read
    #[arg(long)]
    compression: Option<PayloadMethod>,
    /// Levels of kernel archives and payloads
    #[arg(long, value_enum, default_value_t)]
    preset: Preset,
    /// Level of payloads: zstd 1 to 19, xz 0 to 9 [default: the preset's]
    #[arg(long, hide_short_help = true, value_name = "LEVEL")]
    payload_level: Option<u32>,
    #[command(flatten)]
    memory: MemoryArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PayloadMethod {
    /// zstd with long-distance matching, window 27
    Zstd,
    /// xz, for package managers that cannot read zstd
    Xz,
}

/// Compression levels, measured in `benches/RESULTS.md`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Preset {
    /// zstd -3, xz -1: three quarters of the time, 7 % larger
    Fast,
    /// zstd -9, xz -6
    #[default]
    Balanced,
    /// zstd -19, xz -7: smaller, takes many times as long
    Small,
}

impl Preset {
    /// The levels of zstd and of xz.
    fn levels(self) -> (u32, u32) {
        match self {
            Self::Fast => (3, 1),
            Self::Balanced => (9, 6),
            Self::Small => (19, 7),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct CostSettings {
    pub compression: PayloadCompressions,
    /// Levels of kernel archives.
    pub archive_levels: ArchiveLevels,
    pub limits: Limits,
}

impl CostArguments {
    /// Resolves the settings for a set in `formats` formats; `None` if there are faults. If the set itself is
    /// faulty, payloads default to zstd.
    pub fn resolve(
        &self,
        set: Option<&SetSettings>,
        formats: usize,
        given: &GivenOptions,
        resolution: &mut Resolution,
    ) -> Option<CostSettings> {
        let archive_levels = self.archive_levels(set);
        let plan = set.map(|set| &set.plan);
        let compression = resolution.faults.keep(self.payloads(plan, archive_levels))?;
        let of_preset = given.origin("preset");
        if let Some(plan) = plan {
            let ArchiveLevels { deb, rpm } = archive_levels;
            let levels = in_formats(deb.to_string(), rpm.to_string());
            resolution.note_key(&plan.config, &["archive_level"], levels, of_preset.clone());
        }
        let PayloadCompressions { deb, rpm } = compression;
        resolution.note("payload_level", in_formats(deb.level(), rpm.level()), of_preset);
        let methods = in_formats(deb.method().as_str(), rpm.method().as_str());
        let is_default = |set: &SetSettings| !set.plan.config.is_set(&["distro"]);
        let of_profile =
            if set.is_none_or(is_default) { Origin::Default } else { Origin::Distribution };
        resolution.note("compression", methods, of_profile);
        let bundles = plan.is_some_and(|plan| plan.config.compresses_code_files());
        let of_bundle = bundles.then(|| ccob::COMPRESSION.memory(1));
        let of_archives = Format::ALL.map(|it| pack::thread_memory(archive_levels.of(it)));
        let needs = BuildNeeds {
            compressors: compression.memory(1).saturating_mul(formats as u64),
            thread: of_archives.into_iter().chain(of_bundle).max().unwrap_or_default(),
            jobs: set.map_or(1, |set| set.jobs),
        };
        let limits = resolution.faults.keep(Limits::of_build(self.memory.memory, needs))?;
        Some(CostSettings { compression, archive_levels, limits })
    }

    /// The levels of kernel archives: those of the set, or else the preset's.
    fn archive_levels(&self, set: Option<&SetSettings>) -> ArchiveLevels {
        let (zstd, _) = self.preset.levels();
        let of_preset = ArchiveLevel::Zstd(i32::try_from(zstd).unwrap_or(i32::MAX));
        let [deb, rpm] = set.map(|set| set.archive_levels).unwrap_or_default();
        ArchiveLevels { deb: deb.unwrap_or(of_preset), rpm: rpm.unwrap_or(of_preset) }
    }

    /// The compression of payloads in each format. A format that is not made has that of the other one.
    fn payloads(
        &self,
        plan: Option<&PlanSettings>,
        archives: ArchiveLevels,
    ) -> Result<PayloadCompressions> {
        let formats = plan.map(|plan| plan.formats.as_slice()).unwrap_or_default();
        let of = |format: Option<&Format>| {
            let readable = format.zip(plan).map(|(format, plan)| plan.compression(*format));
            let readable = match readable {
                Some(PayloadCompression::Xz) => PayloadMethod::Xz,
                Some(PayloadCompression::Zstd) | None => PayloadMethod::Zstd,
            };
            let is_stored = format.is_some_and(|it| archives.of(*it) == ArchiveLevel::Stored);
            self.payload(
                readable,
                if is_stored { LongMatches::NearCopies } else { LongMatches::On },
            )
        };
        Ok(PayloadCompressions { deb: of(formats.first())?, rpm: of(formats.last())? })
    }

    /// The compression of payloads; `readable` is the default method.
    fn payload(&self, readable: PayloadMethod, long: LongMatches) -> Result<Compression> {
        let (zstd, xz) = self.preset.levels();
        let compression = match self.compression.unwrap_or(readable) {
            PayloadMethod::Xz => Compression::Xz { preset: self.payload_level.unwrap_or(xz) },
            PayloadMethod::Zstd => Compression::Zstd {
                level: i32::try_from(self.payload_level.unwrap_or(zstd)).unwrap_or(i32::MAX),
                window_log: WINDOW_LOG_MAX,
                long,
            },
        };
        compression.check().map_err(|error| {
            Error::new(Kind::Usage, error.message()).structure("--payload-level")
        })?;
        Ok(compression)
    }
}

/// A value of both formats, or one for each if they differ.
fn in_formats<T: PartialEq + Display + Into<Value>>(deb: T, rpm: T) -> Value {
    if deb == rpm { deb.into() } else { format!("deb={deb},rpm={rpm}").into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_come_from_the_preset_unless_given() {
        let payload = |of: &CostArguments, method| of.payload(method, LongMatches::On);
        let small = CostArguments { preset: Preset::Small, ..CostArguments::default() };
        let nineteen = ArchiveLevel::Zstd(19);
        let levels = ArchiveLevels { deb: nineteen, rpm: nineteen };
        assert_eq!(small.archive_levels(None), levels);
        assert_eq!(payload(&small, PayloadMethod::Zstd).unwrap().level(), 19);
        assert_eq!(payload(&small, PayloadMethod::Xz).unwrap(), Compression::Xz { preset: 7 });
        let given = CostArguments { payload_level: Some(5), ..small };
        assert_eq!(payload(&given, PayloadMethod::Zstd).unwrap().level(), 5);
        for payload_level in [Some(20), Some(0)] {
            let wrong = CostArguments { payload_level, ..CostArguments::default() };
            let error = payload(&wrong, PayloadMethod::Zstd).unwrap_err();
            assert_eq!(error.kind(), Kind::Usage);
        }
        let default = CostArguments::default();
        assert_eq!(payload(&default, PayloadMethod::Zstd).unwrap(), Compression::default());
    }
}
