//! Compression and memory of a build.
//!
//! Levels change the bytes of packages; memory never does. Refused are levels that package managers could not
//! read, and less memory than one package needs.

use clap::{Args, ValueEnum};
use rockpack_core::compression::{Compression, WINDOW_LOG_MAX};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::run::{BuildNeeds, Limits};

use super::given::GivenOptions;
use super::memory::MemoryArguments;
use super::origin::{Gathered, Origin};
use super::set::SetSettings;
use rockpack_emit::pack;
use rockpack_package::dependencies::distribution::PayloadCompression;

/// The highest level of archives. The memory that readers need does not depend on it.
const ARCHIVE_LEVEL_MAX: i32 = 22;

/// The options for compression and memory.
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
    /// zstd level of kernel archives, 1 to 22 [default: the preset's]
    #[arg(long, hide_short_help = true, value_name = "LEVEL")]
    archive_level: Option<i32>,
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
    /// zstd -19, xz -7: smaller, in many times the time
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

/// Compression and memory of a build.
#[derive(Debug, Clone, Copy)]
pub struct CostSettings {
    /// Compression of payloads.
    pub compression: Compression,
    /// zstd level of the code objects in kernel archives.
    pub archive_level: i32,
    /// Memory limits by purpose.
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
        gathered: &mut Gathered,
    ) -> Option<CostSettings> {
        let readable = match set.map(|set| set.plan.compression()) {
            Some(PayloadCompression::Xz) => PayloadMethod::Xz,
            Some(PayloadCompression::Zstd) | None => PayloadMethod::Zstd,
        };
        let archive_level = gathered.faults.keep(self.archive_level());
        let compression = gathered.faults.keep(self.payload(readable));
        let (archive_level, compression) = (archive_level?, compression?);
        note(archive_level, compression, given, gathered);
        let needs = BuildNeeds {
            compressors: compression.memory(1).saturating_mul(formats as u64),
            thread: pack::thread_memory(archive_level),
            jobs: set.map_or(1, |set| set.jobs),
        };
        let limits = gathered.faults.keep(self.memory.of_build(needs))?;
        Some(CostSettings { compression, archive_level, limits })
    }

    /// The level of code objects.
    fn archive_level(&self) -> Result<i32> {
        let (zstd, _) = self.preset.levels();
        let of_preset = i32::try_from(zstd).unwrap_or(i32::MAX);
        checked_archive_level(self.archive_level.unwrap_or(of_preset))
    }

    /// The compression of payloads; `readable` is the default method.
    fn payload(&self, readable: PayloadMethod) -> Result<Compression> {
        let (zstd, xz) = self.preset.levels();
        let compression = match self.compression.unwrap_or(readable) {
            PayloadMethod::Xz => Compression::Xz { preset: self.payload_level.unwrap_or(xz) },
            PayloadMethod::Zstd => Compression::Zstd {
                level: i32::try_from(self.payload_level.unwrap_or(zstd)).unwrap_or(i32::MAX),
                window_log: WINDOW_LOG_MAX,
                long: true,
            },
        };
        compression.check().map_err(|error| {
            Error::new(Kind::Usage, error.message()).structure("--payload-level")
        })?;
        Ok(compression)
    }
}

/// Notes the values of options that may be absent.
fn note(
    archive_level: i32,
    compression: Compression,
    given: &GivenOptions,
    gathered: &mut Gathered,
) {
    let of_preset = given.origin("preset");
    gathered.note("archive_level", archive_level, of_preset.clone());
    gathered.note("payload_level", compression.level(), of_preset);
    gathered.note("compression", compression.method().name(), Origin::Default);
}

/// Refuses a level of kernel archives that zstd does not have.
pub(super) fn checked_archive_level(level: i32) -> Result<i32> {
    if (1..=ARCHIVE_LEVEL_MAX).contains(&level) {
        return Ok(level);
    }
    let message = format!("--archive-level {level} is no level of zstd");
    Err(Error::new(Kind::Usage, message).hint("levels are 1 to 22"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_come_from_the_preset_unless_given() {
        let small = CostArguments { preset: Preset::Small, ..CostArguments::default() };
        assert_eq!(small.archive_level().unwrap(), 19);
        assert_eq!(small.payload(PayloadMethod::Zstd).unwrap().level(), 19);
        assert_eq!(small.payload(PayloadMethod::Xz).unwrap(), Compression::Xz { preset: 7 });
        let given = CostArguments { payload_level: Some(5), archive_level: Some(22), ..small };
        assert_eq!(given.payload(PayloadMethod::Zstd).unwrap().level(), 5);
        assert_eq!(given.archive_level().unwrap(), 22);
        for (archive_level, payload_level) in [(Some(0), Some(20)), (Some(23), Some(0))] {
            let wrong = CostArguments { archive_level, payload_level, ..CostArguments::default() };
            assert_eq!(wrong.archive_level().unwrap_err().kind(), Kind::Usage);
            assert_eq!(wrong.payload(PayloadMethod::Zstd).unwrap_err().kind(), Kind::Usage);
        }
        let default = CostArguments::default();
        assert_eq!(default.payload(PayloadMethod::Zstd).unwrap(), Compression::default());
    }
}
