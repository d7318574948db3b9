//! Sequential reading of content.

use std::io::{self, Read};

use super::{Content, Piece, PieceSource};
use crate::error::Error;
use crate::run::interrupt;

/// Size of the windows in which content is read, in bytes.
pub const WINDOW: usize = 1 << 20;

/// Reads a [`Content`] from its first byte to its last.
///
/// Errors are this crate's own, carried inside [`io::Error`]; see [`Error::from_io`].
pub struct ContentReader {
    content: Content,
    position: u64,
    /// The current piece, kept open until the position leaves it.
    open: Option<OpenPiece>,
}

struct OpenPiece {
    index: usize,
    _pinned: super::Pinned,
    stream: Option<Box<dyn Read + Send>>,
}

impl ContentReader {
    pub(super) fn new(content: Content) -> Self {
        Self { content, position: 0, open: None }
    }

    /// Fills `buffer` as far as content is left, and returns the filled length.
    pub fn read_window(&mut self, buffer: &mut [u8]) -> crate::error::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.read_some(&mut buffer[done..])? {
                0 => break,
                len => done += len,
            }
        }
        Ok(done)
    }

    /// Skips `len` bytes, as far as content is left, and returns how many.
    pub fn skip(&mut self, len: u64) -> io::Result<u64> {
        let len = len.min(self.content.len() - self.position);
        // An open decoder goes on: a new one would decode everything before this position again.
        if self.open.as_ref().is_some_and(|open| open.stream.is_some()) {
            return io::copy(&mut self.take(len), &mut io::sink());
        }
        self.position += len;
        Ok(len)
    }

    fn read_some(&mut self, buffer: &mut [u8]) -> crate::error::Result<usize> {
        interrupt::check()?;
        let index = self.content.pieces.partition_point(|p| p.at + p.len <= self.position);
        let Some(piece) = self.content.pieces.get(index).cloned() else {
            return Ok(0);
        };
        if self.open.as_ref().is_none_or(|open| open.index != index) {
            self.open = Some(open_piece(&piece, index, self.position - piece.at)?);
        }
        let skip = self.position - piece.at;
        let len = usize::try_from(piece.len - skip).unwrap_or(usize::MAX).min(buffer.len());
        let stream = self.open.as_mut().and_then(|open| open.stream.as_mut());
        match (stream, &piece.source) {
            (Some(stream), PieceSource::Decoded(decoded)) => {
                stream.read_exact(&mut buffer[..len]).map_err(|e| decoded.fault(e))?;
            }
            _ => piece.read(skip, &mut buffer[..len])?,
        }
        self.position += len as u64;
        Ok(len)
    }
}

/// Pins the piece, or opens a stream where the decoded bytes are too many to pin.
fn open_piece(piece: &Piece, index: usize, skip: u64) -> crate::error::Result<OpenPiece> {
    let mut pinned = super::Pinned::default();
    let mut stream = None;
    match &piece.source {
        PieceSource::File(file) => pinned.keep_file(file.handle()?),
        PieceSource::Decoded(decoded) => match decoded.hold()? {
            Some(bytes) => pinned.keep_bytes(Some(bytes)),
            None => stream = Some(decoded.reader_at(piece.offset + skip)?),
        },
        PieceSource::Bytes(_)
        | PieceSource::Spool(_)
        | PieceSource::Blocks(_)
        | PieceSource::Zeros => {}
    }
    Ok(OpenPiece { index, _pinned: pinned, stream })
}

impl Read for ContentReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        self.read_some(buffer).map_err(|error: Error| error.into())
    }
}
