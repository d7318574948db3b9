//! Frames: reads, hashes and compresses every code object. With a cache, a long one that it lacks is read twice.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::iter::repeat_n;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rayon::iter::{ParallelBridge, ParallelIterator};
use rockpack_core::content::{Content, HeldBytes, Spool, WINDOW};
use rockpack_core::error::{Error, Faults, Result};
use rockpack_core::run::{Budget, MemoryUse};
use sha2::{Digest, Sha256};
use zstd::stream::write::Encoder;

use super::{ArchiveLevel, Packer};
use crate::fan_out::changed;
use rockpack_files::cache::{ContentDigest, Key, KeyBuilder, content_digest};
use rockpack_plan::recombine::Kernel;
use rockpack_report::{self as report, Compressed, Stage};

/// Longest code object in bytes that is read into memory as a whole. Its digest is then known before compression, so
/// that duplicates are not compressed. Longer ones are hashed and compressed window by window, and the frame of a
/// duplicate is dropped. With a cache they are hashed first for the lookup, and read again to be compressed.
const HELD_LIMIT: u64 = 8 << 20;

/// Version of the frames' bytes: raised when code objects compress to other bytes at the same level.
const FRAMES: u64 = 2;

/// A code object, compressed.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    /// SHA-256 of the code object.
    pub(super) sha256: [u8; 32],
    pub(super) original_size: u64,
    pub(super) content: Content,
}

/// Compresses `kernels`, and returns their frames in order. Identical code objects share one frame.
pub(super) fn compress(
    kernels: &[Kernel],
    level: ArchiveLevel,
    store: &FrameStore,
    packer: &Packer<'_>,
) -> Result<Vec<Frame>> {
    let level = match level {
        ArchiveLevel::Zstd(level) => level,
        // Stored archives decode the frames again; compression only saves memory and spool.
        ArchiveLevel::Stored => 1,
    };
    let (claimed, frames) = Default::default();
    let maker = FrameMaker { store, packer, level, claimed, frames };
    // All kernels of a wrapper share the pins of their bundle, which keep it decoded from the first to the last.
    let runs = kernels.chunk_by(|a, b| (&a.binary, a.co_index) == (&b.binary, b.co_index));
    let pins = runs.flat_map(|run| repeat_n(Arc::new(Mutex::new(Vec::new())), run.len()));
    // `par_bridge` keeps the order, so that only the bundles of a few neighbours are decoded at a time; splitting the
    // slice in halves would work on distant bundles.
    let mut results: Vec<(usize, Result<ContentDigest>)> = kernels
        .iter()
        .zip(pins)
        .enumerate()
        .par_bridge()
        .map(|(index, (kernel, pins))| {
            let hashed = kernel.content.pin().and_then(|pinned| {
                locked(&pins).push(pinned);
                maker.hash(kernel)
            });
            (index, hashed)
        })
        .collect();
    results.sort_by_key(|(index, _)| *index);
    let digests = Faults::all(results.into_iter().map(|(_, result)| result))?;
    let frames = locked(&maker.frames);
    let found = digests.iter().map(|digest| {
        frames.get(digest).cloned().ok_or_else(|| Error::bug("a code object has no frame"))
    });
    found.collect()
}

/// The state that the threads of one [`compress`] share.
struct FrameMaker<'a> {
    store: &'a FrameStore,
    packer: &'a Packer<'a>,
    level: i32,
    /// The code objects that some thread compresses or has compressed.
    claimed: Mutex<HashSet<ContentDigest>>,
    frames: Mutex<HashMap<ContentDigest, Frame>>,
}

impl FrameMaker<'_> {
    /// Hashes the code object. Compresses it unless another thread or the cache has its frame.
    fn hash(&self, kernel: &Kernel) -> Result<ContentDigest> {
        let original_size = kernel.content.len();
        if original_size == 0 {
            let (index, target) = (kernel.co_index, &kernel.target);
            let message = format!("the code object of wrapper {index} for {target} is empty");
            return Err(Error::malformed(message).file(kernel.binary.as_str()));
        }
        if original_size > HELD_LIMIT {
            self.windowed(&kernel.content)
        } else {
            self.held(&kernel.content)
        }
    }

    fn held(&self, content: &Content) -> Result<ContentDigest> {
        let bytes = content.read_vec(0..content.len(), HELD_LIMIT, "code object")?;
        let digest = blake3::hash(&bytes);
        if self.claim(digest) && !self.cached(digest, content.len())? {
            let mut encoder = self.encoder(content.len())?;
            // In windows, as longer ones, so that the bytes of a frame depend only on its content.
            for window in bytes.chunks(WINDOW) {
                encoder.write_all(window).map_err(fault)?;
            }
            let sha256 = Sha256::digest(&bytes).into();
            let sink = encoder.finish().map_err(fault)?;
            self.keep(digest, sha256, content.len(), sink)?;
        }
        self.advance(content.len());
        Ok(digest)
    }

    fn windowed(&self, content: &Content) -> Result<ContentDigest> {
        let known = self.packer.cache.map(|_| content_digest(content)).transpose()?;
        if let Some(digest) = known
            && (!self.claim(digest) || self.cached(digest, content.len())?)
        {
            self.advance(content.len());
            return Ok(digest);
        }
        let (digest, sha256, sink) = self.compressed(content)?;
        if known.is_some_and(|known| known != digest) {
            return Err(changed(content));
        }
        if known.is_some() || self.claim(digest) {
            self.keep(digest, sha256, content.len(), sink)?;
        }
        Ok(digest)
    }

    /// Compresses the code object and computes its digests in one pass.
    fn compressed(&self, content: &Content) -> Result<(ContentDigest, [u8; 32], FrameSink<'_>)> {
        let mut encoder = self.encoder(content.len())?;
        let (mut hasher, mut sha256) = (blake3::Hasher::new(), Sha256::new());
        let mut reader = content.reader();
        let mut window = vec![0; WINDOW];
        loop {
            let len = reader.read_window(&mut window)?;
            if len == 0 {
                break;
            }
            hasher.update(&window[..len]);
            sha256.update(&window[..len]);
            encoder.write_all(&window[..len]).map_err(fault)?;
            self.advance(len as u64);
        }
        let sink = encoder.finish().map_err(fault)?;
        Ok((hasher.finalize(), sha256.finalize().into(), sink))
    }

    /// Whether the cache has the frame of the code object, and keeps that if so.
    fn cached(&self, digest: ContentDigest, original_size: u64) -> Result<bool> {
        let Some(cache) = self.packer.cache else { return Ok(false) };
        let Some(entry) = cache.find(&self.key(digest, original_size)) else { return Ok(false) };
        let Ok(sha256) = entry.facts().try_into() else {
            cache.discard_invalid(&entry);
            return Ok(false);
        };
        let mut sink = FrameSink::new(self.store);
        // A failed sink returns an error of this crate.
        if !cache.copy(&entry, &mut sink).map_err(fault)? {
            return Ok(false);
        }
        let content = sink.finish()?;
        self.report_compressed(Compressed {
            before: original_size,
            after: content.len(),
            reused: true,
        });
        locked(&self.frames).insert(digest, Frame { sha256, original_size, content });
        Ok(true)
    }

    fn key(&self, digest: ContentDigest, original_size: u64) -> Key {
        let mut key = KeyBuilder::new("frame");
        key.number(FRAMES).text(&self.level.to_string());
        key.bytes(digest.as_bytes()).number(original_size);
        key.finish()
    }

    fn encoder(&self, content_size: u64) -> Result<Encoder<'static, FrameSink<'_>>> {
        let mut encoder = Encoder::new(FrameSink::new(self.store), self.level).map_err(fault)?;
        // Loaders compare the content size in the frame with the TOC.
        encoder.set_pledged_src_size(Some(content_size)).map_err(fault)?;
        // A checksum of four bytes, by which loaders refuse a damaged frame instead of running it.
        encoder.include_checksum(true).map_err(fault)?;
        Ok(encoder)
    }

    /// Whether the caller is the first with this code object.
    fn claim(&self, digest: ContentDigest) -> bool {
        locked(&self.claimed).insert(digest)
    }

    fn keep(
        &self,
        digest: ContentDigest,
        sha256: [u8; 32],
        original_size: u64,
        sink: FrameSink<'_>,
    ) -> Result<()> {
        let content = sink.finish()?;
        self.report_compressed(Compressed {
            before: original_size,
            after: content.len(),
            reused: false,
        });
        if let Some(cache) = self.packer.cache {
            let key = self.key(digest, original_size);
            cache.keep(&key, &sha256, content.len(), &mut content.reader());
        }
        locked(&self.frames).insert(digest, Frame { sha256, original_size, content });
        Ok(())
    }

    fn report_compressed(&self, compressed: Compressed) {
        self.packer.progress.compressed(report::Work::Kernels, compressed);
    }

    fn advance(&self, bytes: u64) {
        self.packer.progress.advance(Stage::Pack, bytes);
    }
}

fn fault(cause: io::Error) -> Error {
    Error::library_failure("zstd refuses to compress", cause)
}

/// Locks a mutex, and ignores poisoning: no thread panics while it holds one of these locks.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A store of frames: in memory as far as the budget allows, the rest in a spool.
#[derive(Debug)]
pub(super) struct FrameStore {
    directory: PathBuf,
    budget: Budget,
    /// The spool, created when it is first needed.
    spool: Mutex<Option<Arc<Spool>>>,
}

impl FrameStore {
    /// A store that keeps frames within `budget` in memory, and spools the rest in `directory`.
    pub(super) fn new(directory: &Path, budget: &Budget) -> Self {
        let (directory, budget) = (directory.to_path_buf(), budget.clone());
        Self { directory, budget, spool: Mutex::default() }
    }

    pub(super) fn keep(&self, bytes: Vec<u8>) -> Result<Content> {
        match self.budget.try_draw(MemoryUse::Frames, bytes.len() as u64) {
            Some(lease) => Ok(Content::of_held(HeldBytes::new(bytes, lease))),
            None => self.spool()?.append(&bytes),
        }
    }

    fn spool(&self) -> Result<Arc<Spool>> {
        let mut slot = locked(&self.spool);
        let spool = match slot.take() {
            Some(spool) => spool,
            None => Arc::new(Spool::create(&self.directory)?),
        };
        Ok(Arc::clone(slot.insert(spool)))
    }
}

struct FrameSink<'a> {
    store: &'a FrameStore,
    /// Bytes that are not stored yet; stored in pieces of 4 MiB.
    gathered: Vec<u8>,
    pieces: Vec<Content>,
}

impl<'a> FrameSink<'a> {
    fn new(store: &'a FrameStore) -> Self {
        Self { store, gathered: Vec::new(), pieces: Vec::new() }
    }

    fn put_away(&mut self) -> Result<()> {
        let mut bytes = mem::take(&mut self.gathered);
        bytes.shrink_to_fit();
        self.pieces.push(self.store.keep(bytes)?);
        Ok(())
    }

    fn finish(mut self) -> Result<Content> {
        self.put_away()?;
        Ok(Content::concat(&self.pieces))
    }
}

impl Write for FrameSink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() >= 4 << 20 {
            self.put_away()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
