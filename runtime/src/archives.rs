//! The open archives of a cache, in places that a thread may empty while no other reads them.

use std::ffi::CStr;
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use rockpack_kpack::OutOfMemory;

use crate::archive::OpenArchive;
use crate::file::{Fault, Identity, State};
use crate::memory::SharedList;
use crate::report;

/// Most open archives: each holds a file descriptor.
const LIMIT: usize = 4096;

/// Open archives that threads share. One is closed once its file has changed, or is removed and in no plan.
pub struct Archives {
    list: SharedList<Slot<OpenArchive>>,
}

/// A reference to an open archive by its slot, which may later hold another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveHandle {
    index: usize,
    identity: Identity,
}

impl Archives {
    /// An empty list.
    pub fn new() -> Result<Self, OutOfMemory> {
        Ok(Self { list: SharedList::new(LIMIT)? })
    }

    /// Passes an archive to `read` and keeps it open meanwhile. Returns `None` if it was closed.
    pub fn with<R>(
        &self,
        place: &ArchiveHandle,
        read: impl FnOnce(&OpenArchive) -> R,
    ) -> Option<R> {
        let slot = self.list.get(place.index)?;
        slot.read(|archive| (archive.file.identity == place.identity).then(|| read(archive)))?
    }

    /// Tells whether the file of an archive was changed since it was opened.
    pub fn is_changed(&self, place: &ArchiveHandle) -> bool {
        let state = self.with(place, |archive| archive.file.state());
        state.is_none_or(|state| state == State::Changed)
    }

    /// The open archive of a file with this identity.
    pub fn find(&self, state: &Identity) -> Option<ArchiveHandle> {
        self.list.iter().enumerate().find_map(|(index, slot)| {
            let identity = slot.read(|archive| archive.file.identity)?;
            (identity == *state).then_some(ArchiveHandle { index, identity })
        })
    }

    /// Opens an archive.
    pub fn open(&self, path: &CStr) -> Result<ArchiveHandle, Fault> {
        let archive = OpenArchive::open(path)?;
        let identity = archive.file.identity;
        let put = self.list.put(archive, |there, new| there.file.identity == new.file.identity);
        let index = put.map_err(|_| report::refused("a further open archive"))?;
        Ok(ArchiveHandle { index, identity })
    }

    /// Closes archives that nobody can load from any more: their files were changed, or removed and are in no
    /// plan. An archive that another thread is reading stays until the next call.
    pub fn release(&self, is_planned: impl Fn(&ArchiveHandle) -> bool) {
        for (index, slot) in self.list.iter().enumerate() {
            let state = slot.read(|archive| (archive.file.state(), archive.file.identity));
            let is_over = state.is_some_and(|(state, identity)| match state {
                State::Whole => false,
                State::Removed => !is_planned(&ArchiveHandle { index, identity }),
                State::Changed => true,
            });
            if is_over {
                drop(slot.take());
            }
        }
    }
}

/// A place for one value that threads share. Its lock is only tried, never waited for: in a child that was
/// forked while a thread of its parent read the value, the value stays readable and is never removed.
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
