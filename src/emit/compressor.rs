//! How many threads each compressor gets.

pub use crate::formats::compression::Compression;

/// Compressor threads of each of `streams` payloads that are written at the same time: the jobs
/// are shared out, each stream has at least one thread, and none more than pays.
pub(super) fn workers(jobs: usize, streams: usize, compression: Compression) -> u32 {
    let share = jobs.div_ceil(streams.max(1));
    let share = u32::try_from(share).unwrap_or(u32::MAX);
    share.clamp(1, most(compression))
}

/// More threads than this would only cost memory.
fn most(compression: Compression) -> u32 {
    match compression {
        Compression::Zstd { .. } => 8,
        Compression::Xz { .. } => 8,
    }
}
