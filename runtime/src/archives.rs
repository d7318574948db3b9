//! The open archives of a cache.

use std::ffi::CStr;

use rockpack_kpack::OutOfMemory;

use crate::archive::OpenArchive;
use crate::file::{Fault, Identity, State};
use crate::memory::SharedList;
use crate::report;
use crate::slot::Slot;

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
        slot.read(|archive| (archive.identity() == place.identity).then(|| read(archive)))?
    }

    /// Tells whether the file of an archive was changed since it was opened.
    pub fn is_changed(&self, place: &ArchiveHandle) -> bool {
        self.with(place, OpenArchive::state).is_none_or(|state| state == State::Changed)
    }

    /// The open archive of a file with this identity.
    pub fn find(&self, state: &Identity) -> Option<ArchiveHandle> {
        self.list.iter().enumerate().find_map(|(index, slot)| {
            let identity = slot.read(OpenArchive::identity)?;
            (identity == *state).then_some(ArchiveHandle { index, identity })
        })
    }

    /// Opens an archive.
    pub fn open(&self, path: &CStr) -> Result<ArchiveHandle, Fault> {
        let archive = OpenArchive::open(path)?;
        let identity = archive.identity();
        let put = self.list.put(archive, |there, new| there.identity() == new.identity());
        let index = put.map_err(|_| report::refused("a further open archive"))?;
        Ok(ArchiveHandle { index, identity })
    }

    /// Closes archives that nobody can load from any more: their files were changed, or removed and are in no
    /// plan. An archive that another thread is reading stays until the next call.
    pub fn release(&self, is_planned: impl Fn(&ArchiveHandle) -> bool) {
        for (index, slot) in self.list.iter().enumerate() {
            let state = slot.read(|archive| (archive.state(), archive.identity()));
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
