//! The threads that work in parallel. Only this module makes pools of them.
//!
//! What uses rayon outside of a pool gets its global one, which panics where the system starts no
//! thread. So each way into the library that goes parallel asks for its threads here.

use rayon::ThreadPoolBuilder;

use crate::error::{Error, Result};

/// Does `work` with `jobs` threads; with one for each core where that is 0.
pub fn with<T: Send>(jobs: usize, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let pool = ThreadPoolBuilder::new().num_threads(jobs).build().map_err(Error::no_thread)?;
    pool.install(work)
}

/// Does `work` with the threads of whoever calls, or else with one for each core.
pub fn some<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    match rayon::current_thread_index() {
        Some(_) => work(),
        None => with(0, work),
    }
}

/// With how many threads whoever calls works, or else the cores.
pub fn count() -> usize {
    match rayon::current_thread_index() {
        Some(_) => rayon::current_num_threads(),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    }
}
