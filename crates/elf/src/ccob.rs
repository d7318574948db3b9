//! Compressed offload bundle.
//!
//! ```text
//! 4 bytes "CCOB" | u16 version | u16 method (0 zlib, 1 zstd)
//! v1: u32 uncompressed size | u64 hash                    20 bytes; ends where its stream ends
//! v2: u32 total size | u32 uncompressed size | u64 hash   24 bytes
//! v3: u64 total size | u64 uncompressed size | u64 hash   32 bytes
//! then the compressed stream of one offload bundle: a zlib stream, or zstd frames
//! ```
//!
//! The total size includes the header. The hash is the first 8 bytes of the MD5 of the
//! uncompressed bundle, in their order (LLVM reads them as one little-endian number); that holds
//! for clang-offload-bundler 19 and for the sources of LLVM that write any of the versions.
//!
//! LLVM, and so the HIP runtime, passes everything after the header to `ZSTD_decompress`: several frames are
//! one stream, and skippable frames may occur between them. The stream of version 1 ends where no frame
//! begins.
//!
//! Source: LLVM's `CompressedOffloadBundle`; files of clang-offload-bundler 19.
//!
//! Refused: other versions and methods, sizes that are not exactly those of the stream, a wrong hash.
//! [`open`] decodes the whole stream once to check all that, and trusts no size before.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use flate2::bufread::ZlibDecoder;
use flate2::write::ZlibEncoder;
use md5::{Digest, Md5};

use rockpack_core::compression::{Compression, Encoder, LongMatches, WINDOW_LOG_MAX, Workers};
use rockpack_core::content::{Content, DigestingReader, HeldBytes, Pinned, StreamSource};
use rockpack_core::error::{Error, Kind, Place, Result};
use rockpack_core::zstd_stream::ZstdStream;

/// The first bytes of every compressed bundle.
pub const MAGIC: &[u8; 4] = b"CCOB";

/// Longest decoded bundle in bytes: four times the maximum of version 2. Limits the work that a stream of a
/// few kilobytes can cause.
pub const DECODED_LIMIT: u64 = 16 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CcobMethod {
    /// 0: a zlib stream.
    Zlib,
    /// 1: zstd frames.
    Zstd,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CcobHeader {
    pub version: u16,
    pub len: u64,
    pub method: CcobMethod,
    /// Bytes of header and stream; absent in version 1.
    pub total_size: Option<u64>,
    pub uncompressed_size: u64,
    /// First 8 bytes of the uncompressed bundle's MD5.
    pub hash: [u8; 8],
}

/// A compressed bundle whose stream has been decoded and checked once.
#[derive(Debug)]
pub struct OpenedBundle {
    pub header: CcobHeader,
    /// Bytes of header and stream.
    pub extent: u64,
    pub content: Content,
    /// A guard that keeps the decoded bytes in memory, if they are few enough to be held.
    pub pinned: Pinned,
}

/// Reads the header at the start of `content`.
pub fn read_header(content: &Content) -> Result<CcobHeader> {
    read_fields(content).map_err(|error| error.structure("CCOB header").at(&content.place(0)))
}

fn read_fields(content: &Content) -> Result<CcobHeader> {
    if content.read_array(0)? != *MAGIC {
        return Err(Error::malformed("the magic is missing"));
    }
    let version = u16::from_le_bytes(content.read_array(4)?);
    let method = match u16::from_le_bytes(content.read_array(6)?) {
        0 => CcobMethod::Zlib,
        1 => CcobMethod::Zstd,
        other => {
            let message = format!("compression method {other} is unknown");
            return Err(Error::unsupported(message).at(&content.place(6)));
        }
    };
    let (total_size, uncompressed_size, hash_at) = match version {
        1 => (None, u64::from(read_u32(content, 8)?), 12),
        2 => (Some(u64::from(read_u32(content, 8)?)), u64::from(read_u32(content, 12)?), 16),
        3 => (Some(read_u64(content, 8)?), read_u64(content, 16)?, 24),
        other => {
            let message = format!("version {other} is unknown");
            return Err(Error::unsupported(message).at(&content.place(4)));
        }
    };
    let hash: [u8; 8] = content.read_array(hash_at)?;
    let len = hash_at + hash.len() as u64;
    Ok(CcobHeader { version, len, method, total_size, uncompressed_size, hash })
}

fn read_u32(content: &Content, at: u64) -> Result<u32> {
    Ok(u32::from_le_bytes(content.read_array(at)?))
}

fn read_u64(content: &Content, at: u64) -> Result<u64> {
    Ok(u64::from_le_bytes(content.read_array(at)?))
}

/// Decodes and checks the compressed bundle at the start of `content`, which may extend beyond.
pub fn open(content: &Content) -> Result<OpenedBundle> {
    let header = read_header(content)?;
    let place = content.place(0);
    let checked = check_sizes(&header, content.len())
        .and_then(|end| content.slice(header.len..end))
        .and_then(|payload| decode(&header, payload));
    let (stream, held) = checked.map_err(|error| error.structure("CCOB stream").at(&place))?;
    let extent = header.len + stream.compressed.len();
    let (content, pinned) = content.decoded_from(Arc::new(stream), held);
    Ok(OpenedBundle { header, extent, content, pinned })
}

/// The compression of bundles: on one thread, which takes half the memory of zstd's own threads.
pub const COMPRESSION: Compression =
    Compression::Zstd { level: 9, window_log: WINDOW_LOG_MAX, long: LongMatches::NearCopies };

pub fn write(version: u16, method: CcobMethod, bundle: &Content) -> Result<Vec<u8>> {
    let mut source = DigestingReader::<_, Md5>::new(bundle.reader());
    let size = bundle.len();
    let compressed = match method {
        CcobMethod::Zlib => {
            let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            io::copy(&mut source, &mut encoder).and_then(|_| encoder.finish())
        }
        CcobMethod::Zstd => {
            let mut encoder = Encoder::new(Vec::new(), COMPRESSION, &Workers::new(1), size)?;
            io::copy(&mut source, &mut encoder).and_then(|_| encoder.finish())
        }
    };
    let stream =
        compressed.map_err(|fault| Error::library_failure("cannot compress a bundle", fault))?;
    let header: u64 = match version {
        1 => 20,
        2 => 24,
        _ => 32,
    };
    let total = header + stream.len() as u64;
    let hash = source.digest.finalize();
    let short = |size: u64| {
        let too_long = |_| Error::new(Kind::Limit, "a bundle is too long for its version of CCOB");
        u32::try_from(size).map(u32::to_le_bytes).map_err(too_long)
    };
    let sizes = match version {
        1 => short(size)?.to_vec(),
        2 => [short(total)?, short(size)?].concat(),
        _ => [total.to_le_bytes(), size.to_le_bytes()].concat(),
    };
    let method: u16 = if method == CcobMethod::Zlib { 0 } else { 1 };
    let numbers = [version.to_le_bytes(), method.to_le_bytes()].concat();
    Ok([&MAGIC[..], &numbers, &sizes, &hash[..8], &stream].concat())
}

/// Checks the sizes in the header, and returns the latest possible end of the compressed stream.
fn check_sizes(header: &CcobHeader, available: u64) -> Result<u64> {
    if header.uncompressed_size > DECODED_LIMIT {
        let message = format!(
            "{} uncompressed bytes exceed the limit of {DECODED_LIMIT}",
            header.uncompressed_size
        );
        return Err(Error::new(Kind::Limit, message));
    }
    match header.total_size {
        None => Ok(available),
        Some(total) if total < header.len => {
            Err(Error::malformed(format!("a total size of {total} bytes is less than the header")))
        }
        Some(total) if total > available => Err(Error::truncated(format!(
            "the total size is {total} bytes, and {available} are left"
        ))),
        Some(total) => Ok(total),
    }
}

/// The compressed stream of a bundle, without its header.
#[derive(Debug)]
struct CcobStream {
    compressed: Content,
    method: CcobMethod,
    len: u64,
}

impl StreamSource for CcobStream {
    fn len(&self) -> u64 {
        self.len
    }

    fn open(&self) -> Result<Box<dyn Read + Send>> {
        let input = BufReader::with_capacity(INPUT_BUFFER, self.compressed.reader());
        Ok(match self.method {
            CcobMethod::Zlib => Box::new(ZlibDecoder::new(input)),
            CcobMethod::Zstd => Box::new(zstd_stream(input)?),
        })
    }

    fn place(&self) -> Place {
        self.compressed.place(0)
    }
}

/// Size of a decoder's input buffer; larger ones are no faster.
const INPUT_BUFFER: usize = 128 << 10;

/// A decoder of zstd frames with the library's window limit of 128 MiB, the window that LLVM uses.
fn zstd_stream<R: BufRead>(input: R) -> Result<ZstdStream<R>> {
    ZstdStream::new(input).map_err(|e| Error::library_failure("cannot set up a zstd decoder", e))
}

/// Decodes `payload` to its end, and checks sizes and hash.
fn decode(header: &CcobHeader, payload: Content) -> Result<(CcobStream, Option<HeldBytes>)> {
    let expected = header.uncompressed_size;
    let mut held = HeldBytes::reserve(expected, payload.budget());
    let (hash, used) = match decode_at_once(header, &payload, &mut held)? {
        Some(hash) => (hash, payload.len()),
        None => decode_stream(header, &payload, &mut held)?,
    };
    if hash != header.hash {
        return Err(Error::malformed("the hash does not match the uncompressed bundle")
            .hint("the file is damaged, or written by an unknown compiler; build it again"));
    }
    let left = payload.len() - used;
    if header.total_size.is_some() && left > 0 {
        let message = format!("{left} bytes follow the compressed stream within the total size");
        return Err(Error::malformed(message).at(&payload.place(used)));
    }
    let compressed = payload.slice(0..used)?;
    Ok((CcobStream { compressed, method: header.method, len: expected }, held))
}

/// Decodes the stream at the start of `payload`. Returns the hash of its output, and its length.
fn decode_stream(
    header: &CcobHeader,
    payload: &Content,
    held: &mut Option<HeldBytes>,
) -> Result<([u8; 8], u64)> {
    let mut input = BufReader::with_capacity(INPUT_BUFFER, payload.reader());
    let expected = header.uncompressed_size;
    let mut unused = 0;
    let hash = match header.method {
        CcobMethod::Zlib => drain(&mut ZlibDecoder::new(&mut input), expected, held)?,
        CcobMethod::Zstd => {
            let mut stream = zstd_stream(&mut input)?;
            let hash = drain(&mut stream, expected, held)?;
            unused = stream.unused();
            hash
        }
    };
    Ok((hash, input.get_ref().position() - input.buffer().len() as u64 - unused))
}

/// Decodes zstd frames that are all of `payload` and yield what the header says; else nothing is held.
fn decode_at_once(
    header: &CcobHeader,
    payload: &Content,
    held: &mut Option<HeldBytes>,
) -> Result<Option<[u8; 8]>> {
    let is_whole = header.method == CcobMethod::Zstd && header.total_size.is_some();
    let frames = is_whole.then(|| HeldBytes::reserve(payload.len(), payload.budget())).flatten();
    let (Some(held), Some(mut frames)) = (held, frames) else { return Ok(None) };
    frames.fill(&mut payload.reader()).map_err(decoder_fault)?;
    Ok(held.decode(&frames, header.uncompressed_size).map(|bytes| stored_hash(&Md5::digest(bytes))))
}

/// Reads `decoder` to its end, after exactly `expected` bytes, which are kept if `held` has room for them.
/// Returns their hash.
fn drain(decoder: &mut impl Read, expected: u64, held: &mut Option<HeldBytes>) -> Result<[u8; 8]> {
    let mut source = DigestingReader::<_, Md5>::new(decoder);
    let mut announced = source.by_ref().take(expected);
    let drained = match held {
        Some(held) => held.fill(&mut announced).map(|len| len as u64),
        None => io::copy(&mut announced, &mut io::sink()),
    };
    let len = drained.map_err(decoder_fault)?;
    if len < expected {
        let message = format!("the stream yields {len} bytes, and {expected} are declared");
        return Err(Error::malformed(message));
    }
    if io::copy(&mut source.by_ref().take(1), &mut io::sink()).map_err(decoder_fault)? > 0 {
        let message = format!("the stream yields more than the {expected} bytes declared");
        return Err(Error::malformed(message));
    }
    Ok(stored_hash(&source.digest.finalize()))
}

/// The part of an MD5 that is stored.
fn stored_hash(md5: &[u8]) -> [u8; 8] {
    md5.first_chunk().copied().unwrap_or_default()
}

fn decoder_fault(fault: io::Error) -> Error {
    match Error::from_io(fault) {
        Ok(error) => error,
        Err(fault) if fault.kind() == io::ErrorKind::UnexpectedEof => {
            Error::truncated("the compressed stream ends early")
        }
        Err(fault) => Error::malformed("cannot decode the compressed stream").cause(fault),
    }
}

#[cfg(test)]
#[path = "ccob_tests.rs"]
mod tests;
