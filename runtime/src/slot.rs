//! A place for one value that threads share. A thread may empty it while no other reads it.

use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use rockpack_kpack::OutOfMemory;

use crate::memory::SharedList;

/// A place for one value. Its lock is only tried, never waited for: in a child that was forked while a thread
/// of its parent read the value, the value stays readable and is never removed.
pub struct Slot<T>(RwLock<Option<T>>);

impl<T> Slot<T> {
    /// A place with a value.
    pub fn new(value: T) -> Self {
        Self(RwLock::new(Some(value)))
    }

    /// Passes the value to `read`. Returns `None` if there is no value, or another thread is changing it.
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

    /// Removes and returns the value, unless a thread is reading it.
    pub fn take(&self) -> Option<T> {
        self.write()?.take()
    }

    /// Replaces the value, unless a thread is reading it.
    pub fn set(&self, value: T) {
        // The old value is dropped after the lock is released.
        let _old = self.write().and_then(|mut guard| guard.replace(value));
    }

    /// Puts a value into an empty place. Returns the value if the place is not empty.
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
    /// Puts a value into the list, unless one that is the `same` is in it. Returns the index of the new or
    /// existing value.
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
