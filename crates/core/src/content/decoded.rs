//! Content that a decoder produces.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::compression::decoder_fault;
use crate::error::{Error, Place, Result};
use crate::run::{Budget, Lease, MemoryUse};

/// A stream that can be decoded again from its start.
///
/// Output of up to [`HOLD_LIMIT`] bytes is held in memory while it is read or pinned. Longer output, and
/// output for which the budget has no room, is decoded again by every read, up to the requested position. No
/// reader waits for another to free memory.
pub trait StreamSource: Debug + Send + Sync {
    fn len(&self) -> u64;
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Opens a reader of the decoded bytes from the first on.
    fn open(&self) -> Result<Box<dyn Read + Send>>;
    /// The place of the encoded stream, for messages.
    fn place(&self) -> Place;
}

/// The longest decoded stream that is held in memory as a whole, in bytes.
pub const HOLD_LIMIT: u64 = 256 << 20;

/// Bytes in memory, with their lease from a budget.
#[derive(Debug)]
pub struct HeldBytes {
    pub(super) bytes: Vec<u8>,
    /// The name of the bytes in messages.
    pub(super) name: Option<PathBuf>,
    lease: Lease,
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.bytes.clear();
        self.lease.spare(&mut self.bytes);
    }
}

impl HeldBytes {
    /// Holds `bytes`, for which `lease` was drawn.
    pub fn new(bytes: Vec<u8>, lease: Lease) -> Self {
        Self { bytes, name: None, lease }
    }

    #[must_use]
    pub fn named(mut self, name: PathBuf) -> Self {
        self.name = Some(name);
        self
    }

    /// Reserves room for `len` bytes, if they are no more than `HOLD_LIMIT` and `budget` has them. All of it
    /// is reserved at once, because a growing vector would take twice as much meanwhile. The system commits
    /// only the pages that are written.
    pub fn reserve(len: u64, budget: &Budget) -> Option<Self> {
        (len <= HOLD_LIMIT).then(|| Self::reserve_over_limit(len, budget))?
    }

    /// Reserves room for `len` bytes without that limit, if `budget` has them.
    pub fn reserve_over_limit(len: u64, budget: &Budget) -> Option<Self> {
        if let Some((bytes, lease)) = budget.spare(MemoryUse::HeldBytes, len) {
            return Some(Self::new(bytes, lease));
        }
        let lease = budget.try_draw(MemoryUse::HeldBytes, len)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(usize::try_from(len).ok()?).ok()?;
        Some(Self::new(bytes, lease))
    }

    /// The bytes of `range`, which must lie inside.
    pub(super) fn range(&self, range: Range<u64>) -> Result<&[u8]> {
        let [start, end] = [range.start, range.end].map(usize::try_from);
        let found = start.ok().zip(end.ok()).and_then(|(start, end)| self.bytes.get(start..end));
        found.ok_or_else(|| Error::bug("a range lies outside of held bytes"))
    }

    pub fn fill(&mut self, reader: &mut impl Read) -> io::Result<usize> {
        reader.read_to_end(&mut self.bytes)
    }

    /// Decodes whole zstd frames into the output, which serves as their window. `None` if they
    /// do not yield exactly `len` bytes.
    pub fn decode(&mut self, frames: &Self, len: u64) -> Option<&[u8]> {
        let decoded = zstd::bulk::Decompressor::new()
            .and_then(|mut decoder| decoder.decompress_to_buffer(&frames.bytes, &mut self.bytes));
        if decoded.is_ok_and(|decoded| decoded as u64 == len) {
            return Some(&self.bytes);
        }
        self.bytes.clear();
        None
    }

    /// Appends `bytes`, no more than there is room for.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
}

#[derive(Debug)]
pub(super) struct DecodedContent {
    stream: Arc<dyn StreamSource>,
    budget: Budget,
    held: Mutex<Weak<HeldBytes>>,
}

impl DecodedContent {
    /// Makes a stream whose output is held within `budget`; `bytes` is the whole output, if it is known.
    pub(super) fn new(
        stream: Arc<dyn StreamSource>,
        budget: Budget,
        bytes: Option<&Arc<HeldBytes>>,
    ) -> Self {
        let held = bytes.map(Arc::downgrade).unwrap_or_default();
        Self { stream, budget, held: Mutex::new(held) }
    }

    pub(super) fn place(&self) -> Place {
        self.stream.place()
    }

    /// The whole output, or `None` if it is too long to hold or the budget has no room for it.
    pub(super) fn hold(&self) -> Result<Option<Arc<HeldBytes>>> {
        let len = self.stream.len();
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = held.upgrade() {
            return Ok(Some(bytes));
        }
        let Some(mut bytes) = HeldBytes::reserve(len, &self.budget) else {
            return Ok(None);
        };
        let filled = bytes.fill(&mut self.stream.open()?.take(len)).map_err(|e| self.fault(e))?;
        if filled as u64 != len {
            return Err(self.fault(io::ErrorKind::UnexpectedEof.into()));
        }
        let bytes = Arc::new(bytes);
        *held = Arc::downgrade(&bytes);
        Ok(Some(bytes))
    }

    pub(super) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        if let Some(bytes) = self.hold()? {
            buffer.copy_from_slice(bytes.range(offset..offset + buffer.len() as u64)?);
            return Ok(());
        }
        self.reader_at(offset)?.read_exact(buffer).map_err(|e| self.fault(e))
    }

    /// A sequential reader from `offset` on, for output that is too long to hold.
    pub(super) fn reader_at(&self, offset: u64) -> Result<Box<dyn Read + Send>> {
        let mut reader = self.stream.open()?;
        io::copy(&mut reader.by_ref().take(offset), &mut io::sink()).map_err(|e| self.fault(e))?;
        Ok(reader)
    }

    pub(super) fn fault(&self, source: io::Error) -> Error {
        decoder_fault(source).at(&self.place())
    }
}

/// Keeps open files and decoded bytes alive; see [`super::Content::pin`].
#[derive(Debug, Default)]
pub struct Pinned {
    files: Vec<Arc<File>>,
    buffers: Vec<Arc<HeldBytes>>,
}

impl Pinned {
    pub(super) fn keep_file(&mut self, file: Arc<File>) {
        if !self.files.iter().any(|kept| Arc::ptr_eq(kept, &file)) {
            self.files.push(file);
        }
    }

    pub(super) fn keep_bytes(&mut self, bytes: Option<Arc<HeldBytes>>) {
        if let Some(bytes) = bytes
            && !self.buffers.iter().any(|kept| Arc::ptr_eq(kept, &bytes))
        {
            self.buffers.push(bytes);
        }
    }
}
