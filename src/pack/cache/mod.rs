//! Finished compression, kept from run to run.
//!
//! ```text
//! DIR/CACHEDIR.TAG       says to backup programs that this is a cache
//! DIR/lock               held while room is made; its bytes are what the cache takes, as u64
//! DIR/new/               entries that are being written; each is locked while its run lives
//! DIR/3f/9a…             entries, by key; the time of the file is that of its last use
//! ```
//!
//! An entry holds what a compressor made (a frame of a kernel archive, the payload of a package)
//! under a [`Key`] made of everything that its bytes depend on. It appears by rename when it is
//! whole, and its bytes are held against their digest whenever they are used, so that neither a
//! run that is killed nor a disk that fails can put wrong bytes into a package: what is damaged is
//! removed, made again and reported (`R096`). Several runs may use one cache at the same time; an
//! entry that is removed while another run reads it stays readable there. What was not used for
//! the longest time goes when room is needed.
//!
//! The folder is held open, and all that is in it is reached through it, links not followed: whoever puts
//! something else by its path meanwhile has nothing written or removed there.
//!
//! A cache is believed as far as its digests go. They find accidents, not forgery: who may write
//! into the cache decides what is in the packages.
//!
//! Nothing that goes wrong in a cache fails a run: without it, everything is made anew.

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
pub use key::{Key, KeyMaker};

use rockpack_base::error::{Error, Kind, Result};

use crate::files::Dir;
use crate::report::Finding;
use entry::Damage;
use room::Room;

/// A folder of finished compression.
pub struct Cache {
    path: PathBuf,
    folder: Arc<Dir>,
    /// None where this user may read what is there, and keep nothing.
    room: Option<Room>,
    /// Set when nothing can be written any more.
    full: AtomicBool,
    findings: Mutex<Vec<Finding>>,
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cache({})", self.path.display())
    }
}

impl Cache {
    /// The cache in `folder`, which is made if it is missing, with at most `limit` bytes. Clears
    /// away what dead runs left, and what is too much. One that cannot be written to, because it is
    /// another user's or its file system is only read, is read, and a finding says so.
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

    /// Refuses a place where no cache can be, and makes nothing.
    pub fn check_ahead(path: &Path) -> Result<()> {
        room::check_ahead(path)
    }

    /// The entry with this key, if there is one that can be read.
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
                // Whoever may not change the time of another user's file uses it all the same.
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

    /// Writes the bytes of `entry` to `sink` and says whether they are what was kept. If not, the
    /// entry is gone, and what was written is to be thrown away. Errors are those of `sink`.
    pub fn copy(&self, entry: &CacheEntry, sink: &mut dyn Write) -> io::Result<bool> {
        let whole = entry.copy(sink)?;
        if !whole {
            self.discard(entry.place(), entry.size(), "its bytes are not those of its digest");
        }
        Ok(whole)
    }

    /// Keeps the `len` bytes of `body`, and `facts` beside them.
    pub fn keep(&self, key: &Key, facts: &[u8], len: u64, body: &mut dyn Read) {
        let Some(room) = self.room.as_ref().filter(|_| !self.full.load(Ordering::Relaxed)) else {
            return;
        };
        let written = room.make(key.place(), entry::size(facts, len)).and_then(|reservation| {
            reservation.map_or(Ok(()), |reservation| {
                reservation.fill(|file| entry::write(file, key, facts, len, body))
            })
        });
        if let Err(error) = written {
            self.give_up(&error);
        }
    }

    /// What went wrong; it made the run longer, not its result different.
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

    /// Nothing more is written, and one finding says why.
    fn give_up(&self, error: &Error) {
        if !self.full.swap(true, Ordering::Relaxed) {
            let (cache, reason) = (self.path.display().to_string(), error.in_full());
            self.report(Finding::CacheUnusable { cache, reason });
        }
    }
}

#[cfg(test)]
mod tests;
