//! A reader of MessagePack, token by token. It holds only the part of a value that its caller asks for.
//!
//! [`rockpack_kpack::message_pack`] decodes the tokens, from a source whose length is unknown.
//!
//! Refused: the byte c1, which begins no value, and an end inside a value.

use std::io::{self, BufRead, BufReader, Read};

use rockpack_core::content::ContentReader;
pub use rockpack_kpack::message_pack::Item as Token;
use rockpack_kpack::message_pack::{Decoder, Fault, Input};

pub trait Skip: Read {
    /// Skips `len` bytes; fails if fewer are left.
    fn skip(&mut self, len: u64) -> io::Result<()>;
}

impl Skip for BufReader<ContentReader> {
    fn skip(&mut self, len: u64) -> io::Result<()> {
        let buffered = self.buffer().len();
        match usize::try_from(len) {
            Ok(len) if len <= buffered => self.consume(len),
            _ => {
                self.consume(buffered);
                let left = len - buffered as u64;
                if self.get_mut().skip(left)? < left {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
        Ok(())
    }
}

pub struct TokenReader<R>(Decoder<Stream<R>>);

/// A source, and the number of bytes read.
struct Stream<R> {
    source: R,
    position: u64,
}

impl<R: Skip> Input for Stream<R> {
    type Error = io::Error;

    fn left(&self) -> u64 {
        u64::MAX
    }

    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        self.source.read_exact(buffer).map_err(ended)?;
        self.position += buffer.len() as u64;
        Ok(())
    }

    fn skip(&mut self, count: u64) -> io::Result<()> {
        self.source.skip(count).map_err(ended)?;
        self.position = self.position.saturating_add(count);
        Ok(())
    }
}

impl<R: Skip> TokenReader<R> {
    /// A reader at the first token of `source`.
    pub fn new(source: R) -> Self {
        Self(Decoder::new(Stream { source, position: 0 }))
    }

    pub fn position(&self) -> u64 {
        self.0.input.position
    }

    /// Returns the source, positioned after the last token.
    pub fn into_source(self) -> R {
        self.0.input.source
    }

    /// Reads the next token; [`Token::Other`] to its end.
    pub fn token(&mut self) -> io::Result<Token> {
        let token = self.0.item();
        if let Ok(Token::Other(len @ 1..)) = token {
            self.skip(len)?;
        }
        token.map_err(|why| self.fault(why))
    }

    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        self.0.input.fill(buffer)
    }

    pub fn skip(&mut self, len: u64) -> io::Result<()> {
        self.0.input.skip(len)
    }

    /// Skips a value with everything in it, however deep.
    pub fn skip_value(&mut self) -> io::Result<()> {
        let skipped = self.0.skip();
        skipped.map_err(|why| self.fault(why))
    }

    fn fault(&self, why: Fault<io::Error>) -> io::Error {
        match why {
            Fault::Read(error) => error,
            Fault::Invalid(byte) => {
                let at = self.position() - 1;
                fault(format!("the byte {byte:#04x} at {at} begins no value"))
            }
            // The end of the source is unknown until it is read, and nothing is reserved.
            Fault::Truncated | Fault::OutOfMemory => ended(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Makes an error for invalid data in the stream.
pub fn fault(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.into())
}

fn ended(error: io::Error) -> io::Error {
    // The end that a decoder of the source reports has a text of its own.
    match error.kind() {
        io::ErrorKind::UnexpectedEof if error.get_ref().is_none() => {
            fault("it ends in the middle of a value")
        }
        _ => error,
    }
}

#[cfg(test)]
#[path = "message_pack_stream_tests.rs"]
mod tests;
