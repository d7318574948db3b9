//! Compressed offload bundles (CCOB), decoded a second way.
//!
//! The payload is decoded as `clang-offload-bundler` and the HIP runtime do it, which hand all of it to
//! `ZSTD_decompress`: any number of zstd frames form one stream, and skippable frames add
//! nothing to it. Version 1 does not say how long the payload is: it ends behind the last
//! frame. Source: LLVM's `CompressedOffloadBundle`; the frames of RFC 8878.
//!
//! Refused: other versions and methods, streams that are not as long as the header says, and bytes behind
//! the last frame within the total size.

use std::io::{self, BufReader, Read};

use flate2::bufread::ZlibDecoder;
use rockpack_core::content::{Content, ContentReader};
use rockpack_core::error::{Error, Result};
use rockpack_core::hold::{fault, hold};
use zstd::stream::read::Decoder;

use super::embedded::{ZSTD_MAGIC, array, is_skippable};

/// Compressed bytes that are read at once.
const READ_AHEAD: usize = 64 << 10;

/// Decodes the compressed bundle at the start of `bundle`; how far header and stream reach.
pub(crate) fn read(bundle: &Content) -> Result<(Content, u64)> {
    let fields = CompressedHeader::read(bundle)?;
    let end = fields.total.unwrap_or(bundle.len());
    if end < fields.header {
        return Err(malformed(bundle, "is shorter than its header"));
    }
    let payload = bundle.slice(fields.header..end)?;
    let (decoded, used) = fields.decode(&payload).map_err(|error| error.at(&bundle.place(0)))?;
    if fields.total.is_some() && used < payload.len() {
        return Err(malformed(bundle, "has bytes behind its compressed stream"));
    }
    Ok((decoded, fields.header.saturating_add(used)))
}

fn malformed(bundle: &Content, message: &str) -> Error {
    Error::malformed(message).at(&bundle.place(0))
}

/// The fields of a compressed bundle's header.
pub(super) struct CompressedHeader {
    pub(super) method: u16,
    /// Bytes of the header.
    pub(super) header: u64,
    /// Bytes of header and stream, where they are stated.
    pub(super) total: Option<u64>,
    /// Bytes of the bundle inside.
    size: u64,
}

impl CompressedHeader {
    pub(super) fn read(bundle: &Content) -> Result<Self> {
        let [v0, v1, m0, m1] = bundle.read_array(4)?;
        let (version, method) = (u16::from_le_bytes([v0, v1]), u16::from_le_bytes([m0, m1]));
        let (header, total, size) = match version {
            1 => (20, None, read_u32(bundle, 8)?),
            2 => (24, Some(read_u32(bundle, 8)?), read_u32(bundle, 12)?),
            3 => (32, Some(read_u64(bundle, 8)?), read_u64(bundle, 16)?),
            _ => {
                let message = format!("CCOB version {version} is not known");
                return Err(Error::unsupported(message).at(&bundle.place(4)));
            }
        };
        Ok(Self { method, header, total, size })
    }

    /// The decoded bytes of `payload`, and how many of its own they took.
    fn decode(&self, payload: &Content) -> Result<(Content, u64)> {
        match self.method {
            0 => {
                let input = BufReader::with_capacity(READ_AHEAD, payload.reader());
                let mut decoder = ZlibDecoder::new(input);
                Ok((hold(&mut decoder, self.size)?, decoder.total_in()))
            }
            1 => {
                let mut frames = Frames { payload: payload.clone(), at: 0, frame: None };
                Ok((hold(&mut frames, self.size)?, frames.at))
            }
            method => Err(Error::unsupported(format!("CCOB method {method} is not known"))),
        }
    }
}

fn read_u32(bundle: &Content, at: u64) -> Result<u64> {
    bundle.read_array(at).map(|bytes| u64::from(u32::from_le_bytes(bytes)))
}

fn read_u64(bundle: &Content, at: u64) -> Result<u64> {
    bundle.read_array(at).map(u64::from_le_bytes)
}

type FrameDecoder = Decoder<'static, BufReader<CountingReader>>;

/// Reads zstd frames, one after the other.
struct Frames {
    payload: Content,
    /// The offset of the current frame, or of the end of the last one.
    at: u64,
    frame: Option<FrameDecoder>,
}

impl Frames {
    /// The next frame that has content; none where no frame begins.
    fn next(&mut self) -> Result<Option<FrameDecoder>> {
        while let Some(magic) = array::<4>(&self.payload, self.at)? {
            if magic == ZSTD_MAGIC {
                let inner = self.payload.slice(self.at..self.payload.len())?.reader();
                let input =
                    BufReader::with_capacity(READ_AHEAD, CountingReader { inner, count: 0 });
                return Ok(Some(Decoder::with_buffer(input).map_err(fault)?.single_frame()));
            }
            if !is_skippable(magic) {
                break;
            }
            let size = u32::from_le_bytes(self.payload.read_array(self.at.saturating_add(4))?);
            let end = self.at.saturating_add(8).saturating_add(size.into());
            if end > self.payload.len() {
                return Err(Error::truncated("ends within a skippable frame"));
            }
            self.at = end;
        }
        Ok(None)
    }
}

impl Read for Frames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.frame.is_none() {
                self.frame = self.next().map_err(io::Error::from)?;
            }
            let Some(frame) = &mut self.frame else { return Ok(0) };
            let len = frame.read(buffer)?;
            if len > 0 || buffer.is_empty() {
                return Ok(len);
            }
            if let Some(frame) = self.frame.take() {
                let input = frame.finish();
                let ahead = input.buffer().len() as u64;
                self.at = self.at.saturating_add(input.get_ref().count).saturating_sub(ahead);
            }
        }
    }
}

/// Counts what is read through it.
struct CountingReader {
    inner: ContentReader,
    count: u64,
}

impl Read for CountingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(buffer)?;
        self.count += len as u64;
        Ok(len)
    }
}
