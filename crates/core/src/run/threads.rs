//! Thread pools. Only this module makes them.
//!
//! Rayon outside of a pool uses its global one, which panics where the system starts no thread. So each entry
//! point of the library that works in parallel takes its threads from here.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rayon::ThreadPoolBuilder;

use crate::error::{Error, Result};

/// Does `work` with `jobs` threads; 0 means one for each core.
pub fn with<T: Send>(jobs: usize, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let pool =
        ThreadPoolBuilder::new().num_threads(jobs).build().map_err(Error::thread_start_failure)?;
    pool.install(work)
}

/// Does `work` with the threads of the caller's pool, or else with one for each core.
pub fn in_current_pool<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    match rayon::current_thread_index() {
        Some(_) => work(),
        None => with(0, work),
    }
}

pub fn on_new_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .spawn_scoped(scope, work)
            .map_err(Error::thread_start_failure)?;
        thread.join().map_err(|_| Error::bug("a thread panicked"))
    })
}

/// The number of threads of the caller's pool, or else of cores.
pub fn count() -> usize {
    match rayon::current_thread_index() {
        Some(_) => rayon::current_num_threads(),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    }
}

/// Does `work` for each of `items`, and returns the results in their order. Works on this thread and up to
/// `count - 1` others outside of any pool; fewer, if the system starts no more.
pub fn each<I: Sync, T: Send>(
    items: &[I],
    count: usize,
    work: impl Fn(&I) -> T + Sync,
) -> Result<Vec<T>> {
    let (next, work) = (&AtomicUsize::new(0), &work);
    let mut done = thread::scope(|scope| {
        let start = |_| {
            let other = move || work_through(items, next, work);
            thread::Builder::new().spawn_scoped(scope, other).ok()
        };
        let others: Vec<_> = (1..count.min(items.len())).map_while(start).collect();
        let mut done = work_through(items, next, work);
        for other in others {
            done.extend(other.join().map_err(|_| Error::bug("a thread panicked"))?);
        }
        Ok::<_, Error>(done)
    })?;
    done.sort_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

/// Does `work` for the items from `next` on that no other thread takes.
fn work_through<I, T>(items: &[I], next: &AtomicUsize, work: &impl Fn(&I) -> T) -> Vec<(usize, T)> {
    let done = std::iter::from_fn(|| {
        let index = next.fetch_add(1, Ordering::Relaxed);
        items.get(index).map(|item| (index, work(item)))
    });
    done.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<usize> = (0..100).collect();
        for count in [0, 1, 7, 200] {
            let doubled = each(&items, count, |item| item * 2).unwrap();
            assert!(doubled.iter().enumerate().all(|(index, result)| *result == index * 2));
            assert_eq!(doubled.len(), items.len(), "{count}");
        }
    }
}
