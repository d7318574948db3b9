//! How hard a build compresses, and in how much memory.

use clap::{Args, ValueEnum};

use super::origin::{Gathered, Origin};
use super::set::SetSettings;
use crate::dependencies::distribution::PayloadCompression;
use crate::formats::compression::{Compression, Method};
use crate::pack;
use crate::policy::{Policy, Preset};
use crate::run::{Limits, shares};

/// The options about it.
#[derive(Debug, Args)]
pub(super) struct CostArguments {
    /// Compressor of the package payloads [default: the best that the distribution can read]
    #[arg(long)]
    compression: Option<CompressionArgument>,
    /// Levels of kernel archives and payloads [default: balanced]
    #[arg(long)]
    preset: Option<PresetArgument>,
    /// zstd level of the code objects in kernel archives, 1 to 22 [default: the preset's]
    #[arg(long, value_name = "LEVEL")]
    archive_level: Option<i32>,
    /// Level of the payloads, 1 to 19 for zstd and 0 to 9 for xz [default: the preset's]
    #[arg(long, value_name = "LEVEL")]
    payload_level: Option<u32>,
    /// Memory to keep to, e.g. 4G; the packages do not depend on it. With less there are fewer
    /// threads, and more in anonymous temporary files beside OUT [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = shares::parse_size)]
    memory: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CompressionArgument {
    /// zstd with long-distance matching, window 27
    Zstd,
    /// xz, for package managers that cannot read zstd
    Xz,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PresetArgument {
    /// zstd -3, xz -1: three quarters of the time, 7 % larger
    Fast,
    /// zstd -9, xz -6
    Balanced,
    /// zstd -19, xz -7: smaller, in many times the time
    Small,
}

/// How a build compresses, and in how much memory.
#[derive(Debug, Clone, Copy)]
pub struct CostSettings {
    /// Of the payloads.
    pub compression: Compression,
    /// zstd level of the code objects in kernel archives.
    pub archive_level: i32,
    /// The memory in parts.
    pub limits: Limits,
}

impl CostArguments {
    /// The settings of a set in that many formats; none if there are faults. Where the set has some, it
    /// is taken for one of a distribution whose package manager reads zstd.
    pub fn resolve(
        &self,
        set: Option<&SetSettings>,
        formats: usize,
        gathered: &mut Gathered,
    ) -> Option<CostSettings> {
        let policy = self.policy();
        let readable = match set.map(|set| set.plan.compression()) {
            Some(PayloadCompression::Xz) => Method::Xz,
            Some(PayloadCompression::Zstd) | None => Method::Zstd,
        };
        let archive_level = gathered.faults.keep(policy.archive_level());
        let compression = gathered.faults.keep(policy.payload(readable));
        let (archive_level, compression) = (archive_level?, compression?);
        self.note(archive_level, compression, gathered);
        let needs = shares::BuildNeeds {
            compressors: compression.memory(1).saturating_mul(formats as u64),
            thread: pack::thread_memory(archive_level),
            jobs: set.map_or(1, |set| set.jobs),
        };
        let limits = gathered.faults.keep(shares::of_build(policy.memory, needs))?;
        Some(CostSettings { compression, archive_level, limits })
    }

    fn note(&self, archive_level: i32, compression: Compression, gathered: &mut Gathered) {
        let of_preset = Origin::given("preset", self.preset.is_some());
        let level_of = |key, is_given| match is_given {
            true => Origin::flag(key),
            false => of_preset.clone(),
        };
        let origin = level_of("archive_level", self.archive_level.is_some());
        gathered.note("archive_level", archive_level, origin);
        let origin = level_of("payload_level", self.payload_level.is_some());
        gathered.note("payload_level", compression.level(), origin);
        let origin = Origin::given("compression", self.compression.is_some());
        gathered.note("compression", compression.method().name(), origin);
    }

    fn policy(&self) -> Policy {
        Policy {
            method: self.compression.map(|compression| match compression {
                CompressionArgument::Zstd => Method::Zstd,
                CompressionArgument::Xz => Method::Xz,
            }),
            preset: match self.preset {
                Some(PresetArgument::Fast) => Preset::Fast,
                Some(PresetArgument::Balanced) => Preset::Balanced,
                Some(PresetArgument::Small) => Preset::Small,
                None => Preset::default(),
            },
            archive_level: self.archive_level,
            payload_level: self.payload_level,
            memory: self.memory,
        }
    }
}
