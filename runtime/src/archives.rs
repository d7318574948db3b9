//! The archives of a cache that stay open.

use std::ffi::CStr;

use rockpack_kpack::OutOfMemory;

use crate::archive::OpenArchive;
use crate::file::{Fault, Identity, State};
use crate::memory::SharedList;
use crate::report;
use crate::slot::Slot;

/// Most archives that stay open: each holds a file descriptor.
const LIMIT: usize = 4096;

/// Archives that threads share. One stays open until its file is another, or until no name leads to
/// the file any more and no plan asks for it.
pub struct Archives {
    list: SharedList<Slot<OpenArchive>>,
}

/// An archive by the number of its place, which may have another one later.
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

    /// Hands an archive to `read`, which keeps it open meanwhile; nothing if it was closed.
    pub fn with<R>(
        &self,
        place: &ArchiveHandle,
        read: impl FnOnce(&OpenArchive) -> R,
    ) -> Option<R> {
        let is_there = |archive: &OpenArchive| archive.identity() == place.identity;
        self.list.get(place.index)?.read(|archive| is_there(archive).then(|| read(archive)))?
    }

    /// Whether the file of an archive was changed since it was opened.
    pub fn is_changed(&self, place: &ArchiveHandle) -> bool {
        self.with(place, OpenArchive::state).is_none_or(|state| state == State::Changed)
    }

    /// The open archive whose content a file in this state has.
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
        let same = |there: &OpenArchive, new: &OpenArchive| there.identity() == new.identity();
        let put = self.list.put(archive, same);
        let index = put.map_err(|_| report::refused("a further open archive"))?;
        Ok(ArchiveHandle { index, identity })
    }

    /// Closes archives that nobody can load from any more: whose file was changed, or was removed
    /// and is not `planned`. One that is read just now stays until the next call.
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
