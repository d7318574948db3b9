//! The limits of one run, and the signal that ends it.
//!
//! A [`Budget`] is a value: the caller makes one from its options and hands it down, and two runs in one
//! process do not affect each other. Content carries the budget that it was opened within, so readers of
//! formats draw from it without knowing how it was divided. The only global state is the signal in
//! [`interrupt`] and the listener in [`waiting`].
//!
//! Refused: input that needs more memory than its part, and thread pools made elsewhere.

mod limits;
pub mod threads;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

pub use limits::{BuildNeeds, Limits, parse_size};

use crate::error::{Error, Kind, Result};

/// A run that is asked to end stops at its next read.
///
/// A signal handler may do little, and a thread cannot be stopped from outside. So the handler notes the
/// request here, and everything that reads content checks for it. The run is then rolled back as after any
/// other error. The renames that make a set visible read no content, so a signal does not interrupt them.
pub mod interrupt {
    use std::sync::atomic::{AtomicI32, Ordering};

    use crate::error::{Error, Kind, Result};

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
}

/// Reports what a run waits for, so that it never blocks silently.
///
/// Code that waits for a lock returns only when it has the lock, and knows no terminal. The program registers
/// a listener once; a library without a listener waits silently.
pub mod waiting {
    use std::sync::OnceLock;

    type Listener = Box<dyn Fn(&str) + Send + Sync>;

    static LISTENER: OnceLock<Listener> = OnceLock::new();

    /// Registers the listener for everything this process waits for. Only the first call counts.
    pub fn listen(listener: impl Fn(&str) + Send + Sync + 'static) {
        let _ = LISTENER.set(Box::new(listener));
    }

    /// Passes what the process waits for to the listener, if there is one.
    pub fn tell(text: &str) {
        if let Some(listener) = LISTENER.get() {
            listener(text);
        }
    }
}

/// Bytes of records, and of structures read as a whole, that every budget allows in addition to its limits.
const ASIDE: u64 = 96 << 20;

/// Bytes that a file, folder or link takes in a build of both formats, without its path. Measured on 50,000,
/// 60,000 and 200,000 files: 4.1 KiB each with paths of 60 bytes, 6.4 KiB with 170.
const ENTRY: u64 = 2560;

/// Number of copies of each path that a run keeps, by the same measurement.
const PATHS: u64 = 22;

/// Bytes that a code object takes in rows of the archive, the plan and the receipt. Derived from the size of
/// their fields, not measured.
const CODE_OBJECT: u64 = 3 << 10;

/// Bytes of memory that a byte of a table can take once it is decoded into values.
const TABLE: u64 = 48;

/// A spare buffer is reused if its capacity is at most this many times the length of the new data.
const SPARE: u64 = 4;

/// The purposes of memory, one for each part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryUse {
    /// Records of each file and code object of the input. Input that does not fit is refused.
    Records,
    /// Structures of the input that are read as a whole. Structures that do not fit are refused.
    Structures,
    /// Decoded streams that are held for their readers. Every read decodes others again.
    HeldBytes,
    /// Compressed code objects. Frames that do not fit go to a spool.
    Frames,
    /// Compressors of payloads. A compressor that does not fit waits.
    Compressors,
}

/// The memory and threads that a run may take. A clone is another handle of the same budget.
///
/// The memory is in parts, one for each [`MemoryUse`], and each part is a [`Pool`]. Most draws are returned with
/// their lease. Records stay: the paths, digests and archive rows that a run remembers of each file and code
/// object, from the scan to the receipt. They grow with the input and cannot go to a spool, so they are
/// counted as they come. Input that needs more than its part is refused before it is taken in.
#[derive(Debug, Clone)]
pub struct Budget(Option<Arc<Handle>>);

/// A handle, with the records that were charged through it.
#[derive(Debug)]
struct Handle {
    parts: Arc<Parts>,
    charged: Mutex<Lease>,
}

#[derive(Debug)]
struct Parts {
    /// The pool of each [`MemoryUse`], in the order of its variants.
    pools: [Arc<Pool>; 5],
    threads: usize,
}

impl Budget {
    pub fn new(limits: Limits) -> Self {
        let Limits { records, structures, held, frames, compressors, threads } = limits;
        let [records, structures] = [records, structures].map(|part| part.saturating_add(ASIDE));
        let pools = [records, structures, held, frames, compressors].map(Pool::new);
        Self::handle(Arc::new(Parts { pools, threads }))
    }

    /// A budget without limits, for tests and for content that needs no memory to read, such as bytes in
    /// memory.
    pub const fn unlimited() -> Self {
        Self(None)
    }

    fn handle(parts: Arc<Parts>) -> Self {
        Self(Some(Arc::new(Handle { parts, charged: Mutex::default() })))
    }

    /// Another handle of the same budget. Records charged through it, on any thread, are returned when the
    /// handle and its clones are dropped.
    #[must_use]
    pub fn scope(&self) -> Self {
        self.parts().map_or_else(Self::unlimited, |parts| Self::handle(Arc::clone(parts)))
    }

    pub(crate) fn has_limits(&self) -> bool {
        self.0.is_some()
    }

    /// The number of threads, [`Limits::threads`].
    pub fn threads(&self) -> usize {
        self.parts().map_or(0, |parts| parts.threads)
    }

    /// The total of a use in bytes, drawn or not.
    pub fn all(&self, purpose: MemoryUse) -> u64 {
        self.pool(purpose).map_or(u64::MAX, |pool| pool.all())
    }

    /// Draws `amount` if that much is left.
    pub fn try_draw(&self, purpose: MemoryUse, amount: u64) -> Option<Lease> {
        self.pool(purpose).map_or_else(|| Some(Lease::default()), |pool| pool.try_draw(amount))
    }

    /// An empty buffer for `len` bytes that was in use before, if there is one of about that size.
    pub(crate) fn spare(&self, purpose: MemoryUse, len: u64) -> Option<(Vec<u8>, Lease)> {
        let pool = self.pool(purpose)?;
        let spare = &mut pool.lock().spare;
        let capacity = spare.capacity() as u64;
        let fits = len > 0 && (len..=len.saturating_mul(SPARE)).contains(&capacity);
        fits.then(|| (std::mem::take(spare), Lease(Some((Arc::clone(pool), capacity)))))
    }

    /// Waits until `amount` is left, or the whole part if it is smaller.
    pub fn draw(&self, purpose: MemoryUse, amount: u64) -> Lease {
        self.pool(purpose).map_or_else(Lease::default, |pool| pool.draw(amount))
    }

    /// Counts a file, folder or link of the input with a path of `path` bytes.
    pub fn charge_entry(&self, path: usize) -> Result<()> {
        self.charge(ENTRY + PATHS * path as u64)
    }

    /// Counts `bytes` more of paths or link targets.
    pub fn charge_paths(&self, bytes: usize) -> Result<()> {
        self.charge(PATHS * bytes as u64)
    }

    /// Counts a code object whose name and target have `names` bytes.
    pub fn charge_code_object(&self, names: usize) -> Result<()> {
        self.charge(CODE_OBJECT + names as u64)
    }

    /// Counts `count` code objects again, for another wrapper that refers to them.
    pub fn charge_code_objects_again(&self, count: usize) -> Result<()> {
        self.charge(CODE_OBJECT.saturating_mul(count as u64))
    }

    /// Draws for records, until the handle is dropped. After a failure, nothing is left for others.
    fn charge(&self, bytes: u64) -> Result<()> {
        let (Some(handle), Some(records)) = (&self.0, self.pool(MemoryUse::Records)) else {
            return Ok(());
        };
        let drawn = records.try_draw(bytes);
        let fits = drawn.is_some();
        let rest = || Lease(Some((Arc::clone(records), std::mem::take(&mut records.lock().left))));
        let lease = drawn.unwrap_or_else(rest);
        handle.charged.lock().unwrap_or_else(PoisonError::into_inner).join(lease);
        if fits {
            return Ok(());
        }
        let message = format!(
            "the list of files and code objects of the input needs more than {} MiB of memory",
            records.all() >> 20
        );
        let hint =
            "raise --memory (a part of it is for this list), or give fewer artifacts at a time";
        Err(Error::new(Kind::Limit, message).hint(hint))
    }

    /// Whether nothing is left for records, as after a failed charge.
    pub fn is_exhausted(&self) -> bool {
        self.pool(MemoryUse::Records).is_some_and(|records| records.left() == 0)
    }

    /// Bytes of records charged beyond the allowance of every budget.
    pub fn excess_records(&self) -> u64 {
        self.charged().saturating_sub(ASIDE)
    }

    fn charged(&self) -> u64 {
        self.pool(MemoryUse::Records).map_or(0, |records| records.all() - records.left())
    }

    /// Refuses `what` of `len` bytes if it is too long for every thread to read one as a whole.
    pub fn check_structure(&self, len: u64, what: &str) -> Result<()> {
        let threads = u64::try_from(self.threads().max(1)).unwrap_or(u64::MAX);
        refuse_long(len, self.all(MemoryUse::Structures) / threads, what)
    }

    /// Draws for a table `what` of `len` bytes that is decoded as a whole; refused if it is too long. Waits
    /// until other tables leave enough, so that one table may take the whole part.
    pub fn table(&self, len: u64, what: &str) -> Result<Lease> {
        refuse_long(len, self.all(MemoryUse::Structures) / TABLE, what)?;
        Ok(self.draw(MemoryUse::Structures, len.saturating_mul(TABLE)))
    }

    fn parts(&self) -> Option<&Arc<Parts>> {
        self.0.as_ref().map(|handle| &handle.parts)
    }

    fn pool(&self, purpose: MemoryUse) -> Option<&Arc<Pool>> {
        self.parts()?.pools.get(purpose as usize)
    }
}

fn refuse_long(len: u64, limit: u64, what: &str) -> Result<()> {
    if len <= limit {
        return Ok(());
    }
    let message = format!("{what} of {len} bytes exceeds the {limit} bytes that --memory allows");
    Err(Error::new(Kind::Limit, message).hint("raise --memory"))
}

/// An amount from which several users draw at the same time.
#[derive(Debug)]
pub struct Pool {
    all: u64,
    state: Mutex<PoolState>,
    returned: Condvar,
}

#[derive(Debug)]
struct PoolState {
    /// What is not drawn; the spare buffer is.
    left: u64,
    /// A buffer that is not in use: fresh memory costs a page fault for every 4 KiB.
    spare: Vec<u8>,
}

impl PoolState {
    /// Whether `amount` is left, if need be without the spare buffer.
    fn has(&mut self, amount: u64) -> bool {
        if self.left < amount {
            self.left += std::mem::take(&mut self.spare).capacity() as u64;
        }
        self.left >= amount
    }
}

/// An amount drawn from a pool, returned on drop. The default is nothing.
#[must_use]
#[derive(Debug, Default)]
pub struct Lease(Option<(Arc<Pool>, u64)>);

impl Pool {
    pub fn new(all: u64) -> Arc<Self> {
        let state = PoolState { left: all, spare: Vec::new() };
        Arc::new(Self { all, state: Mutex::new(state), returned: Condvar::new() })
    }

    /// The total, drawn or not.
    pub fn all(&self) -> u64 {
        self.all
    }

    /// Draws `amount` if that much is left.
    pub fn try_draw(self: &Arc<Self>, amount: u64) -> Option<Lease> {
        let mut state = self.lock();
        if !state.has(amount) {
            return None;
        }
        state.left -= amount;
        drop(state);
        Some(Lease(Some((Arc::clone(self), amount))))
    }

    /// Waits until `amount` is left, or the whole pool if it is smaller.
    pub fn draw(self: &Arc<Self>, amount: u64) -> Lease {
        let amount = amount.min(self.all);
        let enough = self.returned.wait_while(self.lock(), |state| !state.has(amount));
        enough.unwrap_or_else(PoisonError::into_inner).left -= amount;
        Lease(Some((Arc::clone(self), amount)))
    }

    /// The amount that is not drawn.
    pub fn left(&self) -> u64 {
        self.lock().left
    }

    /// Locks the amount. No thread panics while it holds the lock, so a poisoned number is right.
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    /// Merges `other`, drawn from the same pool; a lease of nothing becomes `other`.
    fn join(&mut self, mut other: Self) {
        let Some((pool, more)) = other.0.take() else { return };
        match &mut self.0 {
            Some((_, amount)) => *amount += more,
            none => *none = Some((pool, more)),
        }
    }

    /// Exchanges `buffer`, which was drawn for, for the spare one of the pool, whichever is larger.
    pub(crate) fn spare(&mut self, buffer: &mut Vec<u8>) {
        let Some((pool, amount)) = &mut self.0 else { return };
        let mut state = pool.lock();
        if buffer.capacity() as u64 == *amount && buffer.capacity() > state.spare.capacity() {
            std::mem::swap(&mut state.spare, buffer);
            *amount = buffer.capacity() as u64;
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some((pool, amount)) = &self.0 {
            pool.lock().left += amount;
            pool.returned.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// A budget with room for the records of `count` code objects.
    fn budget(count: u64) -> Budget {
        let records = (count * CODE_OBJECT).saturating_sub(ASIDE);
        Budget::new(Limits { records, structures: 0, threads: 2, ..Limits::default() })
    }

    const COUNT: u64 = ASIDE / CODE_OBJECT + 10;

    #[test]
    fn each_use_has_its_own_part() {
        let budget = Budget::new(Limits { held: 5, frames: 3, ..Limits::default() });
        let held = budget.try_draw(MemoryUse::HeldBytes, 5);
        assert!(held.is_some() && budget.clone().try_draw(MemoryUse::HeldBytes, 1).is_none());
        assert!(budget.try_draw(MemoryUse::Frames, 3).is_some());
        drop(held);
        assert!(budget.scope().try_draw(MemoryUse::HeldBytes, 5).is_some());
        assert_eq!(
            [MemoryUse::HeldBytes, MemoryUse::Compressors].map(|of| budget.all(of)),
            [5, u64::MAX]
        );
        assert!(Budget::unlimited().try_draw(MemoryUse::HeldBytes, u64::MAX).is_some());
    }

    #[test]
    fn a_scope_gives_back_what_was_charged_inside() {
        let budget = budget(COUNT);
        budget.charge_code_objects_again(8).unwrap();
        let scope = budget.scope();
        thread::scope(|threads| {
            let inside = scope.clone();
            threads.spawn(move || inside.charge_code_objects_again(30_000));
            // Charges of others meanwhile stay.
            threads.spawn(|| budget.charge_code_object(0).unwrap());
        });
        assert_eq!(budget.charged(), (8 + 1 + 30_000) * CODE_OBJECT);
        drop(scope);
        assert_eq!(budget.charged(), 9 * CODE_OBJECT);
    }

    #[test]
    fn too_many_are_an_error_of_their_own_budget_alone() {
        let (small, large) = (budget(COUNT), budget(COUNT * 2));
        let count = usize::try_from(COUNT - 1).unwrap();
        for budget in [&small, &large, &Budget::unlimited()] {
            budget.charge_code_objects_again(count).unwrap();
            assert!(!budget.is_exhausted());
        }
        small.charge_code_object(0).unwrap();
        let scope = small.scope();
        assert_eq!(scope.charge_code_object(0).unwrap_err().kind(), Kind::Limit);
        large.charge_code_objects_again(2).unwrap();
        assert_eq!([&small, &large].map(Budget::is_exhausted), [true, false]);
        assert_eq!(small.excess_records(), small.charged() - ASIDE);
    }

    /// Components are transformed one after the other: a failed one must leave its room to the next.
    #[test]
    fn a_scope_that_failed_gives_back_the_rest() {
        let budget = budget(COUNT);
        let scope = budget.scope();
        let too_many = usize::try_from(COUNT + 1).unwrap();
        assert!(scope.charge_code_objects_again(too_many).is_err());
        assert!(budget.is_exhausted() && budget.charge_code_object(0).is_err());
        drop(scope);
        assert!(!budget.is_exhausted());
        budget.charge_code_object(0).unwrap();
    }

    #[test]
    fn a_table_has_the_part_alone_and_a_structure_shares_it() {
        let budget = budget(1);
        assert!(budget.check_structure(ASIDE / 2, "x").is_ok());
        assert!(budget.check_structure(ASIDE / 2 + 1, "x").is_err());
        let table = budget.table(ASIDE / TABLE, "x").unwrap();
        assert!(budget.table(ASIDE / TABLE + 1, "x").is_err());
        assert!(budget.try_draw(MemoryUse::Structures, TABLE).is_none());
        drop(table);
        let _small = [budget.table(1, "x").unwrap(), budget.table(1, "x").unwrap()];
    }

    #[test]
    fn a_lease_comes_back_when_it_is_dropped() {
        let pool = Pool::new(3);
        let two = pool.draw(2);
        assert!(pool.try_draw(2).is_none());
        assert_eq!(pool.left(), 1);
        thread::scope(|scope| {
            // A draw of more than the pool's total waits for all of it.
            let waiting = scope.spawn(|| pool.draw(9));
            drop(two);
            let all = waiting.join().unwrap();
            assert_eq!(pool.left(), 0);
            drop(all);
        });
        assert_eq!(pool.left(), 3);
    }

    #[test]
    fn a_lease_comes_back_on_an_error() {
        let pool = Pool::new(3);
        assert_eq!([fail_with_lease(&pool), fail_with_lease(&pool)], [Err("failed"); 2]);
        assert_eq!(pool.left(), 3);
    }

    fn fail_with_lease(pool: &Arc<Pool>) -> Result<(), &'static str> {
        let _lease = pool.try_draw(3).ok_or("nothing is left")?;
        Err("failed")
    }
}
