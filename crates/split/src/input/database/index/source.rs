//! The bytes of an index, inflated if it is compressed.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::ZlibDecoder;
use rockpack_core::content::{Content, ContentReader, WINDOW};
use rockpack_core::error::Result;
use rockpack_core::run::interrupt;
use rockpack_elf::message_pack_stream::{Skip, fault};

/// Most bytes of an inflated index. The longest MessagePack values have less, and the largest known index has
/// a tenth of it.
const INFLATED_LIMIT: u64 = 4 << 30;

/// The bytes of an index.
pub(super) enum Source {
    Plain(BufReader<ContentReader>),
    Inflated(BufReader<Inflated>),
}

impl Source {
    pub(super) fn open(content: &Content) -> io::Result<Self> {
        let reader = BufReader::with_capacity(WINDOW, content.reader());
        Ok(if is_zlib(content)? {
            let inflated = Inflated { decoder: ZlibDecoder::new(reader), len: 0 };
            Self::Inflated(BufReader::with_capacity(WINDOW, inflated))
        } else {
            Self::Plain(reader)
        })
    }

    /// Fails unless everything was read.
    pub(super) fn end(self) -> io::Result<()> {
        match self {
            Self::Plain(mut reader) => match reader.fill_buf()? {
                [] => Ok(()),
                _ => Err(fault("more follows its value")),
            },
            Self::Inflated(mut reader) => {
                if !reader.fill_buf()?.is_empty() {
                    return Err(fault("more follows its value"));
                }
                // Libraries refuse such a file.
                match reader.into_inner().decoder.into_inner().fill_buf()? {
                    [] => Ok(()),
                    _ => Err(fault("more follows its zlib stream")),
                }
            }
        }
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(reader) => reader.read(buffer),
            Self::Inflated(reader) => reader.read(buffer),
        }
    }

    // Millions of numbers and texts are read: a reader with a buffer copies them in one step.
    fn read_exact(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Plain(reader) => reader.read_exact(buffer),
            Self::Inflated(reader) => reader.read_exact(buffer),
        }
    }
}

impl Skip for Source {
    fn skip(&mut self, len: u64) -> io::Result<()> {
        match self {
            Self::Plain(reader) => reader.skip(len),
            Self::Inflated(reader) => match io::copy(&mut reader.take(len), &mut io::sink())? {
                copied if copied == len => Ok(()),
                _ => Err(io::ErrorKind::UnexpectedEof.into()),
            },
        }
    }
}

/// An inflated stream up to [`INFLATED_LIMIT`].
pub(super) struct Inflated {
    decoder: ZlibDecoder<BufReader<ContentReader>>,
    len: u64,
}

impl Read for Inflated {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // A few bytes of a file may inflate to very many.
        interrupt::check()?;
        let len = self.decoder.read(buffer)?;
        self.len = self.len.saturating_add(len as u64);
        if self.len > INFLATED_LIMIT {
            return Err(fault(format!("it inflates to more than {INFLATED_LIMIT} bytes")));
        }
        Ok(len)
    }
}

/// Tells whether the content starts with the header of a zlib stream. As MessagePack, its first byte would be
/// a single number.
pub fn is_zlib(content: &Content) -> Result<bool> {
    if content.len() < 2 {
        return Ok(false);
    }
    let header: [u8; 2] = content.read_array(0)?;
    Ok(header[0] == 0x78 && u16::from_be_bytes(header).is_multiple_of(31))
}
