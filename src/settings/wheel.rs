//! The settings of `wheel`.

use std::num::NonZeroU16;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::run::{BuildNeeds, Limits, parse_size, threads};
use rockpack_emit::{Staging, pack};
use rockpack_files::cache::{self, CacheSettings};
use rockpack_package::receipt::wheels::FILE_NAME;
use rockpack_plan::Shim;
use rockpack_plan::config::{self, ArchiveLevel, Config};
use rockpack_split::input::{artifact, wheel};
use rockpack_wheel::{
    DeviceNamePattern, HipRuntime, WheelSettings, check_requirements, distribution,
};

use super::signing::SigningArguments;
use super::{Environment, MemoryArguments, output_path};

/// Split Python wheels into a host wheel and one device wheel per architecture or group.
///
/// A host wheel has the name, version and tags of its input, all of its files except device code, and an extra for each
/// group: `pip install "x[device-gfx1100]"` installs it with the device wheel for these GPUs, which is tied to exactly
/// this version. wheels.json lists the content of each wheel and the place of every code object; a signing key signs it
/// (wheels.json.asc). A wheel that is already split, or has no code for device wheels, is copied unchanged. Wheels that
/// an earlier run wrote into DIR are removed once the new ones are complete. SOURCE_DATE_EPOCH sets the time of all
/// members.
#[derive(Debug, Args)]
pub struct WheelArguments {
    /// Wheels, or folders with wheels
    #[arg(required = true, value_name = "WHEEL")]
    wheels: Vec<PathBuf>,
    /// Folder for the wheels; created if missing
    #[arg(long, value_name = "DIR", value_parser = output_path())]
    out: PathBuf,
    /// Configuration: groups, rules of databases, accepted findings (.json or .toml)
    ///
    /// Only keys about device code and wheels are used: `architecture_groups`, `components` with the names of
    /// distributions, `databases`, `validation`, `other_machines`, `hip_runtime`, `accept`, `content_date` and `wheels`
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Names of device wheels, or an owner's prefix of them [default: {name}-device-{group}]
    ///
    /// `{name}` is the name of the wheel's distribution, `{group}` that of the group. The prefix `amd` means AMD's
    /// scheme, amd-{name}-device-{group}. Also a key of the configuration, `wheels.device_name`
    #[arg(long, value_name = "PATTERN")]
    device_name: Option<String>,
    /// Distribution that another run splits; extras also bring its device wheels
    ///
    /// Wheels of this run that require it get extras that bring its extras of the same names. May be given several
    /// times
    #[arg(long, value_name = "NAME", value_parser = distribution)]
    split_elsewhere: Vec<String>,
    /// Repository, or folder, with device wheels of the same release for other Pythons
    ///
    /// If they differ from those of this run only in their tags, this run makes device wheels for all Pythons
    /// (py3-none-PLATFORM), as it does for several input wheels with equal device code
    #[arg(long, value_name = "DIR")]
    index: Option<PathBuf>,
    /// HIP runtime that loads the device code [default: own, or any if `hip_runtime` of the configuration is `any`]
    #[arg(long, value_enum, value_name = "RUNTIME")]
    hip_runtime: Option<RuntimeChoice>,
    /// File of librocm_kpack_shim.so.0, for `--hip-runtime any` [default: next to the running program]
    ///
    /// Also a key of the configuration, `hip_shim`
    #[arg(long, value_name = "FILE")]
    hip_shim: Option<PathBuf>,
    /// Turn warnings into errors
    #[arg(long)]
    strict: bool,
    /// Leave out bad wheels, split the others, and exit with 1
    ///
    /// Bad wheels are damaged, or cannot be split. Without this option, one bad wheel fails the run, and nothing is
    /// written
    #[arg(long)]
    skip_bad: bool,
    /// zstd level of kernel archives, 1 to 22
    #[arg(long, value_name = "LEVEL", default_value_t = ARCHIVE_LEVEL)]
    #[arg(value_parser = clap::value_parser!(i32).range(1..=22))]
    archive_level: i32,
    /// Number of threads [default: the cores]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroU16>,
    #[command(flatten)]
    memory: MemoryArguments,
    /// Cache compressed data here for later runs
    #[arg(long, value_name = "DIR", value_parser = output_path())]
    cache: Option<PathBuf>,
    /// Limit of the cache in bytes
    #[arg(long, hide_short_help = true, value_name = "BYTES", requires = "cache", default_value = "32G", value_parser = parse_size)]
    cache_size: u64,
    #[command(flatten)]
    pub(crate) signing: SigningArguments,
    /// Print the receipt as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RuntimeChoice {
    /// The runtime in the wheel, or the one that it requires, which must read kernel archives. Binaries for ROCm 6 and
    /// older keep their device code
    Own,
    /// Another runtime that reads kernel archives and replaces it
    Other,
    /// Any runtime: binaries register with librocm_kpack_shim.so.0, which is added to the host wheel
    Any,
}

/// The default level of kernel archives. Measured with onnxruntime-rocm 1.22 (488 MB of code objects, two
/// cores): level 3 gives wheels of 45.2 MB in 4.1 s of CPU time, 5 44.4 MB in 4.7 s, 9 42.7 MB in 6.0 s.
const ARCHIVE_LEVEL: i32 = 5;

/// Memory for writing one wheel, in bytes, without code objects: a chunk and its compressed form for each
/// thread.
const WRITER_MEMORY: u64 = 8 << 20;

impl WheelArguments {
    /// Resolves the settings without reading wheels. Reports the faults of all settings together.
    pub fn resolve(self, environment: &Environment) -> Result<WheelSettings> {
        let mut faults = Faults::default();
        let settings = self.resolve_into(environment, &mut faults);
        faults.into_settings_faults().settle(settings)
    }

    fn resolve_into(self, environment: &Environment, faults: &mut Faults) -> Option<WheelSettings> {
        let found = Config::of(self.config.as_deref(), faults);
        let is_read = found.is_some();
        let config = found.or_else(|| faults.keep(Config::defaults()))?;
        faults.keep(wheel::refuse_among(&self.wheels, &self.out));
        faults.keep(Staging::check_ahead(&self.out, FILE_NAME, false));
        if let Some(cache) = &self.cache {
            faults.keep(cache::check_ahead(cache));
            faults.keep(artifact::refuse_inside(&self.wheels, cache, "cache"));
        }
        if let Some(index) = self.index.as_deref().filter(|index| !index.is_dir()) {
            let error = Error::new(Kind::Usage, "is not a folder").file(index);
            faults.add(error.hint("give --index the folder of a repository, or one with wheels"));
        }
        check_requirements(&config, faults);
        let device_name = faults.keep(self.device_name(&config));
        let runtime = faults.keep(self.runtime(&config));
        let epoch = faults.keep(environment.epoch());
        let jobs = self.jobs.map_or_else(threads::count, |jobs| jobs.get().into());
        let needs = BuildNeeds {
            compressors: WRITER_MEMORY,
            thread: pack::thread_memory(ArchiveLevel::Zstd(self.archive_level)) + WRITER_MEMORY,
            jobs,
        };
        let limits =
            faults.keep(Limits::of_build(self.memory.memory, needs)).map(|limits| Limits {
                // Wheels have no compressed payload, so its memory goes to held members.
                held: limits.held.saturating_add(limits.compressors),
                ..limits
            });
        let time = epoch?.unwrap_or(config.content_date.into());
        let now = faults.keep(self.signing.is_given().then(|| environment.now()).transpose())?;
        let signers = faults.keep(self.signing.signers(environment, now))?;
        let signer = signers.receipt_signer(time, now, faults);
        let limit = self.cache_size;
        Some(WheelSettings {
            wheels: self.wheels,
            out: self.out,
            config,
            device_name: device_name?,
            runtime: runtime?,
            index: self.index,
            split_elsewhere: self.split_elsewhere.into_iter().collect(),
            strict: self.strict,
            skip_bad: self.skip_bad,
            archive_level: self.archive_level,
            jobs,
            limits: limits?,
            cache: self.cache.map(|folder| CacheSettings { folder, limit }),
            time,
            signer,
        })
        .filter(|_| is_read)
    }

    /// The runtime of the command line, or else of the configuration.
    fn runtime(&self, config: &Config) -> Result<HipRuntime> {
        let configured = match config.keys.hip_runtime {
            config::HipRuntime::Archives => RuntimeChoice::Own,
            config::HipRuntime::Any => RuntimeChoice::Any,
        };
        let file = self.hip_shim.as_ref().or(config.keys.hip_shim.as_ref());
        // A given file is checked, even if it is not used.
        let named = file.map(|file| Shim::open(Some(file))).transpose()?;
        Ok(match self.hip_runtime.unwrap_or(configured) {
            RuntimeChoice::Own => HipRuntime::Own,
            RuntimeChoice::Other => HipRuntime::Other,
            RuntimeChoice::Any => HipRuntime::Any(named.map_or_else(|| Shim::open(None), Ok)?),
        })
    }

    /// The pattern of the command line, or else of the configuration.
    fn device_name(&self, config: &Config) -> Result<DeviceNamePattern> {
        match &self.device_name {
            Some(pattern) => {
                pattern.parse().map_err(|error: Error| error.structure("--device-name"))
            }
            None => {
                let parsed = config.keys.wheels.device_name.parse();
                parsed.map_err(|error| config.located(&["wheels", "device_name"], &error))
            }
        }
    }
}
