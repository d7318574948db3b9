//! A run that is asked to end stops at its next read.
//!
//! A signal handler may do little, and a thread cannot be stopped from outside. So the handler notes the
//! request here, and everything that reads content checks for it. The run is then rolled back as after any
//! other error. The renames that make a set visible read no content, so a signal does not interrupt them.

use std::sync::atomic::{AtomicI32, Ordering};

use crate::error::{Error, Kind, Result};

/// The number of the signal, or 0.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Asks this process to end because of `signal`, and returns whether this was the first request.
pub fn request(signal: i32) -> bool {
    SIGNAL.compare_exchange(0, signal, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

/// The signal that asked this process to end.
pub fn requested() -> Option<i32> {
    match SIGNAL.load(Ordering::Relaxed) {
        0 => None,
        signal => Some(signal),
    }
}

/// Fails if this process was asked to end.
pub fn check() -> Result<()> {
    match requested() {
        None => Ok(()),
        Some(_) => Err(Error::new(Kind::Interrupted, "interrupted")),
    }
}
