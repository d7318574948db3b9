//! A reader of MessagePack, token by token. It holds no more of a value than its caller asks for.
//!
//! A token is a first byte with what belongs to it: a number, or the length of what follows. Lengths
//! have up to 32 bits, big-endian. Source: the specification of MessagePack.
//!
//! | first byte | token | length |
//! |---|---|---|
//! | 00–7f, e0–ff, cc–d3 | integer | in the byte, or 1 to 8 bytes behind it |
//! | 80–8f, de, df | map: number of keys, each followed by its value | 4, 16, 32 bits |
//! | 90–9f, dc, dd | array: number of values | 4, 16, 32 bits |
//! | a0–bf, d9, da, db | text: number of bytes | 5, 8, 16, 32 bits |
//! | c4, c5, c6 | binary data: number of bytes | 8, 16, 32 bits |
//! | c7–c9, d4–d8 | extension: number of bytes behind a type of one byte | 8, 16, 32 bits; 1 to 16 bytes |
//! | c0, c2, c3, ca, cb | nil, false, true, numbers with a fraction | 0, 0, 0, 4, 8 bytes |
//!
//! Refused: the byte c1, which begins nothing, and an end inside a value.

use std::io::{self, BufRead, BufReader, Read};

use rockpack_core::content::ContentReader;

/// A value of a stream, or its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// An integer.
    Integer(i128),
    /// A text: its length in bytes, which follow.
    Text(u32),
    /// Binary data: its length in bytes, which follow.
    Binary(u32),
    /// An array: its number of values, which follow.
    Array(u32),
    /// A map: its number of pairs of key and value, which follow.
    Map(u32),
    /// Nil, true or false, a number with a fraction, or an extension, read to its end.
    Other,
}

/// A source that can skip bytes.
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

/// Reads a stream token by token.
pub struct TokenReader<R> {
    source: R,
    position: u64,
}

impl<R: Skip> TokenReader<R> {
    /// A reader at the first token of `source`.
    pub fn new(source: R) -> Self {
        Self { source, position: 0 }
    }

    /// The number of bytes read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the source, behind the last token.
    pub fn into_source(self) -> R {
        self.source
    }

    /// Reads the next token.
    pub fn token(&mut self) -> io::Result<Token> {
        let [first] = self.bytes()?;
        Ok(match first {
            0x00..=0x7f => Token::Integer(first.into()),
            0x80..=0x8f => Token::Map(u32::from(first & 0x0f)),
            0x90..=0x9f => Token::Array(u32::from(first & 0x0f)),
            0xa0..=0xbf => Token::Text(u32::from(first & 0x1f)),
            0xc0 | 0xc2 | 0xc3 => Token::Other,
            0xc1 => {
                let at = self.position - 1;
                return Err(fault(format!("the byte 0xc1 at {at} begins no value")));
            }
            0xc4..=0xc6 => Token::Binary(self.length(first - 0xc4)?),
            // The type of an extension takes one more byte.
            0xc7..=0xc9 => {
                let len = self.length(first - 0xc7)?;
                self.other(u64::from(len) + 1)?
            }
            0xca => self.other(4)?,
            0xcb => self.other(8)?,
            0xcc => Token::Integer(u8::from_be_bytes(self.bytes()?).into()),
            0xcd => Token::Integer(u16::from_be_bytes(self.bytes()?).into()),
            0xce => Token::Integer(u32::from_be_bytes(self.bytes()?).into()),
            0xcf => Token::Integer(u64::from_be_bytes(self.bytes()?).into()),
            0xd0 => Token::Integer(i8::from_be_bytes(self.bytes()?).into()),
            0xd1 => Token::Integer(i16::from_be_bytes(self.bytes()?).into()),
            0xd2 => Token::Integer(i32::from_be_bytes(self.bytes()?).into()),
            0xd3 => Token::Integer(i64::from_be_bytes(self.bytes()?).into()),
            0xd4..=0xd8 => self.other((1 << (first - 0xd4)) + 1)?,
            0xd9..=0xdb => Token::Text(self.length(first - 0xd9)?),
            0xdc | 0xdd => Token::Array(self.length(first - 0xdb)?),
            0xde | 0xdf => Token::Map(self.length(first - 0xdd)?),
            0xe0..=0xff => Token::Integer(i8::from_be_bytes([first]).into()),
        })
    }

    /// Fills `buffer`.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        self.source.read_exact(buffer).map_err(ended)?;
        self.position += buffer.len() as u64;
        Ok(())
    }

    /// Skips `len` bytes.
    pub fn skip(&mut self, len: u64) -> io::Result<()> {
        self.source.skip(len).map_err(ended)?;
        self.position = self.position.saturating_add(len);
        Ok(())
    }

    /// Skips a value with everything in it, however deep.
    pub fn skip_value(&mut self) -> io::Result<()> {
        let mut left: u64 = 1;
        while left > 0 {
            left -= 1;
            match self.token()? {
                Token::Text(len) | Token::Binary(len) => self.skip(len.into())?,
                Token::Array(len) => left = left.saturating_add(len.into()),
                Token::Map(len) => left = left.saturating_add(u64::from(len) * 2),
                Token::Integer(_) | Token::Other => {}
            }
        }
        Ok(())
    }

    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.read(&mut bytes)?;
        Ok(bytes)
    }

    fn other(&mut self, len: u64) -> io::Result<Token> {
        self.skip(len)?;
        Ok(Token::Other)
    }

    /// Reads a length of `1 << log` bytes, at most 4.
    fn length(&mut self, log: u8) -> io::Result<u32> {
        let mut length = [0; 4];
        self.read(&mut length[4 - (1 << log)..])?;
        Ok(u32::from_be_bytes(length))
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
