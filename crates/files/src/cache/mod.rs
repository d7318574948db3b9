//! A persistent cache of compressed data and facts about content.
//!
//! ```text
//! DIR/CACHEDIR.TAG       marks the folder as a cache for backup programs
//! DIR/lock               locked during evictions; has the size of the whole cache in bytes, as u64
//! DIR/new/               entries that are being written, each locked while its run is alive
//! DIR/3f/9a…             entries, by key; the file's modification time is the time of its last use
//! ```
//!
//! An entry has the output of a compressor (a frame of a kernel archive, the payload of a package), or facts
//! about content alone (the description of a kernel index), under a [`Key`] of everything that its bytes
//! depend on. It appears by rename when it is complete, and each use compares its bytes with their digest. So
//! neither a killed run nor a failing disk can put wrong bytes into a package: a damaged entry is removed,
//! rebuilt and reported (`R096`). Several runs may use one cache at the same time; an entry that one
//! of them removes stays readable for another that is reading it. The least recently used entries are evicted.
//!
//! The folder stays open, and its entries are accessed through it without following links: a run writes and removes
//! nothing in another folder that is put at its path meanwhile.
//!
//! The digests detect accidents, not forgery: a user who may write to the cache controls the content of packages.
//!
//! Faults of a cache never fail a run: without it, everything is computed again.

mod key;
mod storage;

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

pub use key::{ContentDigest, Key, KeyBuilder, content_digest};
pub use storage::check_ahead;

use crate::Dir;
use storage::CacheStorage;

#[derive(Debug, Clone)]
pub struct CacheSettings {
    /// The folder; created if missing.
    pub folder: PathBuf,
    /// The limit in bytes.
    pub limit: u64,
}

impl CacheSettings {
    /// Opens the cache. An unreadable existing cache gives a finding; a path where none can be created is an error.
    pub fn open(&self, progress: &dyn Progress) -> Result<Option<Cache>> {
        match Cache::open(&self.folder, self.limit) {
            Err(error) if error.kind() == Kind::Io && self.folder.is_dir() => {
                let (cache, reason) = (self.folder.display().to_string(), error.full_text());
                progress.warn(&Finding::from(found::CacheUnusable { cache, reason }));
                Ok(None)
            }
            opened => opened.map(Some),
        }
    }
}

#[derive(Debug)]
pub struct Cache {
    path: PathBuf,
    folder: Arc<Dir>,
    /// The storage of new entries; `None` if this user may only read.
    storage: Option<CacheStorage>,
    writes_failed: AtomicBool,
    findings: Mutex<Vec<Finding>>,
}

impl Cache {
    /// Opens the cache in `path` with at most `limit` bytes, and creates the folder if it is missing. Removes
    /// leftovers of killed runs, and entries over the limit. A read-only cache gives a finding.
    pub fn open(path: &Path, limit: u64) -> Result<Self> {
        let folder = Arc::new(storage::open_folder(path)?);
        let (storage, fault) = match CacheStorage::open(Arc::clone(&folder), limit) {
            Ok(storage) => (Some(storage), None),
            Err(error) if error.kind() == Kind::Io => (None, Some(error)),
            Err(error) => return Err(error),
        };
        let path = path.to_path_buf();
        let cache = Self {
            path,
            folder,
            storage,
            writes_failed: AtomicBool::new(false),
            findings: Mutex::default(),
        };
        fault.iter().for_each(|error| cache.give_up(error));
        Ok(cache)
    }

    /// The entry with this key, if it exists and can be read.
    pub fn find(&self, key: &Key) -> Option<CacheEntry> {
        let place = key.place();
        let file = match storage::entry(&self.folder, &place) {
            Ok(file) => file?,
            Err(error) => {
                self.give_up(&error);
                return None;
            }
        };
        match CacheEntry::read(file, &storage::path_of(&self.folder, &place), key) {
            Ok(entry) => {
                // Fails for another user's file, which can be used nevertheless.
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

    /// Writes the bytes of `entry` to `sink`, and returns whether they are intact. If not, the entry is
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
            self.discard(&entry.place, entry.size(), "its content does not match its digest");
        }
        Ok(whole)
    }

    /// Removes an entry whose facts the caller cannot read.
    pub fn discard_invalid(&self, entry: &CacheEntry) {
        self.discard(&entry.place, entry.size(), "its facts are not valid for its kind");
    }

    /// Stores `len` bytes of `body` with `facts`, unless the facts exceed `FACTS_LIMIT`.
    pub fn keep(&self, key: &Key, facts: &[u8], len: u64, body: &mut dyn Read) {
        let is_wanted =
            !self.writes_failed.load(Ordering::Relaxed) && facts.len() as u64 <= FACTS_LIMIT;
        let Some(storage) = self.storage.as_ref().filter(|_| is_wanted) else { return };
        let written =
            storage.reserve(key.place(), entry_size(facts, len)).and_then(|reservation| {
                reservation.map_or(Ok(()), |reservation| {
                    reservation.fill(|file| write_entry(file, key, facts, len, body))
                })
            });
        if let Err(error) = written {
            self.give_up(&error);
        }
    }

    /// The faults of the cache. They slowed the run down but did not change its result.
    pub fn findings(&self) -> Vec<Finding> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn report(&self, finding: Finding) {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner).push(finding);
    }

    fn discard(&self, place: &[String; 2], size: u64, what: &str) {
        let (entry, damage) =
            (storage::path_of(&self.folder, place).display().to_string(), what.to_owned());
        self.report(Finding::from(found::CacheEntryDamaged { entry, damage }));
        let Some(storage) = &self.storage else { return };
        match storage.remove(place) {
            Ok(true) => storage.free(size),
            // Another run was faster.
            Ok(false) => {}
            Err(error) => self.give_up(&error),
        }
    }

    /// Stops writing, and reports why in one finding.
    fn give_up(&self, error: &Error) {
        if !self.writes_failed.swap(true, Ordering::Relaxed) {
            let (cache, reason) = (self.path.display().to_string(), error.full_text());
            self.report(Finding::from(found::CacheUnusable { cache, reason }));
        }
    }
}

const MAGIC: &[u8; 8] = b"rkpcach2";

/// Bytes of the trailer, and of the part that its digest covers.
const TRAILER: usize = 120;
const COVERED: usize = 88;

/// Maximum size in bytes of facts, which are read into memory; those of a `.deb` with a million files take 48 MB.
const FACTS_LIMIT: u64 = 256 << 20;

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

enum Damage {
    /// The file system failed.
    Unreadable(Error),
    /// The file differs from the written one.
    Wrong { size: u64, what: &'static str },
}

impl CacheEntry {
    /// Reads `file`, which is open at `path`. Its trailer must have this `key`.
    fn read(file: File, path: &Path, key: &Key) -> Result<Self, Damage> {
        let size = file.metadata().map_err(|e| unreadable(path, e))?.len();
        let cut_off = Damage::Wrong { size, what: "it is truncated" };
        let front = size.checked_sub(TRAILER as u64).ok_or(cut_off)?;
        let mut trailer = [0; TRAILER];
        file.read_exact_at(&mut trailer, front).map_err(|e| unreadable(path, e))?;
        let [len, facts_len] = [40, 48].map(|at| u64::from_le_bytes(bytes_at(&trailer, at)));
        if &trailer[..8] != MAGIC || len.checked_add(facts_len) != Some(front) {
            return Err(Damage::Wrong { size, what: "its trailer is not valid" });
        }
        if facts_len > FACTS_LIMIT {
            return Err(Damage::Wrong { size, what: "its facts are too long" });
        }
        let mut facts = vec![0; usize::try_from(facts_len).unwrap_or_default()];
        file.read_exact_at(&mut facts, len).map_err(|e| unreadable(path, e))?;
        if digest_of(&facts, &trailer) != blake3::Hash::from_bytes(bytes_at(&trailer, COVERED)) {
            return Err(Damage::Wrong { size, what: "its trailer does not match its digest" });
        }
        if trailer[8..40] != key.as_bytes()[..] {
            return Err(Damage::Wrong { size, what: "it has the key of another entry" });
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
