//! What the options about cost mean: how hard a build compresses, and in how much memory.
//!
//! Levels change the bytes of packages, memory never does: less of it means fewer threads and more
//! bytes in spools. Refused: levels that package managers could not read, and less memory than one
//! package needs.

use std::fs;
use std::path::{Path, PathBuf};

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

/// Memory beside everything that is counted: windows between threads, the plan, what was scanned.
const ASIDE: u64 = 128 << 20;

/// Of the budget, one part in so many is for threads that compress code objects.
const THREADS: u64 = 8;

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

/// The parts of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// Compressed code objects, before they go to a spool, and what is remembered of more files and
    /// code objects than usual.
    pub frames: u64,
    /// Compressors of payloads, of all packages that are written at the same time.
    pub compressors: u64,
    /// Decoded bundles, before they are decoded again by every reader.
    pub held: u64,
    /// Threads that compress code objects.
    pub threads: u64,
}

/// The parts of a budget of a command that reads artifacts and compresses no payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReaderShares {
    /// Compressed code objects, before they go to a spool.
    pub frames: u64,
    /// What is remembered of each file and code object.
    pub records: u64,
    /// Decoded bundles, before they are decoded again by every reader.
    pub held: u64,
    /// Threads, at least one.
    pub threads: usize,
}

/// What a thread takes that reads artifacts: the largest window of a decoder, and a code object
/// with its frame.
const READER: u64 = 192 << 20;

/// `memory` bytes in parts, or a quarter of what the machine has.
pub fn reader_shares(memory: Option<u64>) -> Result<ReaderShares> {
    let memory = memory.map_or_else(|| Ok(machine_memory()? / 4), Ok)?;
    let threads = usize::try_from(memory / 2 / READER).unwrap_or(usize::MAX).max(1);
    Ok(ReaderShares { frames: memory / 8, records: memory / 8, held: memory / 4, threads })
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

    /// The budget in parts, for packages with `streams` payloads. Each of these has one compressor
    /// thread at least, and there is one thread that compresses code objects in `thread` bytes.
    pub fn shares(&self, compression: Compression, streams: usize, thread: u64) -> Result<Shares> {
        let streams = u64::try_from(streams).unwrap_or(u64::MAX);
        let one = compression.memory(1).saturating_mul(streams);
        let payloads = one.saturating_sub(ASIDE).saturating_mul(2);
        let least = payloads.max(thread.saturating_mul(THREADS));
        let memory = match self.memory {
            Some(memory) if memory < least => {
                let mib = |bytes: u64| bytes.div_ceil(1 << 20);
                let message = format!("--memory {}M is too little", mib(memory));
                let hint = format!(
                    "{}M are the least at these levels of compression, and 1 format needs less than 2",
                    mib(least)
                );
                return Err(Error::new(Kind::Usage, message).hint(hint));
            }
            Some(memory) => memory,
            None => (machine_memory()? / 4).max(least),
        };
        let compressors = (memory / 2).max(one);
        Ok(Shares { frames: memory / 4, compressors, held: memory / 8, threads: memory / THREADS })
    }
}

/// Bytes that the machine has, or the control groups of this process, if those have less.
fn machine_memory() -> Result<u64> {
    let path = "/proc/meminfo";
    let text = fs::read_to_string(path).map_err(|e| Error::io(path, "read", e))?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let total = total.and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    let total = total.ok_or_else(|| {
        Error::unsupported("does not say how much memory there is")
            .file(path)
            .hint("say it with --memory")
    })?;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    Ok(limits(&groups).filter_map(limit).fold(total.saturating_mul(1 << 10), u64::min))
}

/// Where limits of memory stand for a process whose `/proc/self/cgroup` is `groups`: of each of its
/// control groups and those around it, by version 2 (`0::/path`) and 1 (`4:memory:/path`). See
/// cgroups(7).
fn limits(groups: &str) -> impl Iterator<Item = PathBuf> {
    groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
        let (mount, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        };
        let is_memory =
            controllers.is_empty() || controllers.split(',').any(|name| name == "memory");
        // Where a container sees its own group as the root, the path may name what it cannot see.
        let own = Path::new(path.trim_start_matches('/')).ancestors();
        own.filter(move |_| is_memory).map(move |group| Path::new(mount).join(group).join(file))
    })
}

/// The number of bytes that `text` says: digits, or with K, M, G or T for powers of 1024.
pub fn parse_size(text: &str) -> std::result::Result<u64, String> {
    let (digits, shift) = match text.bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        Some(b'T' | b't') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    number.ok_or_else(|| "is no number of bytes; 20G is one".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_shared_out_and_too_little_is_refused() {
        let policy = |memory| Policy { memory: Some(memory), ..Policy::default() };
        let zstd = Compression::default();
        let shares = policy(4 << 30).shares(zstd, 2, 64 << 20).unwrap();
        let Shares { frames, compressors, held, threads } = shares;
        assert_eq!(frames + compressors + held + threads, 4 << 30);
        let error = policy(256 << 20).shares(zstd, 2, 64 << 20).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        assert!(policy(256 << 20).shares(Compression::Xz { preset: 1 }, 1, 0).is_ok());
        assert!(Policy::default().shares(zstd, 2, 64 << 20).is_ok());
        assert!(policy(4 << 30).shares(zstd, 2, 1 << 30).is_err());
        assert_eq!(policy(8 << 30).shares(zstd, 2, 1 << 30).unwrap().threads, 1 << 30);
    }

    #[test]
    fn limits_are_those_of_all_groups_around_the_process() {
        let all =
            |groups| limits(groups).map(|path| path.display().to_string()).collect::<Vec<_>>();
        let unified = ["a/b.service/", "a/", ""].map(|g| format!("/sys/fs/cgroup/{g}memory.max"));
        assert_eq!(all("0::/a/b.service\n"), unified);
        let expected =
            ["a/", ""].map(|g| format!("/sys/fs/cgroup/memory/{g}memory.limit_in_bytes"));
        assert_eq!(all("5:cpu:/a\n4:hugetlb,memory:/a\n1:name=systemd:/a\n"), expected);
    }

    #[test]
    fn readers_have_a_thread_whatever_the_budget() {
        let of = |memory| reader_shares(Some(memory)).unwrap();
        assert_eq!(of(0), ReaderShares { frames: 0, records: 0, held: 0, threads: 1 });
        let ReaderShares { frames, records, held, threads } = of(4 << 30);
        assert!(frames + records + held + threads as u64 * READER <= 4 << 30 && threads == 10);
        assert!(reader_shares(None).is_ok());
    }

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

    #[test]
    fn sizes_have_units() {
        assert_eq!(
            [parse_size("7"), parse_size("2k"), parse_size("4G")],
            [Ok(7), Ok(2048), Ok(4 << 30)]
        );
        assert!(
            ["", "G", "-1", "1.5G", "99999999999T", "é"]
                .iter()
                .all(|text| parse_size(text).is_err())
        );
    }
}
