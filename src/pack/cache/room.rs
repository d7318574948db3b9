//! How much a cache holds, and what has to go.
//!
//! What all entries take, those included that are being written, stands in the lock's file and
//! changes under the lock only, so that runs at the same time stay below the limit together. A run
//! that is killed leaves the number too high; whoever opens the cache next counts anew.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rockpack_base::content::is_file;
use rockpack_base::error::{Error, Kind, Result};

use crate::files::{Dir, Modified, check_folder, lock, make_folders, refuse_open_to_all};

/// The signature that backup programs look for (Cache Directory Tagging Specification).
const TAG: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55\n# What rockpack compressed in \
                     earlier runs; it may be removed at any time.\n";

const TAG_NAME: &str = "CACHEDIR.TAG";

const LOCK: &str = "lock";

/// Entries that are being written.
const NEW: &str = "new";

/// When room is needed, this part of the limit is freed beyond it: looking at all entries for each
/// one would take longer than compressing them.
const SPARE: u64 = 16;

/// Runs that write one entry at the same time; more are a mistake.
const MOST: u32 = 1000;

/// What to do about a folder that cannot be one.
const HINT: &str = "name a folder for --cache that this user may write to, on a file system that \
                    supports flock";

/// The room of a cache that this user may write to.
pub(super) struct Room {
    folder: Arc<Dir>,
    new: Dir,
    limit: u64,
    /// The lock's file; the mutex is the lock among the threads of this run.
    lock: Mutex<File>,
}

/// Room for one entry, kept free while it is being written.
pub(super) struct Reservation<'a> {
    room: &'a Room,
    unfinished: Unfinished<'a>,
    place: [String; 2],
    size: u64,
}

/// A file in `new`, locked while its run lives; removed when it is dropped.
struct Unfinished<'a> {
    new: &'a Dir,
    name: String,
    file: File,
    is_put: bool,
}

impl<'a> Unfinished<'a> {
    /// A new one whose name begins with `prefix`. Call under the lock of the cache.
    fn create(new: &'a Dir, prefix: &str) -> Result<Self> {
        for number in 1..=MOST {
            let name = format!("{prefix}{number}");
            if let Some(file) = new.create_new(&name)? {
                let unfinished = Self { new, name, file, is_put: false };
                lock::wait(&unfinished.file, &unfinished.path())?;
                return Ok(unfinished);
            }
        }
        let message = format!("{MOST} unfinished files are in it");
        Err(Error::new(Kind::Limit, message).file(new.at("")))
    }

    fn path(&self) -> PathBuf {
        self.new.at(&self.name)
    }

    /// Moves it into `folder`.
    fn put(mut self, folder: &Dir, name: &str) -> Result<()> {
        self.new.rename(&self.name, folder, name)?;
        self.is_put = true;
        Ok(())
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.is_put {
            // The next run removes what cannot be removed now.
            let _ = self.new.remove(&self.name);
        }
    }
}

/// An entry as eviction sees it.
struct StoredEntry {
    used: Modified,
    place: [String; 2],
    size: u64,
}

/// Refuses a place where no cache can be, and makes nothing.
pub(super) fn check_ahead(path: &Path) -> Result<()> {
    if is_file(path)? {
        let error = Error::new(Kind::Usage, "is a file, and a cache is a folder");
        return Err(error.file(path).hint(HINT));
    }
    if check_folder(path, "entries of a cache")? { refuse_open_to_all(path) } else { Ok(()) }
}

/// Opens the folder of a cache, which is made if it is missing.
pub(super) fn open_folder(path: &Path) -> Result<Dir> {
    check_ahead(path)?;
    make_folders(path).map_err(hinted)?;
    Dir::open(path).map_err(hinted)
}

/// The path of an entry, for messages.
pub(super) fn path_of(folder: &Dir, place: &[String; 2]) -> PathBuf {
    folder.at(&place[0]).join(&place[1])
}

/// The file of an entry, to be read, if it is there.
pub(super) fn entry(folder: &Dir, place: &[String; 2]) -> Result<Option<File>> {
    match folder.below(&place[0])? {
        Some(below) => below.open_file(&place[1]),
        None => Ok(None),
    }
}

impl Room {
    /// Clears away what dead runs left in the folder, and counts.
    pub fn open(folder: Arc<Dir>, limit: u64) -> Result<Self> {
        let new = folder.make_below(NEW).map_err(hinted)?;
        let file = folder.open_to_write(LOCK).map_err(hinted)?;
        let room = Self { folder, new, limit, lock: Mutex::new(file) };
        room.locked(|total| {
            clear_dead(&room.new)?;
            room.tag()?;
            *total = room.evict(0)?;
            Ok(())
        })
        .map_err(hinted)?;
        Ok(room)
    }

    /// Removes an entry, and says whether it was there.
    pub fn remove(&self, place: &[String; 2]) -> Result<bool> {
        match self.folder.below(&place[0])? {
            Some(folder) => folder.remove(&place[1]),
            None => Ok(false),
        }
    }

    /// Does `work` on what the cache takes, alone.
    fn locked<T>(&self, work: impl FnOnce(&mut u64) -> Result<T>) -> Result<T> {
        let path = self.folder.at(LOCK);
        let fault = |error| Error::io(&path, "lock", error);
        let file = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        lock::wait(&file, &path)?;
        let mut bytes = [0; 8];
        // A new one is empty.
        let mut total = match file.read_exact_at(&mut bytes, 0) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => 0,
            read => read.map(|()| u64::from_le_bytes(bytes)).map_err(fault)?,
        };
        let done = work(&mut total);
        let noted = file.write_all_at(&total.to_le_bytes(), 0).map_err(fault);
        lock::release(&file, &path)?;
        done.and_then(|done| noted.map(|()| done))
    }

    /// Room for `size` bytes that are to be at `place`; none where that is more than all room, where
    /// other runs take the room, or where the entry is there.
    pub fn make(&self, place: [String; 2], size: u64) -> Result<Option<Reservation<'_>>> {
        let there = match self.folder.below(&place[0])? {
            Some(folder) => folder.look(&place[1])?.is_some(),
            None => false,
        };
        if size > self.limit || there {
            return Ok(None);
        }
        self.locked(|total| {
            if total.saturating_add(size) > self.limit {
                *total = self.evict(size)?;
            }
            if total.saturating_add(size) > self.limit {
                // What other runs are writing takes all of it.
                return Ok(None);
            }
            let unfinished = Unfinished::create(&self.new, &format!("{}-", place[1]))?;
            // Whoever counts meanwhile is to see all that it will take.
            let fault = |e| Error::io(unfinished.path(), "write", e);
            unfinished.file.set_len(size).map_err(fault)?;
            *total = total.saturating_add(size);
            Ok(Some(Reservation { room: self, unfinished, place, size }))
        })
    }

    /// What was taken is free again. The number is only an estimate until the next count, so a
    /// failure here does not matter.
    pub fn give_back(&self, size: u64) {
        let _ = self.locked(|total| {
            *total = total.saturating_sub(size);
            Ok(())
        });
    }

    /// Removes entries, the one that was used longest ago first, until `size` more bytes fit, and
    /// returns what is left. Call under the lock.
    fn evict(&self, size: u64) -> Result<u64> {
        // First what is being written: an entry that comes to its place between the two counts is
        // counted twice, and never left out.
        let mut total = sum_of(&self.new)?;
        let mut entries = self.entries()?;
        total += entries.iter().map(|kept| kept.size).sum::<u64>();
        if total.saturating_add(size) <= self.limit {
            return Ok(total);
        }
        let goal = self.limit.saturating_sub(size).saturating_sub(self.limit / SPARE);
        entries.sort_by(|a, b| (a.used, &a.place).cmp(&(b.used, &b.place)));
        for kept in entries {
            if total <= goal {
                break;
            }
            self.remove(&kept.place)?;
            total = total.saturating_sub(kept.size);
        }
        Ok(total)
    }

    /// All entries, and nothing that somebody else put into the folder.
    fn entries(&self) -> Result<Vec<StoredEntry>> {
        let mut entries = Vec::new();
        for name in self.folder.names()? {
            let Some(below) = hexadecimal(&name, 2) else { continue };
            // What is behind a link is no entry of this cache.
            if self.folder.look(&name)?.is_none_or(|found| !found.is_folder()) {
                continue;
            }
            let Some(folder) = self.folder.below(below)? else { continue };
            for name in folder.names()? {
                let Some(name) = hexadecimal(&name, 62) else { continue };
                let place = [below.to_owned(), name.to_owned()];
                let found = folder.look(name)?;
                entries.extend(found.map(|found| {
                    let (used, size) = (found.modified(), found.size());
                    StoredEntry { used, place, size }
                }));
            }
        }
        Ok(entries)
    }

    /// Makes the tag, whole or not at all, where there is none. Call under the lock.
    fn tag(&self) -> Result<()> {
        if self.folder.look(TAG_NAME)?.is_some() {
            return Ok(());
        }
        let mut unfinished = Unfinished::create(&self.new, TAG_NAME)?;
        let path = unfinished.path();
        unfinished.file.write_all(TAG).map_err(|e| Error::io(path, "write", e))?;
        unfinished.put(&self.folder, TAG_NAME)
    }
}

impl Reservation<'_> {
    /// Writes the entry and makes it visible, or takes everything back. An entry is not synced: after
    /// a power failure its digest tells.
    pub fn fill(self, write: impl FnOnce(&File) -> io::Result<()>) -> Result<()> {
        let Self { room, unfinished, place: [folder, name], size } = self;
        let fault = |e| Error::io(unfinished.path(), "write", e);
        let written = write(&unfinished.file).map_err(fault);
        let put = |folder: Dir| unfinished.put(&folder, &name);
        let done = written.and_then(|()| room.folder.make_below(&folder).and_then(put));
        if done.is_err() {
            room.give_back(size);
        }
        done
    }
}

/// An error of the system with what to do about the folder; others say that themselves.
fn hinted(error: Error) -> Error {
    if error.hint_text().is_some() { error } else { error.hint(HINT) }
}

/// A name of so many hexadecimal digits.
fn hexadecimal(name: &OsStr, len: usize) -> Option<&str> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    name.to_str().filter(|name| name.len() == len && name.bytes().all(is_digit))
}

/// Removes files that no run writes any more. Call under the lock.
fn clear_dead(new: &Dir) -> Result<()> {
    for name in new.names()? {
        let Some(name) = name.to_str() else { continue };
        if new.look(name)?.is_none_or(|found| !found.is_file()) {
            continue;
        }
        // Those of other users may not be looked at.
        let Ok(Some(file)) = new.open_file(name) else { continue };
        if lock::take(&file, &new.at(name)).unwrap_or(false) {
            new.remove(name)?;
        }
    }
    Ok(())
}

/// Bytes of the files in a folder.
fn sum_of(folder: &Dir) -> Result<u64> {
    let mut sum = 0;
    for name in folder.names()? {
        sum += folder.look(&name)?.map_or(0, |found| found.size());
    }
    Ok(sum)
}
