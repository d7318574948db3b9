//! Comparison and digests of content, and digests as text.

use std::io::{self, Read, Write};

use derive_more::{Display, From};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Content, WINDOW};
use crate::error::{Error, Result};
use crate::run::interrupt;

impl Content {
    pub fn sha256(&self) -> Result<[u8; 32]> {
        let mut digest = Sha256::new();
        self.each_window(|bytes| digest.update(bytes))?;
        Ok(digest.finalize().into())
    }

    /// The SHA-256 of all bytes, as a value that is read and written in hex.
    pub fn digest(&self) -> Result<Sha256Digest> {
        Ok(self.sha256()?.into())
    }

    /// Calls `take` with all bytes from the first to the last, in windows of up to [`WINDOW`] bytes.
    pub fn each_window(&self, mut take: impl FnMut(&[u8])) -> Result<()> {
        self.try_each_window(|bytes| {
            take(bytes);
            Ok(())
        })
    }

    /// Calls `take` as [`Content::each_window`] does, up to the first error.
    pub fn try_each_window(&self, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut window = Vec::new();
        for piece in self.pieces.iter() {
            let end = piece.offset + piece.len;
            if let Some(held) = piece.in_memory()? {
                for window in held.range(piece.offset..end)?.chunks(WINDOW) {
                    interrupt::check()?;
                    take(window)?;
                }
                continue;
            }
            let mut reader = self.slice(piece.at..piece.at + piece.len)?.reader();
            if window.is_empty() {
                window = self.window();
            }
            while let len @ 1.. = reader.read_window(&mut window)? {
                take(&window[..len])?;
            }
        }
        Ok(())
    }

    /// Whether `other` holds the same bytes; both are read at most once.
    pub fn same_bytes(&self, other: &Content) -> Result<bool> {
        if self.len() != other.len() {
            return Ok(false);
        }
        let (mut left, mut right) = (self.reader(), other.reader());
        let (mut one, mut another) = (self.window(), other.window());
        loop {
            let len = left.read_window(&mut one)?;
            if right.read_window(&mut another)? != len {
                return Err(Error::bug("contents of one length ended apart"));
            }
            if one[..len] != another[..len] {
                return Ok(false);
            }
            if len == 0 {
                return Ok(true);
            }
        }
    }

    /// A buffer for reading, no longer than the content: short content is common.
    fn window(&self) -> Vec<u8> {
        vec![0; usize::try_from(self.len()).unwrap_or(WINDOW).min(WINDOW)]
    }
}

/// A SHA-256. As text, and in JSON, it is 64 lowercase hexadecimal digits.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Display, From, Serialize, Deserialize,
)]
#[display("{}", hex(_0))]
#[serde(try_from = "String", into = "String")]
pub struct Sha256Digest([u8; 32]);

impl From<Sha256Digest> for String {
    fn from(digest: Sha256Digest) -> Self {
        hex(&digest.0)
    }
}

impl TryFrom<String> for Sha256Digest {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        let bytes = unhex(&text).filter(|bytes| hex(bytes) == text);
        bytes.map(Self).ok_or_else(|| {
            Error::malformed(format!("`{}` is not a SHA-256 in hexadecimal", text.escape_debug()))
        })
    }
}

/// A reader that digests the bytes read through it.
pub struct DigestingReader<R, D> {
    pub source: R,
    /// The digest of the bytes read so far.
    pub digest: D,
}

impl<R, D: Digest> DigestingReader<R, D> {
    pub fn new(source: R) -> Self {
        Self { source, digest: D::new() }
    }
}

impl<R: Read, D: Digest> Read for DigestingReader<R, D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.source.read(buffer)?;
        self.digest.update(&buffer[..len]);
        Ok(len)
    }
}

/// A writer that digests and counts the bytes written through it.
pub struct DigestingWriter<W, D> {
    pub sink: W,
    /// The digest of the bytes written so far.
    pub digest: D,
    pub len: u64,
}

impl<W, D: Digest> DigestingWriter<W, D> {
    pub fn new(sink: W) -> Self {
        Self { sink, digest: D::new(), len: 0 }
    }
}

impl<W: Write, D: Digest> Write for DigestingWriter<W, D> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let len = self.sink.write(buffer)?;
        self.digest.update(&buffer[..len]);
        self.len += len as u64;
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// The lower-case hexadecimal form of `bytes`.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(2 * bytes.len());
    for digit in bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]) {
        text.push(char::from(DIGITS[usize::from(digit)]));
    }
    text
}

/// The `N` bytes whose hexadecimal form is `text`.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != N * 2 {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        *byte = u8::try_from(high << 4 | low).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_compared_byte_for_byte() {
        let text = vec![7; WINDOW + 1];
        let mut other = text.clone();
        let content = Content::of_bytes(text);
        assert!(content.same_bytes(&Content::of_bytes(other.clone())).unwrap());
        other[WINDOW] = 8;
        assert!(!content.same_bytes(&Content::of_bytes(other)).unwrap());
        assert!(!content.same_bytes(&Content::of_bytes([7])).unwrap());
        assert!(Content::default().same_bytes(&Content::default()).unwrap());
    }

    #[test]
    fn the_digest_is_fips_180s() {
        let digest = Content::of_bytes(*b"abc").digest().unwrap().to_string();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest, expected);
        // The standard's long message, a million times "a", in pieces that end inside a window.
        let part = Content::of_bytes(vec![b'a'; 250_000]);
        let digest = Content::concat([&part; 4]).digest().unwrap().to_string();
        let expected = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
        assert_eq!(digest, expected);
    }

    #[test]
    fn a_digest_is_read_as_it_is_written() {
        let digest = Content::of_bytes(*b"abc").digest().unwrap();
        let text = serde_json::to_string(&digest).unwrap();
        assert_eq!(serde_json::from_str::<Sha256Digest>(&text).unwrap(), digest);
        for bad in [text.to_uppercase(), text.replace("ba78", "ba7"), text.replace("ba78", "xa78")]
        {
            let fault = serde_json::from_str::<Sha256Digest>(&bad).unwrap_err().to_string();
            assert!(fault.contains("is not a SHA-256 in hexadecimal"), "{fault}");
        }
    }

    #[test]
    fn hexadecimal_goes_both_ways_and_refuses_the_rest() {
        assert_eq!(hex(&[0, 0xaf, 0x10]), "00af10");
        assert_eq!(unhex::<3>("00af10"), Some([0, 0xaf, 0x10]));
        for bad in ["00af1", "00af1g", "00af1000", "é0af1"] {
            assert_eq!(unhex::<3>(bad), None, "{bad}");
        }
    }
}
