//! A place whose value threads share, and which one of them may empty while no other reads it.

use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use rockpack_kpack::OutOfMemory;

use crate::memory::SharedList;

/// A place for one value. Its lock is only tried, never waited for: in a child that was forked while
/// a thread of its parent read the value, it can still be read, and is never emptied.
pub struct Slot<T>(RwLock<Option<T>>);

impl<T> Slot<T> {
    /// A place that has a value.
    pub fn new(value: T) -> Self {
        Self(RwLock::new(Some(value)))
    }

    /// Hands the value to `read`; nothing if there is none, or if it is being changed.
    pub fn read<R>(&self, read: impl FnOnce(&T) -> R) -> Option<R> {
        let guard: RwLockReadGuard<'_, Option<T>> = match self.0.try_read() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        guard.as_ref().map(read)
    }

    fn write(&self) -> Option<RwLockWriteGuard<'_, Option<T>>> {
        match self.0.try_write() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Takes the value away, unless somebody reads it.
    pub fn take(&self) -> Option<T> {
        self.write()?.take()
    }

    /// Puts a value in the place of another, unless somebody reads that.
    pub fn set(&self, value: T) {
        // The old value is dropped behind the lock.
        let _old = self.write().and_then(|mut guard| guard.replace(value));
    }

    /// Puts a value into an empty place, or gives it back.
    fn fill(&self, value: T) -> Result<(), T> {
        match self.write() {
            Some(mut guard) if guard.is_none() => {
                *guard = Some(value);
                Ok(())
            }
            _ => Err(value),
        }
    }
}

impl<T> SharedList<Slot<T>> {
    /// Puts a value into the list, unless one that is the `same` is there; the number of its place.
    pub fn put(&self, value: T, same: impl Fn(&T, &T) -> bool) -> Result<usize, OutOfMemory> {
        for (index, slot) in self.iter().enumerate() {
            if slot.read(|there| same(there, &value)) == Some(true) {
                return Ok(index);
            }
        }
        let mut value = value;
        for (index, slot) in self.iter().enumerate() {
            match slot.fill(value) {
                Ok(()) => return Ok(index),
                Err(back) => value = back,
            }
        }
        let both = |there: &Slot<T>, new: &Slot<T>| {
            there.read(|there| new.read(|new| same(there, new))) == Some(Some(true))
        };
        self.append(Slot::new(value), both)
    }
}
