//! Sequential reading of content, and writing it into a file without passing it through memory where possible.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use rustix::io::Errno;

use super::{Content, Piece, PieceSource, Pinned};
use crate::error::{Error, Result};
use crate::run::{Budget, interrupt};

/// Size of the windows in which content is read, in bytes.
pub const WINDOW: usize = 256 << 10;

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
    _pinned: Pinned,
    stream: Option<Box<dyn Read + Send>>,
}

impl ContentReader {
    pub(super) fn new(content: Content) -> Self {
        Self { content, position: 0, open: None }
    }

    pub fn position(&self) -> u64 {
        self.position
    }

    /// Fills `buffer` as far as content is left, and returns the filled length.
    pub fn read_window(&mut self, buffer: &mut [u8]) -> Result<usize> {
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

    fn read_some(&mut self, buffer: &mut [u8]) -> Result<usize> {
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
fn open_piece(piece: &Piece, index: usize, skip: u64) -> Result<OpenPiece> {
    let mut pinned = Pinned::default();
    let mut stream = None;
    match &piece.source {
        PieceSource::File(file) if file.is_known(piece.offset + piece.len) => {}
        PieceSource::File(file) => pinned.keep_file(file.handle()?),
        PieceSource::Decoded(decoded) => match decoded.hold()? {
            Some(bytes) => pinned.keep_bytes(Some(bytes)),
            None => stream = Some(decoded.reader_at(piece.offset + skip)?),
        },
        _ => {}
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

/// Bytes that the kernel copies between two checks for an interruption.
const COPIED_AT_ONCE: usize = 64 << 20;

impl Content {
    /// Writes all bytes to `file`, which is at `path`, from its current position on.
    ///
    /// The kernel copies ranges of input files, and shares their blocks where the file system can.
    pub fn write_to(&self, file: &mut File, path: &Path) -> Result<()> {
        for piece in self.pieces.iter() {
            let copied = match &piece.source {
                PieceSource::File(input) => copy_range(&*input.handle()?, piece, file)?,
                _ => 0,
            };
            if copied < piece.len {
                let (len, offset) = (piece.len - copied, piece.offset + copied);
                let rest = [Piece { at: 0, len, offset, ..piece.clone() }];
                let rest = Self { pieces: rest.into(), len, budget: Budget::unlimited() };
                rest.try_each_window(|bytes| {
                    file.write_all(bytes).map_err(|e| Error::io(path, "write", e))
                })?;
            }
        }
        Ok(())
    }
}

/// Lets the kernel copy, and returns the number of bytes copied. The rest is left if the kernel cannot copy
/// between these files, the input became shorter, or an operation failed; the caller's own reading and
/// writing of the rest reports the reason.
fn copy_range(input: &File, piece: &Piece, file: &File) -> Result<u64> {
    let mut at = piece.offset;
    let end = piece.offset + piece.len;
    while at < end {
        interrupt::check()?;
        let len = usize::try_from(end - at).unwrap_or(COPIED_AT_ONCE).min(COPIED_AT_ONCE);
        match rustix::fs::copy_file_range(input, Some(&mut at), file, None, len) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    Ok(at - piece.offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_piece_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        std::fs::write(&from, b"0123456789").unwrap();
        let input = Content::open(&from, &Budget::unlimited()).unwrap();
        let parts = [input.slice(2..9).unwrap(), Content::of_bytes(*b"abc"), Content::zeros(3)];
        let content = Content::concat(&parts);
        let mut file = File::create(&to).unwrap();
        content.write_to(&mut file, &to).unwrap();
        content.slice(1..8).unwrap().write_to(&mut file, &to).unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), b"2345678abc\0\0\x00345678a");
    }

    #[test]
    fn an_input_that_became_shorter_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        std::fs::write(&from, b"0123456789").unwrap();
        let content = Content::open(&from, &Budget::unlimited()).unwrap();
        let _open = content.pin().unwrap();
        std::fs::write(&from, b"01234").unwrap();
        let mut file = File::create(&to).unwrap();
        assert!(content.write_to(&mut file, &to).is_err());
    }
}
