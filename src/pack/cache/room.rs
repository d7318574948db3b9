//! How much a cache holds, and what has to go.
//!
//! What all entries take, those included that are being written, stands in the lock's file and
//! changes under the lock only, so that runs at the same time stay below the limit together. A run
//! that is killed leaves the number too high; whoever opens the cache next counts anew.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use crate::content::{if_there, is_file, is_there, list};
use crate::error::{Error, Kind, Result};
use crate::files::{
    Form, Scratch, lock, make_folders, refuse_no_folder, refuse_open_to_all, remove_file,
};

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

/// What to do about a folder that cannot be one.
const HINT: &str = "name a folder for --cache that this user may write to, on a file system that \
                    supports flock";

/// The room of a cache.
pub(super) struct Room {
    folder: PathBuf,
    limit: u64,
    /// The lock's file; the mutex is the lock among the threads of this run.
    lock: Mutex<File>,
}

/// Room for one entry, kept free while it is being written.
pub(super) struct Reservation<'a> {
    room: &'a Room,
    scratch: Scratch,
    target: PathBuf,
    size: u64,
}

/// An entry as eviction sees it.
struct StoredEntry {
    used: SystemTime,
    path: PathBuf,
    size: u64,
}

impl Room {
    /// Makes the folder if it is missing, clears away what dead runs left, and counts.
    pub fn open(folder: &Path, limit: u64) -> Result<Self> {
        if is_file(folder)? {
            let error = Error::new(Kind::Usage, "is a file, and a cache is a folder");
            return Err(error.file(folder).hint(HINT));
        }
        refuse_open_to_all(folder)?;
        refuse_no_folder(&folder.join(NEW))?;
        make_folders(&folder.join(NEW)).map_err(|error| error.hint(HINT))?;
        let file = lock::open(&folder.join(LOCK)).map_err(hinted)?;
        let room = Self { folder: folder.to_path_buf(), limit, lock: Mutex::new(file) };
        room.locked(|total| {
            clear_dead(&folder.join(NEW))?;
            tag(folder)?;
            *total = room.evict(0)?;
            Ok(())
        })
        .map_err(hinted)?;
        Ok(room)
    }

    /// Does `work` on what the cache takes, alone.
    fn locked<T>(&self, work: impl FnOnce(&mut u64) -> Result<T>) -> Result<T> {
        let path = self.folder.join(LOCK);
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

    /// Room for `size` bytes that are to be `target`; none where that is more than all room, where other
    /// runs take the room, or where the entry is there.
    pub fn make(&self, target: &Path, size: u64) -> Result<Option<Reservation<'_>>> {
        if size > self.limit || target.exists() {
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
            let scratch = self.create(target, size)?;
            *total = total.saturating_add(size);
            Ok(Some(Reservation { room: self, scratch, target: target.to_path_buf(), size }))
        })
    }

    fn create(&self, target: &Path, size: u64) -> Result<Scratch> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let scratch = Scratch::create(Form::File, &self.folder.join(NEW), &format!("{name}-"))?;
        scratch.lock()?;
        // Whoever counts meanwhile is to see all that it will take.
        scratch.file().set_len(size).map_err(|e| Error::io(scratch.path(), "write", e))?;
        Ok(scratch)
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
        let mut total = sum_of(&self.folder.join(NEW))?;
        let mut entries = self.entries()?;
        total += entries.iter().map(|kept| kept.size).sum::<u64>();
        if total.saturating_add(size) <= self.limit {
            return Ok(total);
        }
        let goal = self.limit.saturating_sub(size).saturating_sub(self.limit / SPARE);
        entries.sort_by(|a, b| (a.used, &a.path).cmp(&(b.used, &b.path)));
        for kept in entries {
            if total <= goal {
                break;
            }
            remove_file(&kept.path)?;
            total = total.saturating_sub(kept.size);
        }
        Ok(total)
    }

    /// All entries, and nothing that somebody else put into the folder.
    fn entries(&self) -> Result<Vec<StoredEntry>> {
        let mut entries = Vec::new();
        for folder in list(&self.folder)? {
            let folder = folder?;
            let kind = folder.file_type().map_err(|e| Error::io(folder.path(), "inspect", e))?;
            // What is behind a link is no entry of this cache.
            if !is_hexadecimal(&folder.file_name(), 2) || !kind.is_dir() {
                continue;
            }
            for entry in list(&folder.path())? {
                let entry = entry?;
                if is_hexadecimal(&entry.file_name(), 62) {
                    entries.extend(kept(entry.path())?);
                }
            }
        }
        Ok(entries)
    }
}

impl Reservation<'_> {
    /// Writes the entry and makes it visible, or takes everything back. An entry is not synced: after
    /// a power failure its digest tells.
    pub fn fill(self, write: impl FnOnce(&File) -> io::Result<()>) -> Result<()> {
        let Self { room, scratch, target, size } = self;
        let written = write(scratch.file()).map_err(|e| Error::io(scratch.path(), "write", e));
        let done = written.and_then(|()| scratch.put(&target));
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

/// Makes the tag, whole or not at all, where there is none. Call under the lock.
fn tag(folder: &Path) -> Result<()> {
    let path = folder.join(TAG_NAME);
    if is_there(&path)? {
        return Ok(());
    }
    let scratch = Scratch::create(Form::File, &folder.join(NEW), TAG_NAME)?;
    scratch.file().write_all(TAG).map_err(|e| Error::io(scratch.path(), "write", e))?;
    scratch.put(&path)
}

fn kept(path: PathBuf) -> Result<Option<StoredEntry>> {
    let looked = fs::symlink_metadata(&path).and_then(|m| Ok((m.modified()?, m.len())));
    let found = if_there(&path, "inspect", looked)?;
    Ok(found.map(|(used, size)| StoredEntry { used, path, size }))
}

fn is_hexadecimal(name: &OsString, len: usize) -> bool {
    let digits =
        |name: &str| name.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    name.to_str().is_some_and(|name| name.len() == len && digits(name))
}

/// Removes files that no run writes any more. Call under the lock.
fn clear_dead(folder: &Path) -> Result<()> {
    // Those of other users may not be looked at.
    Scratch::dead(Form::File, folder, "")?.flatten().try_for_each(Scratch::remove)
}

/// Bytes of the files in a folder.
fn sum_of(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in list(folder)? {
        sum += kept(entry?.path())?.map_or(0, |kept| kept.size);
    }
    Ok(sum)
}
