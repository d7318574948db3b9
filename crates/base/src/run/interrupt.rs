//! A run that is asked to end, ends where it reads next.
//!
//! A signal handler must not do much, and a thread cannot be stopped from outside, so a request is
//! noted here and everything that reads content asks for it. What was begun is then taken back as
//! after any other error. The renames that make a set visible read no content: they are done
//! whole or not begun.

use std::sync::atomic::{AtomicI32, Ordering};

use crate::error::{Error, Kind, Result};

/// The number of the signal, or 0.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Asks this process to end because of `signal`, and says whether it was the first to ask.
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

/// Fails once this process was asked to end.
pub fn check() -> Result<()> {
    match requested() {
        None => Ok(()),
        Some(_) => Err(Error::new(Kind::Interrupted, "interrupted")),
    }
}
