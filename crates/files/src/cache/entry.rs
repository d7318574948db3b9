//! One entry of a cache.
//!
//! ```text
//! body      the output of the compressor
//! facts     facts about the content that the body lacks, in the form of their writer
//! trailer   0    8  magic "rkpcach2"        56  32  BLAKE3 of the body
//!           8   32  key                     88  32  BLAKE3 of the facts and of 0..88
//!           40   8  u64 bytes of the body
//!           48   8  u64 bytes of the facts  little-endian
//! ```

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rockpack_core::content::WINDOW;
use rockpack_core::error::{Error, Result};

use super::Key;

const MAGIC: &[u8; 8] = b"rkpcach2";

/// Bytes of the trailer, and of the part that its digest covers.
const TRAILER: usize = 120;
const COVERED: usize = 88;

/// Most bytes of facts, which are read whole; those of a `.deb` with a million files take 48 MB.
pub(super) const FACTS_LIMIT: u64 = 256 << 20;

/// Bytes of an entry.
pub(super) fn size(facts: &[u8], len: u64) -> u64 {
    len.saturating_add(facts.len() as u64).saturating_add(TRAILER as u64)
}

/// An open entry, readable even after its removal.
#[derive(Debug)]
pub struct CacheEntry {
    place: [String; 2],
    file: File,
    len: u64,
    digest: blake3::Hash,
    facts: Vec<u8>,
}

/// A fault of an entry's file.
pub(super) enum Damage {
    /// The file system failed.
    Unreadable(Error),
    /// The file differs from the written one.
    Wrong { size: u64, what: &'static str },
}

impl CacheEntry {
    /// Reads `file`, which is open at `path`, and whose trailer and facts must be those of `key`.
    pub(super) fn read(file: File, path: &Path, key: &Key) -> Result<Self, Damage> {
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

    /// The names of its folder and of its file.
    pub(super) fn place(&self) -> &[String; 2] {
        &self.place
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// The bytes of the file.
    pub(super) fn size(&self) -> u64 {
        size(&self.facts, self.len)
    }

    /// Writes the body to `sink`, and tells whether it has the digest of the kept one.
    pub(super) fn copy(&self, sink: &mut dyn Write) -> io::Result<bool> {
        let mut digest = blake3::Hasher::new();
        let mut window = vec![0; usize::try_from(self.len).unwrap_or(WINDOW).min(WINDOW)];
        let mut at = 0;
        while at < self.len {
            let len = usize::try_from(self.len - at).unwrap_or(WINDOW).min(WINDOW);
            let part = &mut window[..len];
            if self.file.read_exact_at(part, at).is_err() {
                return Ok(false);
            }
            digest.update(part);
            sink.write_all(part)?;
            at += len as u64;
        }
        Ok(digest.finalize() == self.digest)
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
pub(super) fn write(
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
