//! Amounts that are lent out and returned.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// An amount from which several users draw at the same time.
#[derive(Debug)]
pub struct Pool {
    all: u64,
    left: Mutex<u64>,
    returned: Condvar,
}

/// An amount drawn from a pool, returned on drop. The default is nothing.
#[must_use]
#[derive(Debug, Default)]
pub struct Lease(Option<(Arc<Pool>, u64)>);

impl Pool {
    /// A full pool of `all`.
    pub fn new(all: u64) -> Arc<Self> {
        Arc::new(Self { all, left: Mutex::new(all), returned: Condvar::new() })
    }

    /// The total, drawn or not.
    pub fn all(&self) -> u64 {
        self.all
    }

    /// Draws `amount` if that much is left.
    pub fn try_draw(self: &Arc<Self>, amount: u64) -> Option<Lease> {
        let mut left = self.lock();
        *left = left.checked_sub(amount)?;
        drop(left);
        Some(Lease(Some((Arc::clone(self), amount))))
    }

    /// Waits until `amount` is left, or the whole pool if it is smaller.
    pub fn draw(self: &Arc<Self>, amount: u64) -> Lease {
        let amount = amount.min(self.all);
        let enough = self.returned.wait_while(self.lock(), |left| *left < amount);
        *enough.unwrap_or_else(PoisonError::into_inner) -= amount;
        Lease(Some((Arc::clone(self), amount)))
    }

    /// Draws all that is left.
    pub fn draw_rest(self: &Arc<Self>) -> Lease {
        Lease(Some((Arc::clone(self), std::mem::take(&mut *self.lock()))))
    }

    /// The amount that is not drawn.
    pub fn left(&self) -> u64 {
        *self.lock()
    }

    /// Locks the amount. No thread panics while it holds the lock, so a poisoned number is right.
    fn lock(&self) -> MutexGuard<'_, u64> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    /// Merges `other`, drawn from the same pool; a lease of nothing becomes `other`.
    pub(super) fn join(&mut self, mut other: Self) {
        match (&mut self.0, &mut other.0) {
            (Some((_, amount)), Some((_, more))) => *amount += std::mem::take(more),
            (None, _) => std::mem::swap(self, &mut other),
            (Some(_), None) => {}
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some((pool, amount)) = &self.0 {
            *pool.lock() += amount;
            pool.returned.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

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
