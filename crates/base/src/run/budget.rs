//! The memory and threads of one run, as a value.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::pool::{Lease, Pool};

/// Bytes of records, and of structures read as a whole, that lie beside every budget.
pub(super) const ASIDE: u64 = 96 << 20;

/// What memory is drawn for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Decoded streams that are held for their readers. What does not fit is decoded again by
    /// every read.
    Held,
    /// Compressed code objects. What does not fit goes to a spool.
    Frames,
    /// Compressors of payloads. What does not fit waits.
    Compressors,
}

/// How much a run may take, in bytes; without limits by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// What is remembered of each file and code object of the input, beside 96 MiB for all.
    pub records: u64,
    /// Structures of the input that are read as a whole, beside 96 MiB for all.
    pub structures: u64,
    /// See [`Use::Held`].
    pub held: u64,
    /// See [`Use::Frames`].
    pub frames: u64,
    /// See [`Use::Compressors`].
    pub compressors: u64,
    /// Threads that read the input and compress code objects; one for each core where this is 0.
    pub threads: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let all = u64::MAX;
        let (records, structures, held, frames, compressors) = (all, all, all, all, all);
        Self { records, structures, held, frames, compressors, threads: 0 }
    }
}

/// What a run may take. A clone is another handle of the same budget; the default has no limits.
#[derive(Debug, Clone, Default)]
pub struct Budget(pub(super) Option<Arc<Handle>>);

/// A handle, with what was charged for records through it.
#[derive(Debug)]
pub(super) struct Handle {
    pub parts: Arc<SharedPools>,
    pub charged: AtomicU64,
}

#[derive(Debug)]
pub(super) struct SharedPools {
    pub limits: Limits,
    /// Bytes charged for records through all handles.
    pub records: AtomicU64,
    /// Whoever decodes a table has the one lease.
    pub tables: Arc<Pool>,
    held: Arc<Pool>,
    frames: Arc<Pool>,
    compressors: Arc<Pool>,
}

impl Budget {
    /// A budget of which nothing is drawn yet.
    pub fn new(limits: Limits) -> Self {
        let parts = SharedPools {
            limits: Limits {
                records: limits.records.saturating_add(ASIDE),
                structures: limits.structures.saturating_add(ASIDE),
                ..limits
            },
            records: AtomicU64::new(0),
            tables: Pool::new(1),
            held: Pool::new(limits.held),
            frames: Pool::new(limits.frames),
            compressors: Pool::new(limits.compressors),
        };
        Self::handle(Arc::new(parts))
    }

    fn handle(parts: Arc<SharedPools>) -> Self {
        Self(Some(Arc::new(Handle { parts, charged: AtomicU64::new(0) })))
    }

    /// Another handle of the same budget. The records that are charged through it, on any thread,
    /// are given back when it and its clones are gone.
    #[must_use]
    pub fn scope(&self) -> Self {
        self.parts().map_or_else(Self::default, |parts| Self::handle(Arc::clone(parts)))
    }

    /// Whether it was made of limits.
    pub fn has_limits(&self) -> bool {
        self.0.is_some()
    }

    /// [`Limits::threads`].
    pub fn threads(&self) -> usize {
        self.parts().map_or(0, |parts| parts.limits.threads)
    }

    /// What all draws for a use may take together.
    pub fn all(&self, purpose: Use) -> u64 {
        self.pool(purpose).map_or(u64::MAX, |pool| pool.all())
    }

    /// Draws `amount` if that much is left.
    pub fn try_draw(&self, purpose: Use, amount: u64) -> Option<Lease> {
        self.pool(purpose).map_or_else(|| Some(Lease::default()), |pool| pool.try_draw(amount))
    }

    /// Waits until `amount` is left, or everything if there never is so much.
    pub fn draw(&self, purpose: Use, amount: u64) -> Lease {
        self.pool(purpose).map_or_else(Lease::default, |pool| pool.draw(amount))
    }

    pub(super) fn parts(&self) -> Option<&Arc<SharedPools>> {
        self.0.as_ref().map(|handle| &handle.parts)
    }

    fn pool(&self, purpose: Use) -> Option<&Arc<Pool>> {
        self.parts().map(|parts| match purpose {
            Use::Held => &parts.held,
            Use::Frames => &parts.frames,
            Use::Compressors => &parts.compressors,
        })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.parts.records.fetch_sub(*self.charged.get_mut(), Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_use_has_its_own_share() {
        let budget = Budget::new(Limits { held: 5, frames: 3, ..Limits::default() });
        let held = budget.try_draw(Use::Held, 5);
        assert!(held.is_some() && budget.clone().try_draw(Use::Held, 1).is_none());
        assert!(budget.try_draw(Use::Frames, 3).is_some());
        drop(held);
        assert!(budget.scope().try_draw(Use::Held, 5).is_some());
        assert_eq!([Use::Held, Use::Compressors].map(|of| budget.all(of)), [5, u64::MAX]);
        assert!(Budget::default().try_draw(Use::Held, u64::MAX).is_some());
    }
}
