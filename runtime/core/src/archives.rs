//! The open archives of a cache, in slots that a thread may empty while no other reads them.

use std::ffi::CStr;
use std::sync::RwLock;

use rockpack_kpack::{Code, OutOfMemory};

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
    pub fn new() -> Result<Self, Code> {
        let list = SharedList::new(LIMIT).map_err(|_| report::refused("a list of archives"))?;
        Ok(Self { list })
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

    /// Whether the file of an archive was changed since it was opened.
    pub fn is_changed(&self, place: &ArchiveHandle) -> bool {
        let state = self.with(place, |archive| archive.file.state());
        state.is_none_or(|state| state == State::Changed)
    }

    /// The open archive of a file with this identity.
    pub fn find(&self, state: &Identity) -> Option<ArchiveHandle> {
        self.list.iter().enumerate().find_map(|(index, slot)| {
            let identity = slot.read(|archive| {
                let file = &archive.file;
                let is_same = file.identity == *state && file.state() != State::Changed;
                is_same.then_some(file.identity)
            })??;
            Some(ArchiveHandle { index, identity })
        })
    }

    /// Opens an archive.
    pub fn open(&self, path: &CStr) -> Result<ArchiveHandle, Fault> {
        // First: the new file could get a descriptor that the program has closed.
        self.release(|_| true);
        let archive = OpenArchive::open(path)?;
        let identity = archive.file.identity;
        // Another thread may have opened it meanwhile.
        if let Some(opened) = self.find(&identity) {
            return Ok(opened);
        }
        let put = self.list.put(archive);
        let index = put.map_err(|_| report::refused("a further open archive"))?;
        Ok(ArchiveHandle { index, identity })
    }

    /// Closes archives that no load can use: their files were changed, or were removed and are in no plan. An archive
    /// that another thread is reading stays until the next call.
    pub fn release(&self, is_planned: impl Fn(&ArchiveHandle) -> bool) {
        for (index, slot) in self.list.iter().enumerate() {
            let state = slot.read(|archive| (archive.file.state(), archive.file.identity));
            let is_over = state.is_some_and(|(state, identity)| match state {
                State::Whole => false,
                State::Removed => !is_planned(&ArchiveHandle { index, identity }),
                State::Changed => true,
            });
            if is_over {
                let closed = slot.change(Option::take).flatten();
                let closed = closed.filter(|archive| !archive.file.is_own());
                // Its descriptor belongs to the program now.
                closed.into_iter().for_each(std::mem::forget);
            }
        }
    }
}

/// A slot for one value that threads share. Its lock is only tried, never waited for: in a child that was forked while
/// another thread read the value, the value stays readable and is never removed. No code panics while it changes the
/// value.
pub struct Slot<T>(RwLock<Option<T>>);

impl<T> Slot<T> {
    /// Passes the value to `read`. Returns `None` if there is no value, or another thread is changing it.
    pub fn read<R>(&self, read: impl FnOnce(&T) -> R) -> Option<R> {
        self.0.try_read().ok()?.as_ref().map(read)
    }

    /// Passes the slot's content to `change`. Returns `None` if another thread is using it.
    pub fn change<R>(&self, change: impl FnOnce(&mut Option<T>) -> R) -> Option<R> {
        self.0.try_write().ok().map(|mut place| change(&mut place))
    }
}

impl<T> SharedList<Slot<T>> {
    /// Puts a value into the first empty slot, and returns its index.
    pub fn put(&self, value: T) -> Result<usize, OutOfMemory> {
        let mut value = Some(value);
        for (index, slot) in self.iter().enumerate() {
            slot.change(|place| {
                if place.is_none() {
                    *place = value.take();
                }
            });
            if value.is_none() {
                return Ok(index);
            }
        }
        self.append(Slot(RwLock::new(value)))
    }
}
