//! What reading and writing archives of members have in common in tar and cpio: content whose
//! length is announced before it, and padding of zeros.

use std::io::Read;

use super::compression::decoder_fault;
use crate::error::{Error, Result};

/// Whether `path`, relative to the root, stays below it and says nothing but names: no empty, `.` or
/// `..` part, no control character.
pub(super) fn is_plain(path: &str) -> bool {
    let odd = |part: &str| part.is_empty() || part == "." || part == "..";
    !path.split('/').any(odd) && !path.contains(char::is_control)
}

/// Bytes of content that the member being written still has to get.
#[derive(Debug, Default)]
pub(super) struct Announced(u64);

impl Announced {
    /// A member of `size` bytes begins; the one before has to be whole.
    pub fn begin(&mut self, size: u64) -> Result<()> {
        self.end()?;
        self.0 = size;
        Ok(())
    }

    /// `bytes` are its next ones.
    pub fn take(&mut self, bytes: &[u8]) -> Result<()> {
        let left = self.0.checked_sub(bytes.len() as u64);
        self.0 = left.ok_or_else(|| Error::bug("a member has more content than announced"))?;
        Ok(())
    }

    /// It is whole.
    pub fn end(&self) -> Result<()> {
        match self.0 {
            0 => Ok(()),
            left => Err(Error::bug(format!("a member has {left} bytes less than announced"))),
        }
    }
}

/// An archive that is read from its first byte to its last; reading gives the content of the
/// current member, as far as it was announced.
pub(super) struct MemberSource<R> {
    inner: R,
    /// What the archive is called in messages.
    archive: &'static str,
    /// Bytes read so far.
    at: u64,
    /// Bytes of the current member that are still to come.
    left: u64,
}

impl<R: Read> MemberSource<R> {
    /// Reads from the first byte on.
    pub fn new(inner: R, archive: &'static str) -> Self {
        Self { inner, archive, at: 0, left: 0 }
    }

    /// Bytes read so far.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Bytes of the current member that are still to come.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// What follows is the content of a member of `size` bytes.
    pub fn expect(&mut self, size: u64) {
        self.left = size;
    }

    /// The next bytes, which are no member's content.
    pub fn fill(&mut self, buffer: &mut [u8]) -> Result<()> {
        let structure = structure(self.archive, self.at);
        self.inner.read_exact(buffer).map_err(|e| {
            // What a decoder says about its own end has a text.
            let plain = e.kind() == std::io::ErrorKind::UnexpectedEof && e.get_ref().is_none();
            let error = if plain {
                Error::truncated("the archive ends too early")
            } else {
                decoder_fault(e)
            };
            error.structure(structure)
        })?;
        self.at += buffer.len() as u64;
        Ok(())
    }

    /// The next bytes, which are no member's content; `false` where the archive ends before them.
    pub fn fill_unless_ended(&mut self, buffer: &mut [u8]) -> Result<bool> {
        let len = self.inner.read(buffer).map_err(decoder_fault)?;
        self.at += len as u64;
        let rest = buffer.get_mut(len..).unwrap_or_default();
        if len > 0 { self.fill(rest).map(|()| true) } else { Ok(false) }
    }

    /// What is left of the current member, and the zeros behind it.
    pub fn skip(&mut self, multiple: usize) -> Result<()> {
        self.drain()?;
        self.align(multiple)
    }

    /// What is left of the current member.
    pub fn drain(&mut self) -> Result<()> {
        let mut buffer = [0; BUFFER];
        while self.left > 0 {
            self.read(&mut buffer).map_err(decoder_fault)?;
        }
        Ok(())
    }

    /// Zeros up to the next multiple of `multiple` bytes from the start of the archive.
    pub fn align(&mut self, multiple: usize) -> Result<()> {
        if self.padding(multiple)? { Ok(()) } else { Err(self.fault(PADDING)) }
    }

    /// The bytes up to the next multiple of `multiple` from the start of the archive: whether they are
    /// zeros.
    pub fn padding(&mut self, multiple: usize) -> Result<bool> {
        let over = usize::try_from(self.at % multiple as u64).unwrap_or_default();
        let mut padding = vec![0; (multiple - over) % multiple];
        self.fill(&mut padding)?;
        Ok(padding.iter().all(|byte| *byte == 0))
    }

    /// Nothing but zeros up to the end.
    pub fn zeros_to_end(&mut self) -> Result<()> {
        while let Some(is_zero) = self.rest()? {
            if !is_zero {
                return Err(self.fault(BEHIND));
            }
        }
        Ok(())
    }

    /// Some of the bytes up to the end: whether they are zeros; none at the end.
    pub fn rest(&mut self) -> Result<Option<bool>> {
        let mut buffer = [0; BUFFER];
        let len = self.inner.read(&mut buffer).map_err(decoder_fault)?;
        self.at += len as u64;
        Ok((len > 0).then(|| buffer[..len].iter().all(|byte| *byte == 0)))
    }

    /// The reader, and the bytes read from it.
    pub fn into_inner(self) -> (R, u64) {
        (self.inner, self.at)
    }

    fn fault(&self, message: &str) -> Error {
        fault(self.archive, self.at, message)
    }
}

/// The fault of bytes between members.
pub(super) const PADDING: &str = "has padding that is not zero";

/// The fault of bytes behind the end.
pub(super) const BEHIND: &str = "has data behind its end";

/// Bytes that are skipped at once.
const BUFFER: usize = 8192;

impl<R: Read> Read for MemberSource<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let len = self.inner.read(&mut buffer[..len])?;
        if len == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(self.fault("ends inside a member").into());
        }
        self.left -= len as u64;
        self.at += len as u64;
        Ok(len)
    }
}

/// What a byte of an archive is part of. Archives are compressed, so its place in the package is
/// not known.
pub(super) fn structure(archive: &str, at: u64) -> String {
    format!("{archive} at its byte {at:#x}")
}

/// An archive that does not follow its format.
pub(super) fn fault(archive: &str, at: u64, message: &str) -> Error {
    Error::malformed(message.to_owned()).structure(structure(archive, at))
}
