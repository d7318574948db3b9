//! The size of a cache, and the eviction of entries.
//!
//! The size of all entries, including those being written, is in the lock file and changes only under the
//! lock, so that simultaneous runs together stay below the limit. A killed run leaves the number too high; the next
//! run that opens the cache counts again.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rockpack_core::content::is_file;
use rockpack_core::error::{Error, Kind, Result};
use rustix::fs::FileType;

use crate::{Dir, Modified, check_folder, lock, make_folders, refuse_world_writable};

/// The signature that backup programs look for (Cache Directory Tagging Specification).
const TAG: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55\n# What rockpack compressed in \
                     earlier runs; it may be removed at any time.\n";

const TAG_NAME: &str = "CACHEDIR.TAG";

const LOCK: &str = "lock";

/// The folder of entries that are being written.
const NEW: &str = "new";

/// An eviction frees this fraction of the limit in addition: listing all entries for each new one would take longer
/// than compressing it.
const SPARE: u64 = 16;

/// Maximum number of runs that write one entry at the same time.
const MOST: u32 = 1000;

/// The hint for a folder that cannot be a cache.
const HINT: &str = "name a folder for --cache that this user may write to, on a file system that \
                    supports flock";

/// The storage of a cache that this user may write to.
#[derive(Debug)]
pub(super) struct CacheStorage {
    folder: Arc<Dir>,
    new: Dir,
    limit: u64,
    /// The lock file; the mutex is the lock between threads of this run.
    lock: Mutex<File>,
}

/// Reserved space for one entry, while it is being written.
pub(super) struct Reservation<'a> {
    storage: &'a CacheStorage,
    unfinished: Unfinished<'a>,
    place: [String; 2],
    size: u64,
}

/// A file in `new`, locked while its run lives, and removed on drop.
struct Unfinished<'a> {
    new: &'a Dir,
    name: String,
    file: File,
    is_put: bool,
}

impl<'a> Unfinished<'a> {
    /// Creates a file whose name begins with `prefix`. Call under the lock of the cache.
    fn create(new: &'a Dir, prefix: &str) -> Result<Self> {
        for number in 1..=MOST {
            let name = format!("{prefix}{number}");
            if let Some(file) = new.create_new(&name)? {
                let unfinished = Self { new, name, file, is_put: false };
                lock::wait(&unfinished.file, &unfinished.path())?;
                return Ok(unfinished);
            }
        }
        let message = format!("contains {MOST} unfinished files");
        Err(Error::new(Kind::Limit, message).file(new.at("")))
    }

    fn path(&self) -> PathBuf {
        self.new.at(&self.name)
    }

    fn put(mut self, folder: &Dir, name: &str) -> Result<()> {
        self.new.rename(&self.name, folder, name)?;
        self.is_put = true;
        Ok(())
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.is_put {
            // The next run removes it if this fails.
            let _ = self.new.remove(&self.name);
        }
    }
}

struct StoredEntry {
    used: Modified,
    place: [String; 2],
    size: u64,
}

/// Refuses a path where no cache can be. Creates nothing.
pub fn check_ahead(path: &Path) -> Result<()> {
    if is_file(path)? {
        let error = Error::new(Kind::Usage, "is a file, but a cache is a folder");
        return Err(error.file(path).hint(HINT));
    }
    if check_folder(path, "entries of a cache")? { refuse_world_writable(path) } else { Ok(()) }
}

/// Opens the folder of a cache, and creates it if it is missing.
pub(super) fn open_folder(path: &Path) -> Result<Dir> {
    check_ahead(path)?;
    make_folders(path).map_err(with_hint)?;
    Dir::open(path).map_err(with_hint)
}

pub(super) fn path_of(folder: &Dir, place: &[String; 2]) -> PathBuf {
    folder.at(&place[0]).join(&place[1])
}

/// Opens the file of an entry for reading, if it exists.
pub(super) fn entry(folder: &Dir, place: &[String; 2]) -> Result<Option<File>> {
    let Some(below) = folder.subfolder(&place[0])? else { return Ok(None) };
    below.open_file(&place[1])
}

impl CacheStorage {
    /// Removes leftovers of killed runs, and counts the entries.
    pub fn open(folder: Arc<Dir>, limit: u64) -> Result<Self> {
        let new = folder.make_subfolder(NEW).map_err(with_hint)?;
        let file = folder.open_to_write(LOCK).map_err(with_hint)?;
        let storage = Self { folder, new, limit, lock: Mutex::new(file) };
        storage
            .locked(|total| {
                remove_stale(&storage.new)?;
                storage.write_tag()?;
                *total = storage.evict(0)?;
                Ok(())
            })
            .map_err(with_hint)?;
        Ok(storage)
    }

    /// Removes an entry, and returns whether it existed.
    pub fn remove(&self, place: &[String; 2]) -> Result<bool> {
        let Some(folder) = self.folder.subfolder(&place[0])? else { return Ok(false) };
        folder.remove(&place[1])
    }

    /// Passes the size of the cache to `work` under the lock.
    fn locked<T>(&self, work: impl FnOnce(&mut u64) -> Result<T>) -> Result<T> {
        let path = self.folder.at(LOCK);
        let file = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        lock::wait(&file, &path)?;
        let mut bytes = [0; 8];
        // A new lock file is empty.
        let mut total = match file.read_exact_at(&mut bytes, 0) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => 0,
            read => {
                read.map_err(|e| Error::io(&path, "lock", e))?;
                u64::from_le_bytes(bytes)
            }
        };
        let done = work(&mut total);
        let noted =
            file.write_all_at(&total.to_le_bytes(), 0).map_err(|e| Error::io(&path, "lock", e));
        lock::release(&file, &path)?;
        done.and_then(|done| noted.map(|()| done))
    }

    /// Reserves `size` bytes for an entry at `place`. Returns `None` if that exceeds the limit, if other runs
    /// have reserved the space, or if the entry exists.
    pub fn reserve(&self, place: [String; 2], size: u64) -> Result<Option<Reservation<'_>>> {
        let folder = self.folder.subfolder(&place[0])?;
        let found = folder.map(|folder| folder.status(&place[1])).transpose()?.flatten();
        if size > self.limit || found.is_some() {
            return Ok(None);
        }
        self.locked(|total| {
            if total.saturating_add(size) > self.limit {
                *total = self.evict(size)?;
            }
            if total.saturating_add(size) > self.limit {
                // Other runs are writing entries that take all space.
                return Ok(None);
            }
            let unfinished = Unfinished::create(&self.new, &format!("{}-", place[1]))?;
            // A run that counts meanwhile sees the final size of the entry.
            unfinished.file.set_len(size).map_err(|e| Error::io(unfinished.path(), "write", e))?;
            *total = total.saturating_add(size);
            Ok(Some(Reservation { storage: self, unfinished, place, size }))
        })
    }

    /// Frees `size` bytes. The number is only an estimate until the next count, so a failure does not matter.
    pub fn free(&self, size: u64) {
        let _ = self.locked(|total| {
            *total = total.saturating_sub(size);
            Ok(())
        });
    }

    /// Removes the least recently used entries until `size` more bytes fit, and returns the remaining size.
    /// Call under the lock.
    fn evict(&self, size: u64) -> Result<u64> {
        // Count entries being written first: one that is renamed between the two counts is counted twice, but never
        // missed.
        let mut total = 0;
        for name in self.new.names()? {
            total += self.new.status(&name)?.map_or(0, |found| found.size);
        }
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

    /// All entries, without foreign files in the folder.
    fn entries(&self) -> Result<Vec<StoredEntry>> {
        let mut entries = Vec::new();
        for name in self.folder.names()? {
            let Some(below) = hexadecimal(&name, 2) else { continue };
            // Files below a link are not entries of this cache.
            if self.folder.status(&name)?.is_none_or(|found| found.kind != FileType::Directory) {
                continue;
            }
            let Some(folder) = self.folder.subfolder(below)? else { continue };
            for name in folder.names()? {
                let Some(name) = hexadecimal(&name, 62) else { continue };
                let place = [below.to_owned(), name.to_owned()];
                let found = folder.status(name)?;
                entries.extend(found.map(|found| StoredEntry {
                    used: found.modified,
                    place,
                    size: found.size,
                }));
            }
        }
        Ok(entries)
    }

    /// Writes the tag atomically, if it is missing. Call under the lock.
    fn write_tag(&self) -> Result<()> {
        if self.folder.status(TAG_NAME)?.is_some() {
            return Ok(());
        }
        let mut unfinished = Unfinished::create(&self.new, TAG_NAME)?;
        let path = unfinished.path();
        unfinished.file.write_all(TAG).map_err(|e| Error::io(path, "write", e))?;
        unfinished.put(&self.folder, TAG_NAME)
    }
}

impl Reservation<'_> {
    /// Writes the entry and makes it visible, or undoes everything. The entry is not synced: after a power
    /// failure its digest shows damage.
    pub fn fill(self, write: impl FnOnce(&File) -> io::Result<()>) -> Result<()> {
        let Self { storage, unfinished, place: [folder, name], size } = self;
        let written = write(&unfinished.file).map_err(|e| Error::io(unfinished.path(), "write", e));
        let done = written
            .and_then(|()| storage.folder.make_subfolder(&folder))
            .and_then(|folder| unfinished.put(&folder, &name));
        if done.is_err() {
            storage.free(size);
        }
        done
    }
}

/// Adds a hint about the folder to an error without a hint.
fn with_hint(error: Error) -> Error {
    if error.hint_text().is_some() { error } else { error.hint(HINT) }
}

fn hexadecimal(name: &OsStr, len: usize) -> Option<&str> {
    name.to_str().filter(|name| {
        name.len() == len && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Removes files whose runs are dead. Call under the lock.
fn remove_stale(new: &Dir) -> Result<()> {
    for name in new.names()? {
        let Some(name) = name.to_str() else { continue };
        if new.status(name)?.is_none_or(|found| found.kind != FileType::RegularFile) {
            continue;
        }
        // Files of other users may be unreadable.
        let Ok(Some(file)) = new.open_file(name) else { continue };
        if lock::take(&file, &new.at(name)).unwrap_or(false) {
            new.remove(name)?;
        }
    }
    Ok(())
}
