//! Schedules packages on the cores.
//!
//! Making a package's content and compressing it uses cores and memory; syncing its files uses neither. So a package
//! frees its cores before it is synced, and the next one begins meanwhile. With many cores, several packages are
//! compressed in parallel. A compressor's memory grows with its threads, so the total is limited.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};

use rockpack_core::compression::Workers;
use rockpack_core::error::{Error, Faults, Result};
use rockpack_core::run::{Lease, MemoryUse, Pool};

use super::EmitOptions;
use rockpack_package::Package;

/// Limit on packages that wait for fsync, in addition to those that compress: each has a thread and open files.
const SEALING_MAX: usize = 16;

/// The cores and the memory of a package that is being compressed; freed on drop.
#[expect(dead_code, reason = "held, not read")]
pub struct WorkerSlot(Lease, Lease);

/// Calls `make` for one package after the other on this thread, and `write` for each on a thread of its own once cores
/// are free. `write` drops its slot when it no longer needs the cores. Returns the results in the order of `packages`;
/// after a fault no further package begins.
pub fn schedule_packages<'p, F, M: Send, T: Send>(
    packages: &'p [Package<F>],
    options: &EmitOptions<'_>,
    mut make: impl FnMut(&'p Package<F>) -> Result<M>,
    write: impl Fn(M, WorkerSlot) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let cores = Pool::new(options.jobs as u64);
    let threads = Pool::new(options.jobs.saturating_add(SEALING_MAX) as u64);
    let failed = AtomicBool::new(false);
    let write_one = |made, slot, place| {
        let _place: Lease = place;
        let written = write(made, slot);
        failed.fetch_or(written.is_err(), Ordering::Relaxed);
        written
    };
    let mut results = thread::scope(|scope| {
        let (mut running, mut results) = (Vec::new(), Vec::new());
        for (index, package) in packages.iter().enumerate() {
            failed.fetch_or(join_ended(&mut running, &mut results), Ordering::Relaxed);
            let place = threads.draw(1);
            let streams = package.formats().count();
            let cores = cores.draw(compressor_cores(streams, options) as u64);
            let memory = compressor_memory(streams, options);
            let slot = WorkerSlot(cores, options.budget.draw(MemoryUse::Compressors, memory));
            if failed.load(Ordering::Relaxed) {
                break;
            }
            let thread = make(package).and_then(|made| {
                let run = || write_one(made, slot, place);
                let thread = thread::Builder::new().spawn_scoped(scope, run);
                thread.map_err(Error::thread_start_failure)
            });
            match thread {
                Ok(thread) => running.push((index, thread)),
                Err(fault) => {
                    failed.store(true, Ordering::Relaxed);
                    results.push((index, Err(fault)));
                }
            }
        }
        results.extend(running.into_iter().map(|(index, thread)| (index, joined(thread))));
        results
    });
    results.sort_by_key(|(index, _)| *index);
    Faults::all(results.into_iter().map(|(_, result)| result))
}

/// Moves the results of finished threads from `running` to `results`, and returns whether one is a fault. A thread
/// keeps its stack until it is joined.
fn join_ended<T>(
    running: &mut Vec<(usize, ScopedJoinHandle<'_, Result<T>>)>,
    results: &mut Vec<(usize, Result<T>)>,
) -> bool {
    let before = results.len();
    let ended = running.extract_if(.., |(_, thread)| thread.is_finished());
    results.extend(ended.map(|(index, thread)| (index, joined(thread))));
    results[before..].iter().any(|(_, result)| result.is_err())
}

fn joined<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(Error::bug("a thread that writes a package panicked")))
}

/// Compressor threads for each of `streams` payloads that are written at the same time.
pub(super) fn compressor_workers(streams: usize, options: &EmitOptions<'_>) -> Workers {
    Workers { count: compressor_threads(streams, options), contexts: options.contexts.clone() }
}

pub(super) fn compressor_cores(streams: usize, options: &EmitOptions<'_>) -> usize {
    let count = compressor_threads(streams, options);
    usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(streams)
}

fn compressor_memory(streams: usize, options: &EmitOptions<'_>) -> u64 {
    let one = options.compression.memory(compressor_threads(streams, options));
    one.saturating_mul(streams as u64)
}

/// Threads per stream: the jobs divided among the streams, as far as memory allows, and at least one each.
fn compressor_threads(streams: usize, options: &EmitOptions<'_>) -> u32 {
    let streams = streams.max(1);
    let share = options.jobs.div_ceil(streams);
    let memory = options.budget.all(MemoryUse::Compressors) / streams as u64;
    // More threads do not help: reading and digesting are the limit.
    let share = u32::try_from(share).unwrap_or(u32::MAX).clamp(1, 8);
    let fitting = (1..=share).take_while(|count| options.compression.memory(*count) <= memory);
    fitting.last().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use rockpack_core::compression::{Compression, Contexts};
    use rockpack_core::run::{Budget, Limits};

    use super::*;
    use rockpack_report::Silent;

    fn options(jobs: usize, compression: Compression) -> EmitOptions<'static> {
        EmitOptions {
            jobs,
            budget: Budget::new(Limits { compressors: 896 << 20, ..Limits::default() }),
            contexts: Contexts::default(),
            cache: None,
            compression: compression.into(),
            content_date: 0,
            source_date_epoch: 0,
            indexed: false,
            sha1: false,
            signer: None,
            progress: &Silent,
        }
    }

    fn count_with(jobs: usize, streams: usize, compression: Compression) -> u32 {
        compressor_threads(streams, &options(jobs, compression))
    }

    #[test]
    fn jobs_are_shared_out_within_memory() {
        let zstd = Compression::default();
        assert_eq!([0, 1, 2, 3].map(|jobs| count_with(jobs, 2, zstd)), [1, 1, 1, 2]);
        assert!(zstd.memory(count_with(64, 2, zstd)) <= 448 << 20);
        assert!(compressor_memory(2, &options(64, zstd)) <= 896 << 20);
        // The largest presets exceed the budget with one thread already, so they get one.
        assert_eq!(count_with(64, 2, Compression::Xz { preset: 9 }), 1);
        assert!(count_with(64, 1, Compression::Xz { preset: 6 }) > 1);
    }
}
