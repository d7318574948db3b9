//! Finished compression, and descriptions of content, kept from run to run.
//!
//! ```text
//! DIR/CACHEDIR.TAG       tells backup programs that this is a cache
//! DIR/lock               locked while room is made; has the bytes of the whole cache, as u64
//! DIR/new/               entries that are being written; each is locked while its run lives
//! DIR/3f/9a…             entries, by key; the timestamp of the file is that of its last use
//! ```
//!
//! An entry has the output of a compressor (a frame of a kernel archive, the payload of a package), or facts
//! about content alone (the description of a kernel index), under a [`Key`] of everything that its bytes
//! depend on. It appears by rename when it is complete, and each use compares its bytes with their digest. So
//! neither a killed run nor a failing disk can put wrong bytes into a package: a damaged entry is removed,
//! rebuilt and reported (`R096`). Several runs may use one cache at the same time; an entry that one
//! of them removes stays readable for another that is reading it. If room is needed, the least recently used
//! entries are removed.
//!
//! The folder is held open, and its entries are reached through it without following links: a run writes or
//! removes nothing in a folder that somebody else puts at its path meanwhile.
//!
//! A cache is trusted as far as its digests go. They detect accidents, not forgery: a user who may write into
//! the cache decides the content of packages.
//!
//! No fault of a cache fails a run: without it, everything is computed again.

mod entry;
mod key;
mod room;

use std::fmt;
use std::fs::FileTimes;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

pub use entry::CacheEntry;
pub use key::{ContentDigest, Key, KeyMaker, content_digest};

use rockpack_core::error::{Error, Kind, Result};

use crate::Dir;
use entry::Damage;
use rockpack_report::Finding;
use room::Room;

/// A cache folder.
pub struct Cache {
    path: PathBuf,
    folder: Arc<Dir>,
    /// The room for new entries; `None` if this user may only read.
    room: Option<Room>,
    /// Tells whether writing has failed.
    full: AtomicBool,
    findings: Mutex<Vec<Finding>>,
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cache({})", self.path.display())
    }
}

impl Cache {
    /// Opens the cache in `path` with at most `limit` bytes, and creates the folder if it is missing. Removes
    /// leftovers of dead runs, and entries over the limit. A cache that this user or its file system does not
    /// let us write to is only read, with a finding.
    pub fn open(path: &Path, limit: u64) -> Result<Self> {
        let folder = Arc::new(room::open_folder(path)?);
        let (room, fault) = match Room::open(Arc::clone(&folder), limit) {
            Ok(room) => (Some(room), None),
            Err(error) if error.kind() == Kind::Io => (None, Some(error)),
            Err(error) => return Err(error),
        };
        let path = path.to_path_buf();
        let cache =
            Self { path, folder, room, full: AtomicBool::new(false), findings: Mutex::default() };
        fault.iter().for_each(|error| cache.give_up(error));
        Ok(cache)
    }

    /// Refuses a place where no cache can be, without creating anything.
    pub fn check_ahead(path: &Path) -> Result<()> {
        room::check_ahead(path)
    }

    /// The entry with this key, if it exists and can be read.
    pub fn find(&self, key: &Key) -> Option<CacheEntry> {
        let place = key.place();
        let file = match room::entry(&self.folder, &place) {
            Ok(file) => file?,
            Err(error) => {
                self.give_up(&error);
                return None;
            }
        };
        match CacheEntry::read(file, &room::path_of(&self.folder, &place), key) {
            Ok(entry) => {
                // A user who may not change the timestamp of another user's file uses it all the same.
                let used = FileTimes::new().set_modified(SystemTime::now());
                let _ = entry.file().set_times(used);
                Some(entry)
            }
            Err(Damage::Unreadable(error)) => {
                self.give_up(&error);
                None
            }
            Err(Damage::Wrong { size, what }) => {
                self.discard(&place, size, what);
                None
            }
        }
    }

    /// Writes the bytes of `entry` to `sink`, and tells whether they are intact. If not, the entry is
    /// removed, and the caller must discard the output. Errors are those of `sink`.
    pub fn copy(&self, entry: &CacheEntry, sink: &mut dyn Write) -> io::Result<bool> {
        let whole = entry.copy(sink)?;
        if !whole {
            self.discard(entry.place(), entry.size(), "its bytes are not those of its digest");
        }
        Ok(whole)
    }

    /// Removes an entry whose facts are not those that its user keeps.
    pub fn refuse(&self, entry: &CacheEntry) {
        self.discard(entry.place(), entry.size(), "its facts are not those of its kind");
    }

    /// Keeps the `len` bytes of `body` and their `facts`, unless these are too long to be read again.
    pub fn keep(&self, key: &Key, facts: &[u8], len: u64, body: &mut dyn Read) {
        let Some(room) = self.room.as_ref().filter(|_| !self.full.load(Ordering::Relaxed)) else {
            return;
        };
        if facts.len() as u64 > entry::FACTS_LIMIT {
            return;
        }
        let written = room.make(key.place(), entry::size(facts, len)).and_then(|reservation| {
            reservation.map_or(Ok(()), |reservation| {
                reservation.fill(|file| entry::write(file, key, facts, len, body))
            })
        });
        if let Err(error) = written {
            self.give_up(&error);
        }
    }

    /// The faults of the cache, which slowed the run down and did not change its result.
    pub fn findings(&self) -> Vec<Finding> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn report(&self, finding: Finding) {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner).push(finding);
    }

    fn discard(&self, place: &[String; 2], size: u64, what: &str) {
        let (entry, damage) =
            (room::path_of(&self.folder, place).display().to_string(), what.to_owned());
        self.report(Finding::CacheEntryDamaged { entry, damage });
        let Some(room) = &self.room else { return };
        match room.remove(place) {
            Ok(true) => room.give_back(size),
            // Another run was faster.
            Ok(false) => {}
            Err(error) => self.give_up(&error),
        }
    }

    /// Stops writing, and reports why in one finding.
    fn give_up(&self, error: &Error) {
        if !self.full.swap(true, Ordering::Relaxed) {
            let (cache, reason) = (self.path.display().to_string(), error.in_full());
            self.report(Finding::CacheUnusable { cache, reason });
        }
    }
}

#[cfg(test)]
mod tests;
