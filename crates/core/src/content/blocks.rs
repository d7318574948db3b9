//! An anonymous temporary file for bytes that do not fit into memory, and compressed bytes in it that can be
//! read at any position.
//!
//! The output of a sequential decoder is cut into blocks of [`BLOCK`] bytes. Each is compressed by itself
//! with zstd at its fastest, or stored where that does not help. So scratch space is about the size of the
//! decoder's input (366 MB for an archive of 256 MB with 2.3 GB of content), and a read at any position
//! decodes a block, not a stream.

use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::{Content, PieceSource};
use crate::error::{Error, Result};
use crate::run::Budget;

/// An append-only anonymous temporary file: a killed run leaves no file. Where the file system cannot
/// make one, the file has a name until it is open.
#[derive(Debug)]
pub struct Spool {
    directory: PathBuf,
    file: Arc<File>,
    end: AtomicU64,
}

impl Spool {
    /// Makes an empty spool on the file system of `directory`.
    pub fn create(directory: &Path) -> Result<Self> {
        let file = anonymous(directory)
            .map_err(|cause| Error::io(directory, "create a spool file in", cause.into()))?;
        Ok(Self {
            directory: directory.to_path_buf(),
            file: Arc::new(file),
            end: AtomicU64::new(0),
        })
    }

    /// Appends `bytes`, and returns them as content. Several threads may append at once.
    pub fn append(&self, bytes: &[u8]) -> Result<Content> {
        let len = bytes.len() as u64;
        let offset = self.end.fetch_add(len, Ordering::Relaxed);
        self.file
            .write_all_at(bytes, offset)
            .map_err(|cause| Error::io(&self.directory, "write the spool file in", cause))?;
        Ok(Content::of_source(PieceSource::Spool(Arc::clone(&self.file)), offset, len))
    }
}

fn anonymous(directory: &Path) -> Result<File, Errno> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::open(directory, flags | OFlags::TMPFILE, mode) {
        Ok(file) => Ok(file.into()),
        // File systems without O_TMPFILE (NFS, some overlays), and kernels that ignore the flag and refuse to
        // open a directory for writing.
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => unlinked(directory),
        Err(error) => Err(error),
    }
}

/// Opens a new file and removes its name at once.
fn unlinked(directory: &Path) -> Result<File, Errno> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::CREATE | OFlags::EXCL;
    for attempt in 0..u16::MAX {
        let name = format!(".rockpack-spool-{}-{attempt}", std::process::id());
        let path = directory.join(name);
        match rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => {
                rustix::fs::unlink(&path)?;
                return Ok(file.into());
            }
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Errno::EXIST)
}

/// Bytes of a block. Readers use windows of four blocks. Smaller blocks compress worse; larger ones cost more
/// where a reader wants only a header.
const BLOCK: usize = 256 << 10;

/// Number of decoded blocks that a store keeps: 32 MiB. Sequential readers need few; the rest is for readers
/// that jump, such as those of symbol tables.
const CACHE: usize = 128;

/// The zstd level of blocks: they are written once, and read a few times.
const LEVEL: i32 = 1;

#[derive(derive_more::Debug)]
#[debug("BlockStore({spool:?})")]
pub struct BlockStore {
    spool: Spool,
    /// The budget for reading the content of runs.
    budget: Budget,
    next: AtomicU64,
    /// Blocks by number, least recently used first.
    cache: Mutex<VecDeque<(u64, Arc<Vec<u8>>)>>,
}

impl BlockStore {
    /// Makes an empty store on the file system of `directory`, whose content is read within `budget`.
    pub fn create(directory: &Path, budget: &Budget) -> Result<Arc<Self>> {
        let (spool, budget) = (Spool::create(directory)?, budget.clone());
        Ok(Arc::new(Self { spool, budget, next: AtomicU64::new(0), cache: Mutex::default() }))
    }

    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Returns a writer for a new run of bytes.
    pub fn writer(self: &Arc<Self>) -> Result<BlockWriter> {
        let compressor = zstd::bulk::Compressor::new(LEVEL)
            .map_err(|cause| Error::library_failure("cannot start a compressor", cause))?;
        Ok(BlockWriter {
            store: Arc::clone(self),
            compressor,
            pending: Vec::with_capacity(BLOCK),
            blocks: Vec::new(),
            len: 0,
        })
    }

    fn read(&self, block: &Block) -> Result<Arc<Vec<u8>>> {
        if let Some(bytes) = self.cached(block.number) {
            return Ok(bytes);
        }
        let stored = block.stored.read_vec(0..block.stored.len(), BLOCK as u64, "block")?;
        let bytes = if block.compressed {
            zstd::bulk::decompress(&stored, BLOCK)
                .map_err(|cause| Error::library_failure("the spool file changed", cause))?
        } else {
            stored
        };
        if bytes.len() != block.len {
            return Err(Error::bug("a block came back with another length"));
        }
        let bytes = Arc::new(bytes);
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.len() == CACHE {
            cache.pop_front();
        }
        cache.push_back((block.number, Arc::clone(&bytes)));
        Ok(bytes)
    }

    fn cached(&self, number: u64) -> Option<Arc<Vec<u8>>> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        // The most recently used blocks are the likeliest hits, so the search starts at the back.
        let at = cache.iter().rposition(|(there, _)| *there == number)?;
        let found = cache.remove(at)?;
        let bytes = Arc::clone(&found.1);
        cache.push_back(found);
        Some(bytes)
    }
}

#[derive(Debug)]
struct Block {
    number: u64,
    stored: Content,
    compressed: bool,
    len: usize,
}

/// Writes a run of bytes into a [`BlockStore`].
pub struct BlockWriter {
    store: Arc<BlockStore>,
    compressor: zstd::bulk::Compressor<'static>,
    pending: Vec<u8>,
    blocks: Vec<Block>,
    len: u64,
}

impl BlockWriter {
    pub fn budget(&self) -> &Budget {
        self.store.budget()
    }

    pub fn position(&self) -> u64 {
        self.len
    }

    pub fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.len += bytes.len() as u64;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK - self.pending.len()));
            self.pending.extend_from_slice(now);
            bytes = later;
            if self.pending.len() == BLOCK {
                self.put()?;
            }
        }
        Ok(())
    }

    fn put(&mut self) -> Result<()> {
        let compressed = self
            .compressor
            .compress(&self.pending)
            .map_err(|cause| Error::library_failure("cannot compress a block", cause))?;
        let smaller = compressed.len() < self.pending.len();
        let bytes = if smaller { &compressed } else { &self.pending };
        self.blocks.push(Block {
            number: self.store.next.fetch_add(1, Ordering::Relaxed),
            stored: self.store.spool.append(bytes)?,
            compressed: smaller,
            len: self.pending.len(),
        });
        self.pending.clear();
        Ok(())
    }

    /// Ends the run, which can be read from now on.
    pub fn finish(mut self) -> Result<Arc<Blocks>> {
        if !self.pending.is_empty() {
            self.put()?;
        }
        Ok(Arc::new(Blocks { store: self.store, blocks: self.blocks, len: self.len }))
    }
}

#[derive(Debug)]
pub struct Blocks {
    store: Arc<BlockStore>,
    /// All blocks but the last have [`BLOCK`] bytes.
    blocks: Vec<Block>,
    len: u64,
}

impl Blocks {
    /// The bytes of `range`, called `name` in messages.
    pub fn content(self: &Arc<Self>, range: Range<u64>, name: PathBuf) -> Result<Content> {
        if range.start > range.end || range.end > self.len {
            return Err(Error::bug("a part of a run lies outside of it"));
        }
        let len = range.end - range.start;
        let part = Arc::new(BlockRange { blocks: Arc::clone(self), start: range.start, name });
        Ok(Content::of_source(PieceSource::Blocks(part), 0, len).within(&self.store.budget))
    }
}

#[derive(Debug)]
pub(super) struct BlockRange {
    blocks: Arc<Blocks>,
    start: u64,
    pub(super) name: PathBuf,
}

impl BlockRange {
    /// Fills `buffer` from `offset` of the range on; the caller stays within the range.
    pub(super) fn read_at(&self, offset: u64, mut buffer: &mut [u8]) -> Result<()> {
        let mut at = usize::try_from(self.start + offset).map_err(|_| outside_of_run())?;
        while !buffer.is_empty() {
            let block = self.blocks.blocks.get(at / BLOCK).ok_or_else(outside_of_run)?;
            let decoded = self.blocks.store.read(block)?;
            let rest = decoded.get(at % BLOCK..).filter(|rest| !rest.is_empty());
            let bytes = rest.ok_or_else(outside_of_run)?;
            let len = bytes.len().min(buffer.len());
            let (now, later) = buffer.split_at_mut(len);
            now.copy_from_slice(&bytes[..len]);
            buffer = later;
            at += len;
        }
        Ok(())
    }
}

fn outside_of_run() -> Error {
    Error::bug("a read leaves its run")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_spool_have_no_name_and_keep_bytes() {
        let directory = tempfile::tempdir().unwrap();
        for create in [anonymous, unlinked] {
            let spool = Spool {
                directory: directory.path().to_path_buf(),
                file: Arc::new(create(directory.path()).unwrap()),
                end: AtomicU64::new(0),
            };
            let first = spool.append(b"first").unwrap();
            let second = spool.append(b"second").unwrap();
            assert_eq!(&second.read_array(0).unwrap(), b"second");
            assert_eq!(&first.slice(1..5).unwrap().read_array(0).unwrap(), b"irst");
            assert_eq!(directory.path().read_dir().unwrap().count(), 0);
        }
    }

    #[test]
    fn a_missing_directory_is_named() {
        let error = Spool::create(Path::new("/nonexistent/spool")).unwrap_err();
        let file = error.place().file.as_deref();
        assert_eq!(file, Some(Path::new("/nonexistent/spool")));
    }

    /// Test data in which every other block is incompressible.
    fn sample(len: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let noise = std::iter::repeat_with(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_be_bytes()[0]
        });
        noise
            .take(len)
            .enumerate()
            .map(|(at, b)| if (at / BLOCK).is_multiple_of(2) { b } else { 7 })
            .collect()
    }

    fn store() -> Arc<BlockStore> {
        BlockStore::create(&std::env::temp_dir(), &Budget::unlimited()).unwrap()
    }

    #[test]
    fn every_range_comes_back_whole_and_beyond_the_cache() {
        let bytes = sample(BLOCK * (CACHE + 3) + 11);
        let mut writer = store().writer().unwrap();
        for part in bytes.chunks(77_777) {
            writer.write(part).unwrap();
        }
        assert_eq!(writer.position(), bytes.len() as u64);
        let blocks = writer.finish().unwrap();
        let all = blocks.content(0..bytes.len() as u64, "x".into()).unwrap();
        for _ in 0..2 {
            assert!(all.same_bytes(&Content::of_bytes(bytes.clone())).unwrap());
        }
        for (start, end) in [(0, 1), (BLOCK - 1, BLOCK + 1), (BLOCK, 3 * BLOCK), (9, 9)] {
            let part = blocks.content(start as u64..end as u64, "x".into()).unwrap();
            assert!(part.same_bytes(&Content::of_bytes(&bytes[start..end])).unwrap(), "{start}");
        }
        let held = blocks.store.cache.lock().unwrap().len();
        assert_eq!(held, CACHE);
    }

    #[test]
    fn what_compresses_is_kept_small_and_what_does_not_is_not_made_larger() {
        let mut writer = store().writer().unwrap();
        writer.write(&sample(2 * BLOCK)).unwrap();
        let blocks = writer.finish().unwrap();
        let stored: Vec<u64> = blocks.blocks.iter().map(|block| block.stored.len()).collect();
        assert_eq!(stored[0], BLOCK as u64);
        assert!(stored[1] < 100, "{stored:?}");
    }

    #[test]
    fn a_place_names_the_part_and_the_offset_in_it() {
        let mut writer = store().writer().unwrap();
        writer.write(b"0123456789").unwrap();
        let blocks = writer.finish().unwrap();
        let part = blocks.content(2..8, "a.tar.zst(lib/x)".into()).unwrap();
        assert_eq!(&part.slice(3..6).unwrap().read_array(0).unwrap(), b"567");
        let place = part.slice(3..6).unwrap().place(1);
        assert_eq!(place.file, Some("a.tar.zst(lib/x)".into()));
        assert_eq!(place.offset, Some(4));
        assert!(blocks.content(8..11, "x".into()).is_err());
    }
}
