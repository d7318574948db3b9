//! Memory for what a run remembers of each file and code object of its input, from the scan to the
//! receipt: paths, digests, rows of archives. It grows with their number and no spool helps against
//! it, so that it is counted, and an input that needs more than the budget leaves is refused by
//! name before it is taken in.
//!
//! The count is one of the process, like the limit of [`limit_held`](crate::content::limit_held):
//! it begins anew with [`limit`] and ends with what that returns. Without a limit nothing is refused.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Kind, Result};

/// Bytes of records that lie beside every budget.
const ASIDE: u64 = 96 << 20;

/// Bytes that a file, folder or link takes in a build of both formats, without its path. Measured on
/// 50,000, 60,000 and 200,000 files: 4.1 KiB each with paths of 60 bytes, 6.4 KiB with 170.
const ENTRY: u64 = 2560;

/// How often its path is there, by the same measurement.
const PATHS: u64 = 22;

/// Bytes that a code object takes: its rows of the archive, the plan and the receipt. Reckoned from
/// the fields of these, not measured.
const CODE_OBJECT: u64 = 3 << 10;

/// What is decoded as a whole, and how many bytes of memory each of its bytes can take.
const TABLE: u64 = 48;

static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);
static TAKEN: AtomicU64 = AtomicU64::new(0);
static STRUCTURE: AtomicU64 = AtomicU64::new(u64::MAX);
static TABLES: AtomicU64 = AtomicU64::new(u64::MAX);
static TABLE_IN_USE: Mutex<()> = Mutex::new(());

/// Begins to count, up to `records` bytes and 96 MiB. Structures of the input that are read
/// as a whole may have `structures` bytes beside them, in equal parts for `threads`.
pub fn limit(records: u64, structures: u64, threads: usize) -> Limited {
    let threads = u64::try_from(threads.max(1)).unwrap_or(u64::MAX);
    LIMIT.store(records.saturating_add(ASIDE), Ordering::Release);
    TABLES.store(structures.saturating_add(ASIDE), Ordering::Release);
    STRUCTURE.store(structures.saturating_add(ASIDE) / threads, Ordering::Release);
    TAKEN.store(0, Ordering::Release);
    Limited(())
}

/// The limits are in force as long as this is there.
#[must_use]
pub struct Limited(());

impl Drop for Limited {
    fn drop(&mut self) {
        LIMIT.store(u64::MAX, Ordering::Release);
        TABLES.store(u64::MAX, Ordering::Release);
        STRUCTURE.store(u64::MAX, Ordering::Release);
    }
}

/// Counts a file, folder or link of the input with a path of `path` bytes.
pub fn charge_entry(path: usize) -> Result<()> {
    charge(ENTRY + PATHS * path as u64)
}

/// Counts `bytes` more of paths.
pub fn charge_paths(bytes: usize) -> Result<()> {
    charge(PATHS * bytes as u64)
}

/// Counts a code object whose name and target have `names` bytes.
pub fn charge_code_object(names: usize) -> Result<()> {
    charge(CODE_OBJECT + names as u64)
}

/// Counts code objects that were counted before and are remembered for one more of what has them.
pub fn charge_code_objects_again(count: usize) -> Result<()> {
    charge(CODE_OBJECT.saturating_mul(count as u64))
}

/// Counts `bytes` more.
fn charge(bytes: u64) -> Result<()> {
    let taken = TAKEN.fetch_add(bytes, Ordering::AcqRel).saturating_add(bytes);
    let limit = LIMIT.load(Ordering::Acquire);
    if taken <= limit {
        return Ok(());
    }
    let message = format!(
        "the files and code objects of the input are too many to be remembered in {} MiB",
        limit >> 20
    );
    let hint = "give more with --memory, of which a part is for this, or fewer artifacts at a time";
    Err(Error::new(Kind::Limit, message).hint(hint))
}

/// What is counted from here on is let go when this is.
#[must_use]
pub fn scope() -> Scope {
    Scope(TAKEN.load(Ordering::Acquire))
}

/// See [`scope`].
pub struct Scope(u64);

impl Drop for Scope {
    fn drop(&mut self) {
        TAKEN.store(self.0, Ordering::Release);
    }
}

/// Whether more was counted than there is room for, which was an error then.
pub fn exhausted() -> bool {
    TAKEN.load(Ordering::Acquire) > LIMIT.load(Ordering::Acquire)
}

/// Bytes counted beyond those that lie beside every budget.
pub fn excess() -> u64 {
    TAKEN.load(Ordering::Acquire).saturating_sub(ASIDE)
}

/// Refuses `what` of `len` bytes if it is too long to be read as a whole.
pub fn check_structure(len: u64, what: &str) -> Result<()> {
    refuse_long(len, STRUCTURE.load(Ordering::Acquire), what)
}

/// Refuses `what` of `len` bytes if it is too long to be decoded as a whole into values. Whoever has
/// what this returns is the only one: one after the other, tables may take what there is.
pub fn one_table(len: u64, what: &str) -> Result<MutexGuard<'static, ()>> {
    refuse_long(len, TABLES.load(Ordering::Acquire) / TABLE, what)?;
    Ok(TABLE_IN_USE.lock().unwrap_or_else(PoisonError::into_inner))
}

fn refuse_long(len: u64, limit: u64, what: &str) -> Result<()> {
    if len <= limit {
        return Ok(());
    }
    let message = format!("{what} of {len} bytes is more than the {limit} that the memory allows");
    Err(Error::new(Kind::Limit, message).hint("give more with --memory"))
}
