//! Reads and writes what tar and cpio archives have in common: members that state their size before their content,
//! and padding with zeros.

use std::io::{Read, Write};

use rockpack_core::compression::decoder_fault;
use rockpack_core::error::{Error, Result};

/// Writes an archive sequentially. Fails if a member's content does not have the announced size.
pub(super) struct MemberSink<W> {
    pub inner: W,
    archive: &'static str,
    /// The alignment of members, in bytes.
    multiple: usize,
    /// Bytes written so far.
    pub at: u64,
    left: u64,
}

impl<W: Write> MemberSink<W> {
    pub fn new(inner: W, archive: &'static str, multiple: usize) -> Self {
        Self { inner, archive, multiple, at: 0, left: 0 }
    }

    /// Begins a member with `size` bytes of content; the one before must be complete.
    pub fn begin(&mut self, size: u64) -> Result<()> {
        self.end()?;
        self.left = size;
        Ok(())
    }

    pub fn data(&mut self, bytes: &[u8]) -> Result<()> {
        let left = self.left.checked_sub(bytes.len() as u64);
        self.left = left.ok_or_else(|| Error::bug("a member has more content than announced"))?;
        self.put(bytes)
    }

    /// Ends the current member, which must be complete.
    pub fn end(&mut self) -> Result<()> {
        match self.left {
            0 => self.pad(),
            left => Err(Error::bug(format!("a member has {left} bytes less than announced"))),
        }
    }

    /// Pads with zeros to the alignment of members.
    pub fn pad(&mut self) -> Result<()> {
        self.put(&vec![0; padding(self.at, self.multiple)])
    }

    /// Writes bytes outside of any member's content.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.at += bytes.len() as u64;
        let archive = self.archive;
        let fault = |e| Error::io_without_path(&format!("write the {archive}"), e);
        self.inner.write_all(bytes).map_err(fault)
    }
}

/// Bytes from the offset `at` to the next multiple of `multiple`.
pub(super) fn padding(at: u64, multiple: usize) -> usize {
    let over = usize::try_from(at % multiple as u64).unwrap_or_default();
    (multiple - over) % multiple
}

/// Reads an archive sequentially. `Read` returns the content of the current member, up to its announced size.
pub(super) struct MemberSource<R> {
    inner: R,
    archive: &'static str,
    /// Bytes read so far.
    pub at: u64,
    /// Unread bytes of the current member. The caller sets it to the size of each member.
    pub left: u64,
}

impl<R: Read> MemberSource<R> {
    pub fn new(inner: R, archive: &'static str) -> Self {
        Self { inner, archive, at: 0, left: 0 }
    }

    /// Reads the next bytes, outside of any member's content.
    pub fn fill(&mut self, buffer: &mut [u8]) -> Result<()> {
        self.inner.read_exact(buffer).map_err(|e| {
            // If a decoder reports a truncated stream, its own message is kept.
            let is_plain = e.kind() == std::io::ErrorKind::UnexpectedEof && e.get_ref().is_none();
            let error = if is_plain {
                Error::truncated("the archive ends too early")
            } else {
                decoder_fault(e)
            };
            error.structure(structure(self.archive, self.at))
        })?;
        self.at += buffer.len() as u64;
        Ok(())
    }

    /// Reads the next bytes, outside of any member's content; `false` if the archive ends before them.
    pub fn fill_unless_ended(&mut self, buffer: &mut [u8]) -> Result<bool> {
        let len = self.inner.read(buffer).map_err(decoder_fault)?;
        self.at += len as u64;
        let rest = buffer.get_mut(len..).unwrap_or_default();
        if len > 0 { self.fill(rest).map(|()| true) } else { Ok(false) }
    }

    /// Skips the rest of the current member.
    pub fn drain(&mut self) -> Result<()> {
        let mut buffer = [0; BUFFER];
        while self.left > 0 {
            self.read(&mut buffer).map_err(decoder_fault)?;
        }
        Ok(())
    }

    /// Skips padding up to the next multiple of `multiple` in the archive; fails if it is not all zeros.
    pub fn align(&mut self, multiple: usize) -> Result<()> {
        let is_zero = self.skip_padding(multiple)?;
        is_zero.then_some(()).ok_or_else(|| fault(self.archive, self.at, PADDING))
    }

    /// Skips padding up to the next multiple of `multiple` in the archive, and returns whether it is all zeros.
    pub fn skip_padding(&mut self, multiple: usize) -> Result<bool> {
        let mut buffer = [0; BUFFER];
        let zeros = &mut buffer[..padding(self.at, multiple)];
        self.fill(zeros)?;
        Ok(zeros.iter().fold(0, |all, byte| all | byte) == 0)
    }

    /// Reads some of the bytes after the last member, and returns whether they are zeros; `None` at the end.
    pub fn rest(&mut self) -> Result<Option<bool>> {
        let mut buffer = [0; BUFFER];
        let len = self.inner.read(&mut buffer).map_err(decoder_fault)?;
        self.at += len as u64;
        Ok((len > 0).then(|| buffer[..len].iter().all(|byte| *byte == 0)))
    }

    /// Returns the reader, and the number of bytes read from it.
    pub fn into_inner(self) -> (R, u64) {
        (self.inner, self.at)
    }
}

pub(super) const PADDING: &str = "has padding that is not zero";

/// Bytes that are skipped per read: more than any padding, but few, because most files are small.
const BUFFER: usize = 1024;

impl<R: Read> Read for MemberSource<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let len = self.inner.read(&mut buffer[..len])?;
        if len == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(fault(self.archive, self.at, "ends inside a member").into());
        }
        self.left -= len as u64;
        self.at += len as u64;
        Ok(len)
    }
}

/// Names a byte of the uncompressed archive in an error; the offset in the compressed package is unknown.
pub(super) fn structure(archive: &str, at: u64) -> String {
    format!("{archive} at its byte {at:#x}")
}

pub(super) fn fault(archive: &str, at: u64, message: &str) -> Error {
    Error::malformed(message.to_owned()).structure(structure(archive, at))
}
