//! How many threads each compressor gets.

pub use crate::formats::compression::Compression;

use super::EmitOptions;

/// More threads than this do not pay: reading and digesting hold them up.
const MOST: u32 = 8;

/// Compressor threads of each of `streams` payloads that are written at the same time: the jobs
/// are shared out as far as the memory goes, and each stream has at least one thread.
pub(super) fn workers(streams: usize, options: &EmitOptions<'_>) -> u32 {
    let EmitOptions { jobs, memory, compression, .. } = *options;
    let share = jobs.div_ceil(streams.max(1));
    let memory = memory / u64::try_from(streams.max(1)).unwrap_or(u64::MAX);
    let share = u32::try_from(share).unwrap_or(u32::MAX).clamp(1, MOST);
    let fits = |workers: &u32| compression.memory(*workers) <= memory;
    (1..=share).take_while(fits).last().unwrap_or(1)
}

/// Compressor threads of a package with `streams` payloads.
pub(super) fn cores(streams: usize, options: &EmitOptions<'_>) -> usize {
    let workers = workers(streams, options);
    usize::try_from(workers).unwrap_or(usize::MAX).saturating_mul(streams)
}

/// Memory of a package with `streams` payloads, in MiB.
pub(super) fn mebibytes(streams: usize, options: &EmitOptions<'_>) -> usize {
    let memory = options.compression.memory(workers(streams, options)).div_ceil(MIB);
    usize::try_from(memory).unwrap_or(usize::MAX).saturating_mul(streams)
}

/// All memory of compressors, in MiB.
pub(super) fn all_mebibytes(options: &EmitOptions<'_>) -> usize {
    usize::try_from(options.memory / MIB).unwrap_or(usize::MAX)
}

const MIB: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Silent;

    fn options(jobs: usize, compression: Compression) -> EmitOptions<'static> {
        EmitOptions {
            jobs,
            memory: 896 << 20,
            cache: None,
            compression,
            content_date: 0,
            source_date_epoch: 0,
            indexed: false,
            sha1: false,
            signer: None,
            progress: &Silent,
        }
    }

    #[test]
    fn jobs_are_shared_out_within_memory() {
        let zstd = Compression::default();
        let of = |jobs, streams, compression| workers(streams, &options(jobs, compression));
        assert_eq!([0, 1, 2, 3].map(|jobs| of(jobs, 2, zstd)), [1, 1, 1, 2]);
        assert!(zstd.memory(of(64, 2, zstd)) <= 448 << 20);
        assert!(mebibytes(2, &options(64, zstd)) <= all_mebibytes(&options(64, zstd)));
        // The largest presets exceed the budget with one thread already, and get just that.
        assert_eq!(of(64, 2, Compression::Xz { preset: 9 }), 1);
        assert!(of(64, 1, Compression::Xz { preset: 6 }) > 1);
    }
}
