//! How many threads each compressor gets.

pub use crate::formats::compression::Compression;

use super::EmitOptions;

/// Memory that the compressor of one payload may take. Two of them, with everything else, stay
/// below a gigabyte.
const MEMORY: u64 = 448 << 20;

/// More threads than this do not pay: reading and digesting hold them up.
const MOST: u32 = 8;

/// Compressor threads of each of `streams` payloads that are written at the same time: the jobs
/// are shared out as far as [`MEMORY`] goes, and each stream has at least one thread.
pub(super) fn workers(jobs: usize, streams: usize, compression: Compression) -> u32 {
    let share = jobs.div_ceil(streams.max(1));
    let share = u32::try_from(share).unwrap_or(u32::MAX).clamp(1, MOST);
    let fits = |workers: &u32| compression.memory(*workers) <= MEMORY;
    (1..=share).take_while(fits).last().unwrap_or(1)
}

/// Compressor threads of a package with `streams` payloads.
pub(super) fn cores(streams: usize, options: &EmitOptions<'_>) -> usize {
    let workers = workers(options.jobs, streams, options.compression);
    usize::try_from(workers).unwrap_or(usize::MAX).saturating_mul(streams)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_shared_out_within_memory() {
        let zstd = Compression::default();
        assert_eq!([0, 1, 2, 3].map(|jobs| workers(jobs, 2, zstd)), [1, 1, 1, 2]);
        assert!(zstd.memory(workers(64, 2, zstd)) <= MEMORY);
        // The largest presets exceed the budget with one thread already, and get just that.
        assert_eq!(workers(64, 2, Compression::Xz { preset: 9 }), 1);
        assert!(workers(64, 1, Compression::Xz { preset: 6 }) > 1);
    }
}
