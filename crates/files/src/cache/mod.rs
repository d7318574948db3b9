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

mod key;
mod room;

use std::fs::{File, FileTimes};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rockpack_core::content::WINDOW;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_report::{Finding, Progress, found};

pub use key::{ContentDigest, Key, KeyMaker, content_digest};
pub use room::check_ahead;

use crate::Dir;
use room::Room;

/// The cache that a run is to use.
#[derive(Debug, Clone)]
pub struct CacheSettings {
    /// The folder; created if missing.
    pub folder: PathBuf,
    /// The limit in bytes.
    pub limit: u64,
}

impl CacheSettings {
    /// Opens the cache. An existing one that cannot be read gives a finding; a path where none can be created
    /// fails the run.
    pub fn open(&self, progress: &dyn Progress) -> Result<Option<Cache>> {
        match Cache::open(&self.folder, self.limit) {
            Err(error) if error.kind() == Kind::Io && self.folder.is_dir() => {
                let (cache, reason) = (self.folder.display().to_string(), error.in_full());
                progress.warn(&Finding::from(found::CacheUnusable { cache, reason }));
                Ok(None)
            }
            opened => opened.map(Some),
        }
    }
}

/// A cache folder.
#[derive(Debug)]
pub struct Cache {
    path: PathBuf,
    folder: Arc<Dir>,
    /// The room for new entries; `None` if this user may only read.
    room: Option<Room>,
    /// Tells whether writing has failed.
    full: AtomicBool,
    findings: Mutex<Vec<Finding>>,
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
                let _ = entry.file.set_times(used);
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
        let mut digest = blake3::Hasher::new();
        let mut window = vec![0; usize::try_from(entry.len).unwrap_or(WINDOW).min(WINDOW)];
        let mut at = 0;
        while at < entry.len {
            let len = usize::try_from(entry.len - at).unwrap_or(WINDOW).min(WINDOW);
            let part = &mut window[..len];
            if entry.file.read_exact_at(part, at).is_err() {
                break;
            }
            digest.update(part);
            sink.write_all(part)?;
            at += len as u64;
        }
        let whole = at == entry.len && digest.finalize() == entry.digest;
        if !whole {
            self.discard(&entry.place, entry.size(), "its bytes are not those of its digest");
        }
        Ok(whole)
    }

    /// Removes an entry whose facts are not those that its user keeps.
    pub fn refuse(&self, entry: &CacheEntry) {
        self.discard(&entry.place, entry.size(), "its facts are not those of its kind");
    }

    /// Keeps the `len` bytes of `body` and their `facts`, unless these are too long to be read again.
    pub fn keep(&self, key: &Key, facts: &[u8], len: u64, body: &mut dyn Read) {
        let is_wanted = !self.full.load(Ordering::Relaxed) && facts.len() as u64 <= FACTS_LIMIT;
        let Some(room) = self.room.as_ref().filter(|_| is_wanted) else { return };
        let written = room.make(key.place(), entry_size(facts, len)).and_then(|reservation| {
            reservation.map_or(Ok(()), |reservation| {
                reservation.fill(|file| write_entry(file, key, facts, len, body))
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
        self.report(Finding::from(found::CacheEntryDamaged { entry, damage }));
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
            self.report(Finding::from(found::CacheUnusable { cache, reason }));
        }
    }
}

const MAGIC: &[u8; 8] = b"rkpcach2";

/// Bytes of the trailer, and of the part that its digest covers.
const TRAILER: usize = 120;
const COVERED: usize = 88;

/// Most bytes of facts, which are read whole; those of a `.deb` with a million files take 48 MB.
const FACTS_LIMIT: u64 = 256 << 20;

/// Bytes of an entry.
fn entry_size(facts: &[u8], len: u64) -> u64 {
    len.saturating_add(facts.len() as u64).saturating_add(TRAILER as u64)
}

/// An open entry, readable even after its removal.
///
/// ```text
/// body      the output of the compressor
/// facts     facts about the content that the body lacks, in the form of their writer
/// trailer   0    8  magic "rkpcach2"        56  32  BLAKE3 of the body
///           8   32  key                     88  32  BLAKE3 of the facts and of 0..88
///           40   8  u64 bytes of the body
///           48   8  u64 bytes of the facts  little-endian
/// ```
#[derive(Debug)]
pub struct CacheEntry {
    /// The names of its folder and of its file.
    place: [String; 2],
    file: File,
    len: u64,
    digest: blake3::Hash,
    facts: Vec<u8>,
}

/// A fault of an entry's file.
enum Damage {
    /// The file system failed.
    Unreadable(Error),
    /// The file differs from the written one.
    Wrong { size: u64, what: &'static str },
}

impl CacheEntry {
    /// Reads `file`, which is open at `path`, and whose trailer and facts must be those of `key`.
    fn read(file: File, path: &Path, key: &Key) -> Result<Self, Damage> {
        let size = file.metadata().map_err(|e| unreadable(path, e))?.len();
        let cut_off = Damage::Wrong { size, what: "it is cut off" };
        let front = size.checked_sub(TRAILER as u64).ok_or(cut_off)?;
        let mut trailer = [0; TRAILER];
        file.read_exact_at(&mut trailer, front).map_err(|e| unreadable(path, e))?;
        let [len, facts_len] = [40, 48].map(|at| u64::from_le_bytes(bytes_at(&trailer, at)));
        if &trailer[..8] != MAGIC || len.checked_add(facts_len) != Some(front) {
            return Err(Damage::Wrong { size, what: "it does not end as an entry does" });
        }
        if facts_len > FACTS_LIMIT {
            return Err(Damage::Wrong { size, what: "its facts are too long" });
        }
        let mut facts = vec![0; usize::try_from(facts_len).unwrap_or_default()];
        file.read_exact_at(&mut facts, len).map_err(|e| unreadable(path, e))?;
        if digest_of(&facts, &trailer) != blake3::Hash::from_bytes(bytes_at(&trailer, COVERED)) {
            return Err(Damage::Wrong { size, what: "its end is not that of its digest" });
        }
        if trailer[8..40] != key.as_bytes()[..] {
            return Err(Damage::Wrong { size, what: "it stands under the key of another one" });
        }
        let digest = blake3::Hash::from_bytes(bytes_at(&trailer, 56));
        Ok(Self { place: key.place(), file, len, digest, facts })
    }

    /// The number of bytes of the compressed body.
    pub fn body_len(&self) -> u64 {
        self.len
    }

    /// The facts kept with the body, compared with their digest.
    pub fn facts(&self) -> &[u8] {
        &self.facts
    }

    /// The bytes of the file.
    fn size(&self) -> u64 {
        entry_size(&self.facts, self.len)
    }
}

fn unreadable(path: &Path, error: io::Error) -> Damage {
    Damage::Unreadable(Error::io(path, "read", error))
}

fn bytes_at<const N: usize>(trailer: &[u8; TRAILER], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&trailer[at..at + N]);
    bytes
}

fn digest_of(facts: &[u8], trailer: &[u8; TRAILER]) -> blake3::Hash {
    blake3::Hasher::new().update(facts).update(&trailer[..COVERED]).finalize()
}

/// Writes an entry with the next `len` bytes of `body`.
fn write_entry(
    file: &File,
    key: &Key,
    facts: &[u8],
    len: u64,
    body: &mut dyn Read,
) -> io::Result<()> {
    let mut digest = blake3::Hasher::new();
    let mut window = vec![0; usize::try_from(len).unwrap_or(WINDOW).min(WINDOW)];
    let mut sink = BufWriter::with_capacity(WINDOW, file);
    let mut left = len;
    while left > 0 {
        let part = usize::try_from(left).unwrap_or(WINDOW).min(WINDOW);
        body.read_exact(&mut window[..part])?;
        digest.update(&window[..part]);
        sink.write_all(&window[..part])?;
        left -= part as u64;
    }
    let mut trailer = [0; TRAILER];
    trailer[..8].copy_from_slice(MAGIC);
    trailer[8..40].copy_from_slice(key.as_bytes());
    trailer[40..48].copy_from_slice(&len.to_le_bytes());
    trailer[48..56].copy_from_slice(&(facts.len() as u64).to_le_bytes());
    trailer[56..COVERED].copy_from_slice(digest.finalize().as_bytes());
    let covered = digest_of(facts, &trailer);
    trailer[COVERED..].copy_from_slice(covered.as_bytes());
    sink.write_all(facts)?;
    sink.write_all(&trailer)?;
    sink.flush()
}

#[cfg(test)]
mod tests;
