//! What the options about cost mean: how hard a build compresses. How its memory is divided is
//! decided in [`run::shares`](crate::run::shares).
//!
//! Refused: levels that package managers could not read.

use crate::error::{Error, Kind, Result};
use crate::formats::compression::{Compression, Method, WINDOW_LOG_MAX};

/// How hard to compress; measured in `benches/RESULTS.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Preset {
    /// For trying out: three quarters of the time, 7 % larger.
    Fast,
    /// For every day.
    #[default]
    Balanced,
    /// For releases that are downloaded often: many times the time.
    Small,
}

/// The highest level of archives: what their readers need does not depend on it.
const ARCHIVE_LEVEL_MAX: i32 = 22;

/// How a build compresses, and in how much memory.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Compressor of the payloads; as the distribution's package manager can read it if unset.
    pub method: Option<Method>,
    /// Levels, where they are not given.
    pub preset: Preset,
    /// zstd level of the code objects in kernel archives, 1 to 22.
    pub archive_level: Option<i32>,
    /// Level of the payloads: 1 to 19 for zstd, 0 to 9 for xz.
    pub payload_level: Option<u32>,
    /// Bytes of anonymous memory; a quarter of what the machine has if unset.
    pub memory: Option<u64>,
}

impl Policy {
    /// The level of code objects.
    pub fn archive_level(&self) -> Result<i32> {
        let level = self.archive_level.unwrap_or(match self.preset {
            Preset::Fast => 3,
            Preset::Balanced => 9,
            Preset::Small => 19,
        });
        if (1..=ARCHIVE_LEVEL_MAX).contains(&level) {
            return Ok(level);
        }
        let message = format!("--archive-level {level} is no level of zstd");
        Err(Error::new(Kind::Usage, message).hint("levels are 1 to 22"))
    }

    /// How payloads are compressed; by `readable` if nothing else was asked for.
    pub fn payload(&self, readable: Method) -> Result<Compression> {
        let compression = match self.method.unwrap_or(readable) {
            Method::Xz => Compression::Xz {
                preset: self.payload_level.unwrap_or(match self.preset {
                    Preset::Fast => 1,
                    Preset::Balanced => 6,
                    Preset::Small => 7,
                }),
            },
            _ => Compression::Zstd {
                level: self.payload_level.map_or_else(
                    || match self.preset {
                        Preset::Fast => 3,
                        Preset::Balanced => 9,
                        Preset::Small => 19,
                    },
                    |level| i32::try_from(level).unwrap_or(i32::MAX),
                ),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_come_from_the_preset_unless_given() {
        let small = Policy { preset: Preset::Small, ..Policy::default() };
        assert_eq!(small.archive_level().unwrap(), 19);
        assert_eq!(small.payload(Method::Zstd).unwrap().level(), "19");
        assert_eq!(small.payload(Method::Xz).unwrap(), Compression::Xz { preset: 7 });
        let given = Policy { payload_level: Some(5), archive_level: Some(22), ..small };
        assert_eq!(given.payload(Method::Zstd).unwrap().level(), "5");
        assert_eq!(given.archive_level().unwrap(), 22);
        for (archive_level, payload_level) in [(Some(0), Some(20)), (Some(23), Some(0))] {
            let policy = Policy { archive_level, payload_level, ..Policy::default() };
            assert_eq!(policy.archive_level().unwrap_err().kind(), Kind::Usage);
            assert_eq!(policy.payload(Method::Zstd).unwrap_err().kind(), Kind::Usage);
        }
        assert_eq!(Policy::default().payload(Method::Zstd).unwrap(), Compression::default());
    }
}
