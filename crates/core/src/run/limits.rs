//! The division of a run's memory into parts.
//!
//! Memory never changes the bytes of the output: less of it means fewer threads and more bytes in spools.
//! Refused: less memory than one package needs.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Kind, Result};

/// Memory that is not counted: windows between threads, the plan, the results of the scan.
const ASIDE: u64 = 128 << 20;

/// Threads that compress code objects get one part in this many of the budget.
const THREADS: u64 = 8;

/// Bytes that a thread needs to read artifacts: the largest window of a decoder, and a code object with its
/// frame.
const READER: u64 = 192 << 20;

#[derive(Debug, Clone, Copy)]
pub struct BuildNeeds {
    /// Bytes of the compressors of one package, with one thread for each of its payloads.
    pub compressors: u64,
    /// Bytes of a thread that compresses code objects.
    pub thread: u64,
    /// Threads that were asked for.
    pub jobs: usize,
}

/// The limits of a run, in bytes; no limits by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The part for [`super::MemoryUse::Records`]; every budget allows 96 MiB on top.
    pub records: u64,
    /// The part for [`super::MemoryUse::Structures`]; every budget allows 96 MiB on top.
    pub structures: u64,
    /// The part for [`super::MemoryUse::HeldBytes`].
    pub held: u64,
    /// The part for [`super::MemoryUse::Frames`].
    pub frames: u64,
    /// The part for [`super::MemoryUse::Compressors`].
    pub compressors: u64,
    /// Threads that read the input and compress code objects; 0 means one for each core.
    pub threads: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let all = u64::MAX;
        let (records, structures, held, frames, compressors) = (all, all, all, all, all);
        Self { records, structures, held, frames, compressors, threads: 0 }
    }
}

impl Limits {
    /// The limits of a build in `memory` bytes. `None` means a quarter of the machine's memory, and at least
    /// the needs of the build.
    pub fn of_build(memory: Option<u64>, needs: BuildNeeds) -> Result<Self> {
        let BuildNeeds { compressors, thread, jobs } = needs;
        let payloads = compressors.saturating_sub(ASIDE).saturating_mul(2);
        let least = payloads.max(thread.saturating_mul(THREADS));
        let memory = match memory {
            Some(memory) if memory < least => return Err(memory_too_small(memory, least)),
            Some(memory) => memory,
            None => (machine_memory() / 4).max(least),
        };
        let compressors = (memory / 2).max(compressors);
        let fitting = usize::try_from(memory / THREADS / thread.max(1)).unwrap_or(usize::MAX);
        Ok(Self {
            // Records beyond the uncounted allowance take memory from the frames.
            records: memory / 4,
            // Nothing is compressed yet while the input is read.
            structures: compressors,
            held: memory / 8,
            frames: memory / 4,
            compressors,
            threads: jobs.min(fitting).max(1),
        })
    }

    /// The limits of a command that reads artifacts with up to `jobs` threads and compresses no payloads, in
    /// `memory` bytes; `None` means a quarter of the machine's memory.
    pub fn of_reader(memory: Option<u64>, jobs: usize) -> Self {
        let memory = memory.unwrap_or_else(|| machine_memory() / 4);
        let fitting = usize::try_from(memory / 2 / READER).unwrap_or(usize::MAX);
        Self {
            records: memory / 8,
            structures: memory / 4,
            held: memory / 4,
            frames: memory / 8,
            threads: jobs.min(fitting).max(1),
            ..Self::default()
        }
    }

    /// The limits of a command without an option for them: decoded streams and structures get parts of a
    /// quarter of the machine's memory.
    pub fn of_machine() -> Self {
        let Self { held, structures, .. } = Self::of_reader(None, 1);
        Self { held, structures, ..Self::default() }
    }
}

fn memory_too_small(memory: u64, least: u64) -> Error {
    let [memory_mib, least_mib] = [memory, least].map(|bytes| bytes.div_ceil(1 << 20));
    let message = format!("--memory {memory_mib}M is too small");
    let hint = format!(
        "the minimum at these compression levels is {least_mib}M; building one package format needs \
         less than building both"
    );
    Error::new(Kind::Usage, message).hint(hint)
}

/// The memory of the machine in bytes, or the limit of this process's control groups, if that is lower. The
/// groups count where `/proc` is mounted, as in containers.
fn machine_memory() -> u64 {
    let machine = rustix::system::sysinfo();
    let total = machine.totalram.saturating_mul(u64::from(machine.mem_unit));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = limit_files(&groups)
        .filter_map(|path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok());
    limits.fold(total, u64::min)
}

/// The files with the memory limits of a process whose `/proc/self/cgroup` is `groups`: those of each control
/// group and its ancestors, by version 2 (`0::/path`) and 1 (`4:memory:/path`). See cgroups(7).
fn limit_files(groups: &str) -> impl Iterator<Item = PathBuf> {
    groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
        let (mount, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        };
        let is_memory =
            controllers.is_empty() || controllers.split(',').any(|name| name == "memory");
        // A container may see its own group as the root, while the path names groups outside of it.
        let own = Path::new(path.trim_start_matches('/')).ancestors();
        own.filter(move |_| is_memory).map(move |group| Path::new(mount).join(group).join(file))
    })
}

/// Parses a number of bytes: digits, or digits with K, M, G or T for powers of 1024.
pub fn parse_size(text: &str) -> std::result::Result<u64, String> {
    let (digits, shift) = match text.bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        Some(b'T' | b't') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    number.ok_or_else(|| "not a number of bytes such as 20G".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_divided_and_too_little_is_refused() {
        let needs = BuildNeeds { compressors: 640 << 20, thread: 64 << 20, jobs: 100 };
        let Limits { frames, compressors, held, threads, .. } =
            limits_of_build(4 << 30, needs).unwrap();
        assert_eq!(frames + compressors + held + threads as u64 * needs.thread, 4 << 30);
        assert_eq!(limits_of_build(1 << 30, needs).unwrap().compressors, needs.compressors);
        assert_eq!(limits_of_build((1 << 30) - 1, needs).unwrap_err().kind(), Kind::Usage);
        assert!(limits_of_build(0, BuildNeeds { compressors: ASIDE, thread: 0, jobs: 1 }).is_ok());
        assert!(Limits::of_build(None, needs).is_ok());
        let thread = BuildNeeds { thread: 1 << 30, ..needs };
        assert!(limits_of_build(4 << 30, thread).is_err());
        assert_eq!(limits_of_build(8 << 30, thread).unwrap().threads, 1);
        assert_eq!(limits_of_build(8 << 30, BuildNeeds { jobs: 3, ..needs }).unwrap().threads, 3);
    }

    fn limits_of_build(memory: u64, needs: BuildNeeds) -> Result<Limits> {
        Limits::of_build(Some(memory), needs)
    }

    #[test]
    fn limits_are_those_of_all_groups_around_the_process() {
        let unified = ["a/b.service/", "a/", ""].map(|g| format!("/sys/fs/cgroup/{g}memory.max"));
        assert_eq!(limit_paths("0::/a/b.service\n"), unified);
        let expected =
            ["a/", ""].map(|g| format!("/sys/fs/cgroup/memory/{g}memory.limit_in_bytes"));
        assert_eq!(limit_paths("5:cpu:/a\n4:hugetlb,memory:/a\n1:name=systemd:/a\n"), expected);
    }

    fn limit_paths(groups: &str) -> Vec<String> {
        limit_files(groups).map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn readers_have_a_thread_whatever_the_budget() {
        let Limits { frames, records, held, threads, .. } = Limits::of_reader(Some(0), 64);
        assert_eq!((frames, records, held, threads), (0, 0, 0, 1));
        let Limits { frames, records, held, threads, .. } = Limits::of_reader(Some(4 << 30), 64);
        assert!(frames + records + held + threads as u64 * READER <= 4 << 30 && threads == 10);
        assert!(Limits::of_reader(None, 64).held > 0);
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
