//! Zstd frames that follow each other, read as one stream.
//!
//! ```text
//! frame | skippable frame | frame | …    the magic of a frame is fd2fb528, of a skippable one 184d2a5?
//! ```
//!
//! A skippable frame has no content and may occur anywhere. The stream ends before the first bytes that are
//! not a magic of either kind; the caller decides about them. [`ZstdStream::unused`] counts how many of them were
//! read to detect the end.
//!
//! Source: RFC 8878, sections 3.1.1 and 3.1.2. `ZSTD_decompress` reads such streams the same way.
//!
//! Refused: a truncated frame, and windows larger than the library's limit of 128 MiB.

use std::io::{self, BufRead, Read};

use zstd::zstd_safe::{DCtx, InBuffer, OutBuffer};

use crate::zstd_frame::zstd_result;

pub(super) const FRAME_MAGIC: [u8; MAGIC_LEN] = [0x28, 0xb5, 0x2f, 0xfd];

/// The last bytes of the magic of a skippable frame; the first one is from 0x50 to 0x5f.
const SKIPPABLE_MAGIC: [u8; 3] = [0x2a, 0x4d, 0x18];

const MAGIC_LEN: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// The reader is before the magic of a frame, or before the end of the source.
    Between,
    /// The reader is inside a frame, whose magic the decoder has.
    Within,
    /// The reader is after the last frame.
    End,
}

/// Decodes the frames at the start of a source.
pub struct ZstdStream<R> {
    source: R,
    context: DCtx<'static>,
    position: Position,
    /// The bytes last read where a frame may begin.
    magic: Vec<u8>,
}

impl<R: BufRead> ZstdStream<R> {
    /// A decoder that starts at the next byte of `source`.
    pub fn new(source: R) -> io::Result<Self> {
        let context = DCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
        let magic = Vec::with_capacity(MAGIC_LEN);
        Ok(Self { source, context, position: Position::Between, magic })
    }

    /// Number of bytes read that belong to no frame; 0 until the stream has ended.
    pub fn unused(&self) -> u64 {
        if self.position == Position::End { self.magic.len() as u64 } else { 0 }
    }

    /// Checks whether a frame begins, and gives its magic to the decoder.
    fn begin(&mut self) -> io::Result<()> {
        self.magic.clear();
        self.source.by_ref().take(MAGIC_LEN as u64).read_to_end(&mut self.magic)?;
        if !begins_frame(&self.magic) {
            self.position = Position::End;
            return Ok(());
        }
        let mut input = InBuffer::around(&self.magic);
        let mut output = OutBuffer::around(&mut [][..]);
        zstd_result(self.context.decompress_stream(&mut output, &mut input))?;
        self.position = Position::Within;
        Ok(())
    }

    /// Decodes buffered input of the source into `buffer`.
    fn step(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.source.fill_buf()?;
        let is_end = bytes.is_empty();
        let (mut input, mut output) = (InBuffer::around(bytes), OutBuffer::around(buffer));
        let left = zstd_result(self.context.decompress_stream(&mut output, &mut input))?;
        let (read, written) = (input.pos(), output.pos());
        self.source.consume(read);
        if left == 0 {
            self.position = Position::Between;
        } else if is_end && written == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(written)
    }
}

/// Whether the four bytes `magic` begin a frame or a skippable frame.
pub fn begins_frame(magic: &[u8]) -> bool {
    magic == FRAME_MAGIC || matches!(magic, [0x50..=0x5f, rest @ ..] if *rest == SKIPPABLE_MAGIC)
}

impl<R: BufRead> Read for ZstdStream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match self.position {
                Position::Between => self.begin()?,
                Position::Within => match self.step(buffer)? {
                    0 => {}
                    written => return Ok(written),
                },
                Position::End => return Ok(0),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn frame(content: &[u8]) -> Vec<u8> {
        zstd::encode_all(content, 3).unwrap()
    }

    fn skippable(kind: u8, len: u32) -> Vec<u8> {
        let mut bytes = vec![0x50 | kind, 0x2a, 0x4d, 0x18];
        bytes.extend(len.to_le_bytes());
        bytes.resize(8 + len as usize, 0x28);
        bytes
    }

    /// Decodes `stream`, and returns the content and the number of bytes that it took.
    fn read(stream: &[u8], at_once: usize) -> io::Result<(Vec<u8>, usize)> {
        let mut rest = stream;
        let mut decoder = ZstdStream::new(BufReader::with_capacity(at_once, &mut rest))?;
        let mut content = Vec::new();
        decoder.read_to_end(&mut content)?;
        let unused = usize::try_from(decoder.unused()).unwrap() + decoder.source.buffer().len();
        drop(decoder);
        Ok((content, stream.len() - rest.len() - unused))
    }

    #[test]
    fn frames_in_a_row_are_one_stream() {
        let long: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        let parts = [
            skippable(0, 0),
            frame(b"first "),
            skippable(15, 5),
            skippable(3, 70_000),
            frame(b""),
            frame(&long),
            skippable(9, 1),
        ];
        let stream = parts.concat();
        let expected = [&b"first "[..], &long].concat();
        for at_once in [1, 3, 5, 4096, stream.len() + 9] {
            for behind in [&b""[..], b"\0\0\0\0\0", b"(\xb5", b"CCOB", b"\x60\x2a\x4d\x18"] {
                let (content, used) = read(&[&stream, behind].concat(), at_once).unwrap();
                assert!(content == expected, "{at_once} {behind:?}");
                assert_eq!(used, stream.len(), "{at_once} {behind:?}");
            }
        }
        assert_eq!(read(b"", 9).unwrap(), (Vec::new(), 0));
        assert_eq!(read(b"no frame", 9).unwrap(), (Vec::new(), 0));
    }

    #[test]
    fn a_frame_that_is_cut_is_an_error() {
        let parts = [frame(b"first"), skippable(1, 3), frame(b"second"), skippable(2, 2)];
        let stream = parts.concat();
        let mut ends = vec![0];
        for part in &parts {
            ends.push(ends.last().unwrap() + part.len());
        }
        for len in 0..stream.len() {
            let end = *ends.iter().rfind(|end| **end <= len).unwrap();
            // Fewer bytes than a magic may be anything.
            let expected = (len - end < MAGIC_LEN).then_some(end);
            assert_eq!(read(&stream[..len], 5).ok().map(|(_, used)| used), expected, "{len}");
        }
    }
}
