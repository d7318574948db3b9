//! Content handles: access to the bytes of a file without holding them.
//!
//! A [`Content`] is a cheap-to-clone rope: ranges of input files, heap buffers, runs of zeros, and ranges of
//! decoded streams, of the run's own spool and of blocks in it. A transformed library is its own file with a
//! few patched ranges and one removed. Content is read by positioned reads in windows. Nothing returns a
//! whole file as a slice, so a file that shrinks during the run is an error with its name, never a crash.
//! Content carries the [`Budget`] that it was opened within, and so do its slices and the output of its
//! decoders.

mod blocks;
mod decoded;
mod digest;
mod file;
mod open;
mod reader;

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use blocks::{BlockStore, BlockWriter, Blocks, Spool};
pub use decoded::{HOLD_LIMIT, HeldBytes, Pinned, StreamSource};
pub use digest::{DigestingReader, DigestingWriter, Sha256Digest, hex, unhex};
pub use file::{Inputs, Recheck, StampedFile};
pub use open::{
    KEY_FILE_LIMIT, NAME_MAX, exists, if_exists, is_file, is_folder, list, open_file, read_file,
    read_small, read_user_file, real_path,
};
pub use reader::{ContentReader, WINDOW};

use crate::error::{Error, Place, Result};
use crate::run::{Budget, Lease, interrupt};
use blocks::BlockRange;
use decoded::DecodedContent;

/// A range of bytes that can be read at any position.
#[derive(Clone, Debug)]
pub struct Content {
    pieces: Arc<[Piece]>,
    len: u64,
    budget: Budget,
}

/// A run of bytes from one source, at position `at` of the content.
#[derive(Clone, Debug)]
struct Piece {
    at: u64,
    len: u64,
    source: PieceSource,
    /// Position of the first byte within the source.
    offset: u64,
}

#[derive(Clone, Debug)]
enum PieceSource {
    File(Arc<StampedFile>),
    Bytes(Arc<HeldBytes>),
    Decoded(Arc<DecodedContent>),
    /// An anonymous temporary file of this run. The bytes must be written before they are read, and never
    /// change after that.
    Spool(Arc<File>),
    Blocks(Arc<BlockRange>),
    Zeros,
}

impl Default for Content {
    fn default() -> Self {
        Self { pieces: Arc::default(), len: 0, budget: Budget::unlimited() }
    }
}

impl Content {
    /// Opens the file at `path`, to be read within `budget`. Reads fail once it has changed.
    pub fn open(path: impl AsRef<Path>, budget: &Budget) -> Result<Self> {
        Ok(Self::of_file(Arc::new(StampedFile::open(path.as_ref())?), budget))
    }

    /// Gives the content another budget, from which its reads draw.
    #[must_use]
    pub fn within(self, budget: &Budget) -> Self {
        Self { budget: budget.clone(), ..self }
    }

    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The whole of an input file, read within `budget`.
    pub fn of_file(file: Arc<StampedFile>, budget: &Budget) -> Self {
        // An empty file is a piece, too, so that it can be named.
        let len = file.len();
        let piece = Piece { at: 0, len, source: PieceSource::File(file), offset: 0 };
        Self { pieces: Arc::new([piece]), len, budget: budget.clone() }
    }

    /// A buffer on the heap that counts against no budget.
    pub fn of_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self::of_held(HeldBytes::new(bytes.into(), Lease::default()))
    }

    /// A buffer on the heap that was drawn from a budget, and returns to it with its last piece.
    pub fn of_held(bytes: HeldBytes) -> Self {
        let len = bytes.bytes.len() as u64;
        Self::of_source(PieceSource::Bytes(Arc::new(bytes)), 0, len)
    }

    pub fn zeros(len: u64) -> Self {
        Self::of_source(PieceSource::Zeros, 0, len)
    }

    /// The output of a decoder of this content; [`StreamSource`] explains what is held in memory and when.
    pub fn decoded(&self, stream: Arc<dyn StreamSource>) -> Self {
        self.decoded_from(stream, None).0
    }

    /// The output of a decoder of this content. `bytes` is the whole output, if it is decoded already; the
    /// guard keeps it in memory.
    pub fn decoded_from(
        &self,
        stream: Arc<dyn StreamSource>,
        bytes: Option<HeldBytes>,
    ) -> (Self, Pinned) {
        let (bytes, mut pinned) = (bytes.map(Arc::new), Pinned::default());
        let len = stream.len();
        let decoded = DecodedContent::new(stream, self.budget.clone(), bytes.as_ref());
        pinned.keep_bytes(bytes);
        let source = PieceSource::Decoded(Arc::new(decoded));
        (Self::of_source(source, 0, len).within(&self.budget), pinned)
    }

    fn of_source(source: PieceSource, offset: u64, len: u64) -> Self {
        // An empty file keeps its name, for messages.
        if len == 0 && !matches!(source, PieceSource::File(_) | PieceSource::Blocks(_)) {
            return Self::default();
        }
        let pieces = Arc::new([Piece { at: 0, len, source, offset }]);
        Self { pieces, len, budget: Budget::unlimited() }
    }

    /// Joins `parts`, within the budget of the first that has one.
    pub fn concat<'a>(parts: impl IntoIterator<Item = &'a Content>) -> Self {
        let mut pieces = Vec::new();
        let (mut at, mut budget) = (0, Budget::unlimited());
        for part in parts {
            if !budget.has_limits() {
                budget = part.budget.clone();
            }
            for piece in part.pieces.iter().filter(|piece| piece.len > 0) {
                pieces.push(Piece { at, ..piece.clone() });
                at += piece.len;
            }
        }
        Self { pieces: pieces.into(), len: at, budget }
    }

    /// The bytes of `range`, which must lie inside.
    pub fn slice(&self, range: Range<u64>) -> Result<Self> {
        if range.start > range.end || range.end > self.len {
            let Range { start, end } = range;
            let message =
                format!("range {start:#x}..{end:#x} lies outside of {:#x} bytes", self.len);
            return Err(Error::truncated(message).at(&self.place(start.min(self.len))));
        }
        let mut pieces = Vec::new();
        for piece in self.pieces_from(range.start) {
            if piece.at >= range.end {
                break;
            }
            let start = range.start.max(piece.at);
            let end = range.end.min(piece.at + piece.len);
            if start < end {
                let offset = piece.offset + (start - piece.at);
                let at = start - range.start;
                pieces.push(Piece { at, len: end - start, source: piece.source.clone(), offset });
            }
        }
        let len = range.end - range.start;
        Ok(Self { pieces: pieces.into(), len, budget: self.budget.clone() })
    }

    /// A copy with `patch` in place of the bytes that start at `offset`.
    pub fn patched(&self, offset: u64, patch: impl Into<Vec<u8>>) -> Result<Self> {
        let patch = Self::of_bytes(patch);
        let end = offset.saturating_add(patch.len);
        Ok(Self::concat([&self.slice(0..offset)?, &patch, &self.slice(end..self.len)?]))
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        interrupt::check()?;
        let wanted = buffer.len() as u64;
        if offset.checked_add(wanted).is_none_or(|end| end > self.len) {
            let left = self.len.saturating_sub(offset);
            let message = format!("{wanted} bytes requested, {left} left");
            return Err(Error::truncated(message).at(&self.place(offset.min(self.len))));
        }
        let mut done = 0;
        for piece in self.pieces_from(offset) {
            if done == buffer.len() {
                break;
            }
            let skip = offset + done as u64 - piece.at;
            let len =
                usize::try_from(piece.len - skip).unwrap_or(usize::MAX).min(buffer.len() - done);
            piece.read(skip, &mut buffer[done..done + len])?;
            done += len;
        }
        Ok(())
    }

    pub fn read_array<const N: usize>(&self, offset: u64) -> Result<[u8; N]> {
        let mut buffer = [0; N];
        self.read_at(offset, &mut buffer)?;
        Ok(buffer)
    }

    pub fn starts_with<const N: usize>(&self, magic: &[u8; N]) -> Result<bool> {
        Ok(self.len >= N as u64 && self.read_array(0)? == *magic)
    }

    /// Reads the bytes of `range` into a buffer; refused, with the name `what`, if longer than `limit`.
    pub fn read_vec(&self, range: Range<u64>, limit: u64, what: &str) -> Result<Vec<u8>> {
        let part = self.slice(range)?;
        if part.len > limit {
            let message =
                format!("{what} of {} bytes exceeds the limit of {limit} bytes", part.len);
            return Err(Error::new(crate::error::Kind::Limit, message).at(&part.place(0)));
        }
        self.budget.check_structure(part.len, what).map_err(|e| e.at(&part.place(0)))?;
        let len = usize::try_from(part.len).map_err(|_| Error::bug("limit above usize"))?;
        let mut buffer = vec![0; len];
        part.read_at(0, &mut buffer)?;
        Ok(buffer)
    }

    pub fn is_zero(&self) -> Result<bool> {
        Ok(self.first_other_byte(0..self.len, &[0])?.is_none())
    }

    /// The offset of the first byte in `range` that is not one of `fillers`; a reversed range is empty.
    pub fn first_other_byte(&self, range: Range<u64>, fillers: &[u8]) -> Result<Option<u64>> {
        let mut at = range.start;
        let part = if range.is_empty() { Self::default() } else { self.slice(range)? };
        // Most padding is short.
        let mut window = vec![0; usize::try_from(part.len.min(4 << 10)).unwrap_or_default()];
        let mut reader = part.reader();
        loop {
            let len = reader.read_window(&mut window)?;
            let found = window[..len].iter().position(|byte| !fillers.contains(byte));
            if len == 0 || found.is_some() {
                return Ok(found.map(|index| at + index as u64));
            }
            at += len as u64;
            window.resize(64 << 10, 0);
        }
    }

    /// A reader from the first byte to the last, in windows of [`WINDOW`] bytes.
    pub fn reader(&self) -> ContentReader {
        ContentReader::new(self.clone())
    }

    /// The place in the outermost file of the byte at `offset`, for messages.
    pub fn place(&self, offset: u64) -> Place {
        let last = self.pieces.last();
        match self.pieces_from(offset).first().or(last) {
            Some(piece) => piece.place(offset.saturating_sub(piece.at)),
            None => Place::default(),
        }
    }

    /// The files that the bytes come from, in order; members of archives as `archive(member)`. Bytes that the
    /// run made itself have no file.
    pub fn files(&self) -> impl Iterator<Item = PathBuf> {
        self.pieces.iter().filter_map(|piece| piece.place(0).file)
    }

    /// Keeps files open and decoded streams of moderate size in memory until the guard is dropped, so that
    /// positioned reads need not open or decode them again.
    pub fn pin(&self) -> Result<Pinned> {
        let mut pinned = Pinned::default();
        for piece in self.pieces.iter() {
            match &piece.source {
                PieceSource::File(file) => pinned.keep_file(file.handle()?),
                _ => pinned.keep_bytes(piece.in_memory()?),
            }
        }
        Ok(pinned)
    }

    /// The pieces from the one that holds `offset` on.
    fn pieces_from(&self, offset: u64) -> &[Piece] {
        let first = self.pieces.partition_point(|piece| piece.at + piece.len <= offset);
        &self.pieces[first..]
    }
}

impl Piece {
    /// The bytes of its source, if they are in memory, or may be held there.
    fn in_memory(&self) -> Result<Option<Arc<HeldBytes>>> {
        match &self.source {
            PieceSource::Bytes(bytes) => Ok(Some(Arc::clone(bytes))),
            PieceSource::Decoded(decoded) => decoded.hold(),
            _ => Ok(None),
        }
    }

    fn read(&self, skip: u64, buffer: &mut [u8]) -> Result<()> {
        let offset = self.offset + skip;
        match &self.source {
            PieceSource::File(file) => file.read_at(offset, buffer),
            PieceSource::Decoded(decoded) => decoded.read_at(offset, buffer),
            PieceSource::Spool(file) => {
                file.read_exact_at(buffer, offset).map_err(|e| Error::io("spool file", "read", e))
            }
            PieceSource::Blocks(part) => part.read_at(offset, buffer),
            PieceSource::Zeros => {
                buffer.fill(0);
                Ok(())
            }
            PieceSource::Bytes(bytes) => {
                buffer.copy_from_slice(bytes.range(offset..offset + buffer.len() as u64)?);
                Ok(())
            }
        }
    }

    fn place(&self, skip: u64) -> Place {
        let file = match &self.source {
            PieceSource::File(file) => Some(file.path().to_path_buf()),
            PieceSource::Blocks(part) => Some(part.name.clone()),
            PieceSource::Bytes(bytes) => bytes.name.clone(),
            PieceSource::Decoded(decoded) => return decoded.place(),
            PieceSource::Spool(_) | PieceSource::Zeros => None,
        };
        let offset = file.is_some().then_some(self.offset + skip);
        Place { file, structure: None, offset }
    }
}

// Archives of kernels are read by the crate that the runtime library shares.
impl rockpack_kpack::ReadAt for Content {
    type Error = Error;

    fn len(&self) -> u64 {
        self.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.read_at(offset, buffer)
    }
}

#[cfg(test)]
mod tests;
