//! The number of threads for each compressor.

pub use rockpack_core::compression::{Compression, Contexts};

use rockpack_core::compression::Workers;
use rockpack_core::run::Use;

use super::options::EmitOptions;

/// Most threads that pay off: reading and digesting limit more than this.
const MOST: u32 = 8;

/// Compressor threads of each of `streams` payloads that are written at the same time.
pub(super) fn workers(streams: usize, options: &EmitOptions<'_>) -> Workers {
    Workers { count: count(streams, options), contexts: options.contexts.clone() }
}

/// Compressor threads of a package with `streams` payloads.
pub(super) fn cores(streams: usize, options: &EmitOptions<'_>) -> usize {
    let count = count(streams, options);
    usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(streams)
}

/// Memory of a package with `streams` payloads, in bytes.
pub(super) fn memory(streams: usize, options: &EmitOptions<'_>) -> u64 {
    let one = options.compression.memory(count(streams, options));
    one.saturating_mul(streams as u64)
}

/// Threads per stream: the jobs divided among the streams, as far as memory allows, and at least one each.
fn count(streams: usize, options: &EmitOptions<'_>) -> u32 {
    let streams = streams.max(1);
    let share = options.jobs.div_ceil(streams);
    let memory = options.budget.all(Use::Compressors) / streams as u64;
    let share = u32::try_from(share).unwrap_or(u32::MAX).clamp(1, MOST);
    let fitting = (1..=share).take_while(|count| options.compression.memory(*count) <= memory);
    fitting.last().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use rockpack_core::run::{Budget, Limits};

    use super::*;
    use rockpack_report::Silent;

    fn options(jobs: usize, compression: Compression) -> EmitOptions<'static> {
        EmitOptions {
            jobs,
            budget: Budget::new(Limits { compressors: 896 << 20, ..Limits::default() }),
            contexts: Contexts::default(),
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

    fn count_with(jobs: usize, streams: usize, compression: Compression) -> u32 {
        count(streams, &options(jobs, compression))
    }

    #[test]
    fn jobs_are_shared_out_within_memory() {
        let zstd = Compression::default();
        assert_eq!([0, 1, 2, 3].map(|jobs| count_with(jobs, 2, zstd)), [1, 1, 1, 2]);
        assert!(zstd.memory(count_with(64, 2, zstd)) <= 448 << 20);
        assert!(memory(2, &options(64, zstd)) <= 896 << 20);
        // The largest presets exceed the budget with one thread already, so they get one.
        assert_eq!(count_with(64, 2, Compression::Xz { preset: 9 }), 1);
        assert!(count_with(64, 1, Compression::Xz { preset: 6 }) > 1);
    }
}
