//! The compressed streams inside packages: zstd, xz and gzip, and, in foreign packages, lzma.
//!
//! rockpack writes single zstd frames (dpkg stops after the first) with a window of at most 128 MiB (rpm 4.18
//! and dpkg 1.21 refuse window log 28), and multi-block xz streams. Both come from the multi-threaded
//! encoders, whose output is the same for any number of workers from one. zstd without workers produces
//! different bytes; only [`LongMatches::NearCopies`] uses it. Only the crate `archive` writes gzip:
//! `deb` in stored blocks, and `tarball`. Readers refuse bytes after the end of a stream.
//!
//! zstd gets the size of a payload before the first byte. Its window and tables are then no larger than the
//! payload needs, both when it is written and when it is installed.

use std::io::{self, BufRead, Read, Write};

use liblzma::stream::{CONCATENATED, Check, MtStreamBuilder, Stream};

use crate::error::{Error, Kind, Result};
use crate::named_enum;
use crate::package_format::Format;
use crate::zstd_frame;
pub use crate::zstd_frame::{Contexts, Effort, LongMatches};

/// The largest zstd window that package managers in use accept (2^27 bytes).
pub const WINDOW_LOG_MAX: u32 = 27;

/// Version of the `liblzma-sys` crate, whose C sources decide the bytes of xz streams. The crate offers its version
/// only to build scripts and `unsafe` code; a test compares this with Cargo.lock.
pub const LIBLZMA_SYS: &str = "0.4.9";

/// Memory that an xz decoder may use, in bytes: more than preset 9 needs.
const XZ_DECODER_MEMORY: u64 = 128 << 20;

/// Memory of a zstd job at level 9 with long-distance matching, in bytes: input, output and tables.
const ZSTD_JOB_MEMORY: u64 = 96 << 20;

/// Memory of a zstd job at level 13 and above, in bytes, where tables and jobs are larger.
const ZSTD_JOB_MEMORY_HIGH: u64 = 288 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    Zstd {
        /// Compression level, 1 to 19; higher levels would make both package managers use too much memory.
        level: i32,
        /// Logarithm of the window size, at most [`WINDOW_LOG_MAX`].
        window_log: u32,
        long: LongMatches,
    },
    Xz {
        /// Compression preset, 0 to 9.
        preset: u32,
    },
}

impl Default for Compression {
    fn default() -> Self {
        Self::Zstd { level: 9, window_log: WINDOW_LOG_MAX, long: LongMatches::On }
    }
}

impl Compression {
    /// The compression for package managers that cannot read zstd.
    pub const XZ: Self = Self::Xz { preset: 6 };

    /// The extension of a deb's data member (`data.tar.<extension>`).
    pub fn extension(self) -> &'static str {
        match self {
            Self::Zstd { .. } => "zst",
            Self::Xz { .. } => "xz",
        }
    }

    pub fn method(self) -> Method {
        match self {
            Self::Zstd { .. } => Method::Zstd,
            Self::Xz { .. } => Method::Xz,
        }
    }

    /// The level or preset, as in rpm's PAYLOADFLAGS.
    pub fn level(self) -> i64 {
        match self {
            Self::Zstd { level, .. } => level.into(),
            Self::Xz { preset } => preset.into(),
        }
    }

    /// An upper bound of the memory that an encoder with `workers` threads takes, in bytes.
    pub fn memory(self, workers: u32) -> u64 {
        let workers = workers.max(1);
        match self {
            Self::Zstd { window_log, level, long } => {
                let job = if level < 13 { ZSTD_JOB_MEMORY } else { ZSTD_JOB_MEMORY_HIGH };
                if long == LongMatches::NearCopies {
                    return (1 << window_log.min(63)) + job;
                }
                // The window, and per thread the input and output of a job (32 MiB each at level 9) and its
                // tables. The encoder fills one more job meanwhile.
                (1 << window_log.min(63)) + (u64::from(workers) + 1) * job
            }
            Self::Xz { preset } => xz_builder(preset, workers).memusage(),
        }
    }

    /// Refuses settings that package managers could not decode.
    pub fn check(self) -> Result<()> {
        match self {
            Self::Zstd { level, window_log, .. } => {
                if !(1..=19).contains(&level) {
                    return Err(limit(format!("zstd level {level} is not from 1 to 19")));
                }
                if !(10..=WINDOW_LOG_MAX).contains(&window_log) {
                    let message = format!("zstd window log {window_log} is not from 10 to 27");
                    return Err(limit(message).hint("rpm 4.18 and dpkg 1.21 refuse larger windows"));
                }
            }
            Self::Xz { preset } if preset > 9 => {
                return Err(limit(format!("xz preset {preset} is not from 0 to 9")));
            }
            Self::Xz { .. } => {}
        }
        Ok(())
    }
}

fn limit(message: String) -> Error {
    Error::new(Kind::Limit, message)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadCompressions {
    pub deb: Compression,
    pub rpm: Compression,
}

impl PayloadCompressions {
    pub fn of(self, format: Format) -> Compression {
        format.select(self.deb, self.rpm)
    }

    /// An upper bound of the memory that an encoder for either takes with `workers` threads, in bytes.
    pub fn memory(self, workers: u32) -> u64 {
        self.deb.memory(workers).max(self.rpm.memory(workers))
    }
}

impl From<Compression> for PayloadCompressions {
    fn from(compression: Compression) -> Self {
        Self { deb: compression, rpm: compression }
    }
}

/// Dictionary size of an xz preset, in bytes (liblzma's table).
fn xz_dictionary(preset: u32) -> u64 {
    const LOGS: [u32; 9] = [18, 20, 21, 22, 22, 23, 23, 24, 25];
    1 << LOGS.get(preset as usize).copied().unwrap_or(26)
}

/// The threads of a compressor. Its output does not depend on their number.
#[derive(Debug, Clone)]
pub struct Workers {
    /// Number of threads, at least one.
    pub count: u32,
    /// Contexts that other compressors allocated and no longer need.
    pub contexts: Contexts,
}

impl Workers {
    pub fn new(count: u32) -> Self {
        Self { count, contexts: Contexts::default() }
    }
}

pub struct Encoder<W: Write> {
    inner: MethodEncoder<W>,
}

enum MethodEncoder<W: Write> {
    Zstd(zstd_frame::FrameEncoder<W>),
    Xz(liblzma::write::XzEncoder<W>),
}

impl<W: Write> Encoder<W> {
    /// A compressor of exactly `size` bytes, on threads of its own.
    pub fn new(sink: W, compression: Compression, threads: &Workers, size: u64) -> Result<Self> {
        compression.check()?;
        let workers = threads.count.max(1);
        let started = match compression {
            Compression::Zstd { level, window_log, long } => {
                let settings = zstd_frame::FrameSettings { level, window_log, long, workers, size };
                let contexts = threads.contexts.clone();
                zstd_frame::FrameEncoder::new(sink, &settings, contexts).map(MethodEncoder::Zstd)
            }
            Compression::Xz { preset } => {
                let stream = xz_builder(preset, workers).encoder().map_err(io::Error::from);
                let encoder = |stream| liblzma::write::XzEncoder::new_stream(sink, stream);
                stream.map(encoder).map(MethodEncoder::Xz)
            }
        };
        let inner = started.map_err(|e| Error::io_without_path("start the compressor", e))?;
        Ok(Self { inner })
    }

    /// Changes the effort from here on. xz ignores it.
    pub fn set_effort(&mut self, effort: Effort) -> io::Result<()> {
        match &mut self.inner {
            MethodEncoder::Zstd(encoder) => encoder.set_effort(effort),
            MethodEncoder::Xz(_) => Ok(()),
        }
    }

    pub fn finish(self) -> io::Result<W> {
        match self.inner {
            MethodEncoder::Zstd(encoder) => encoder.finish(),
            MethodEncoder::Xz(encoder) => encoder.finish(),
        }
    }
}

/// The settings of an xz encoder. Blocks have three dictionaries, which is liblzma's default; it is set
/// explicitly so that it never changes.
fn xz_builder(preset: u32, workers: u32) -> MtStreamBuilder {
    let mut builder = MtStreamBuilder::new();
    builder
        .preset(preset)
        .check(Check::Crc64)
        .block_size((xz_dictionary(preset) * 3).max(1 << 20))
        .threads(workers);
    builder
}

impl<W: Write> Write for Encoder<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match &mut self.inner {
            MethodEncoder::Zstd(encoder) => encoder.write(buffer),
            MethodEncoder::Xz(encoder) => encoder.write(buffer),
        }
    }

    /// Does nothing: a flush of the compressor would end its block and change the bytes.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

named_enum! {
    /// A compression method in a package, by its name in rpm's PAYLOADCOMPRESSOR.
    pub enum Method {
        Stored = "identity",
        Gzip = "gzip",
        Xz = "xz",
        Zstd = "zstd",
        /// lzma, the predecessor of xz: read but never written.
        Lzma = "lzma",
    }
}

impl Method {
    /// The method of a deb member's extension; the empty extension is [`Method::Stored`].
    pub fn of_extension(extension: &str) -> Option<Self> {
        Some(match extension {
            "" => Self::Stored,
            "gz" => Self::Gzip,
            "xz" => Self::Xz,
            "zst" => Self::Zstd,
            "lzma" => Self::Lzma,
            _ => return None,
        })
    }

    /// The method of a value of rpm's PAYLOADCOMPRESSOR.
    pub fn of_name(name: &str) -> Option<Self> {
        let all = [Self::Stored, Self::Gzip, Self::Xz, Self::Zstd, Self::Lzma];
        all.into_iter().find(|method| method.as_str() == name)
    }
}

/// Decompresses a source that holds one stream, or several, and nothing else.
pub enum Decoder<R: BufRead> {
    Stored(R),
    Gzip(flate2::bufread::GzDecoder<R>),
    /// Decodes consecutive gzip streams.
    GzipStreams(flate2::bufread::MultiGzDecoder<R>),
    Xz(liblzma::bufread::XzDecoder<R>),
    Zstd(zstd::stream::read::Decoder<'static, R>),
}

impl<R: BufRead> Decoder<R> {
    pub fn new(source: R, method: Method) -> Result<Self> {
        Ok(match method {
            Method::Stored => Self::Stored(source),
            Method::Gzip => Self::Gzip(flate2::bufread::GzDecoder::new(source)),
            Method::Xz => Self::Xz(xz_decoder(source, 0)?),
            Method::Lzma => Self::Xz(lzma_decoder(source)?),
            Method::Zstd => Self::Zstd(zstd_decoder(source)?.single_frame()),
        })
    }

    /// A decoder that reads consecutive zstd frames, gzip or xz streams as one, as their tools do.
    pub fn of_streams(source: R, method: Method) -> Result<Self> {
        match method {
            Method::Xz => Ok(Self::Xz(xz_decoder(source, CONCATENATED)?)),
            Method::Zstd => Ok(Self::Zstd(zstd_decoder(source)?)),
            Method::Gzip => Ok(Self::GzipStreams(flate2::bufread::MultiGzDecoder::new(source))),
            Method::Stored | Method::Lzma => Self::new(source, method),
        }
    }

    /// Checks that the stream ended and that the source holds nothing after it, and returns the source.
    pub fn finish(mut self) -> Result<R> {
        if self.read(&mut [0]).map_err(decoder_fault)? != 0 {
            return Err(Error::malformed("bytes follow the end of the archive"));
        }
        let mut source = match self {
            Self::Stored(source) => source,
            Self::Gzip(decoder) => decoder.into_inner(),
            Self::GzipStreams(decoder) => decoder.into_inner(),
            Self::Xz(decoder) => decoder.into_inner(),
            Self::Zstd(decoder) => decoder.finish(),
        };
        if !source.fill_buf().map_err(decoder_fault)?.is_empty() {
            return Err(Error::malformed("bytes follow the end of the compressed stream"));
        }
        Ok(source)
    }
}

fn xz_decoder<R: BufRead>(source: R, flags: u32) -> Result<liblzma::bufread::XzDecoder<R>> {
    let stream = Stream::new_stream_decoder(XZ_DECODER_MEMORY, flags)
        .map_err(|e| decoder_fault(e.into()))?;
    Ok(liblzma::bufread::XzDecoder::new_stream(source, stream))
}

fn lzma_decoder<R: BufRead>(source: R) -> Result<liblzma::bufread::XzDecoder<R>> {
    let stream =
        Stream::new_lzma_decoder(XZ_DECODER_MEMORY).map_err(|e| decoder_fault(e.into()))?;
    Ok(liblzma::bufread::XzDecoder::new_stream(source, stream))
}

fn zstd_decoder<R: BufRead>(source: R) -> Result<zstd::stream::read::Decoder<'static, R>> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(source).map_err(decoder_fault)?;
    decoder.window_log_max(WINDOW_LOG_MAX).map_err(decoder_fault)?;
    Ok(decoder)
}

impl<R: BufRead> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Stored(source) => source.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
            Self::GzipStreams(decoder) => decoder.read(buffer),
            Self::Xz(decoder) => decoder.read(buffer),
            Self::Zstd(decoder) => decoder.read(buffer),
        }
    }
}

/// Makes an error for a failed read through a decoder.
pub fn decoder_fault(source: io::Error) -> Error {
    Error::from_io(source).unwrap_or_else(|source| {
        let message = "cannot decode the compressed stream";
        match source.kind() {
            io::ErrorKind::UnexpectedEof => Error::truncated(message),
            _ => Error::malformed(message),
        }
        .cause(source)
    })
}

/// Adds a hint to an error about the bytes of a compressed archive.
pub fn damaged_archive(error: Error) -> Error {
    if error.is_read_failure() {
        return error;
    }
    // Both decoders report a lack of memory for windows over their limit.
    let window = error.cause_text().is_some_and(|cause| cause.contains("memory"));
    error.hint(if window {
        "rockpack reads zstd windows up to 128 MiB and xz dictionaries up to 96 MiB: compress \
             it with at most zstd --long=27 or xz -9"
    } else {
        "the archive is damaged or was copied only in part: build it or copy it again"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_liblzma_matches_cargo_lock() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
        let lock = std::fs::read_to_string(path).unwrap();
        let package = format!("name = \"liblzma-sys\"\nversion = \"{LIBLZMA_SYS}\"\n");
        assert!(lock.contains(&package), "set LIBLZMA_SYS to the version in Cargo.lock");
    }

    fn compressed(compression: Compression, workers: u32, chunk: usize, input: &[u8]) -> Vec<u8> {
        let size = input.len() as u64;
        let workers = Workers::new(workers);
        let mut encoder = Encoder::new(Vec::new(), compression, &workers, size).unwrap();
        for part in input.chunks(chunk) {
            encoder.write_all(part).unwrap();
            encoder.flush().unwrap();
        }
        encoder.finish().unwrap()
    }

    fn sample() -> Vec<u8> {
        let mut state = 7u64;
        let bytes = (0..6 << 20).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 60).to_le_bytes()[0]
        });
        bytes.collect()
    }

    #[test]
    fn output_does_not_depend_on_workers_or_chunks() {
        let input = sample();
        let quick = |long| Compression::Zstd { level: 1, window_log: 23, long };
        let frames = [quick(LongMatches::On), quick(LongMatches::NearCopies)];
        for compression in frames.into_iter().chain([Compression::Xz { preset: 0 }]) {
            let expected = compressed(compression, 1, 1 << 20, &input);
            for (workers, chunk) in [(2, 1 << 20), (3, 77_777)] {
                let got = compressed(compression, workers, chunk, &input);
                assert!(got == expected, "{compression:?} with {workers} workers");
            }
            let mut decoder = Decoder::new(&expected[..], compression.method()).unwrap();
            let mut decoded = Vec::new();
            decoder.read_to_end(&mut decoded).unwrap();
            assert!(decoded == input);
            decoder.finish().unwrap();
        }
    }

    #[test]
    fn bytes_after_a_stream_are_refused() {
        for compression in [Compression::default(), Compression::Xz { preset: 0 }] {
            let mut bytes = compressed(compression, 1, 9, b"hello");
            bytes.extend(bytes.clone());
            let mut decoder = Decoder::new(&bytes[..], compression.method()).unwrap();
            let mut decoded = Vec::new();
            decoder.read_to_end(&mut decoded).unwrap();
            assert_eq!(decoded, b"hello", "one stream is read");
            assert!(decoder.finish().is_err());
        }
    }

    #[test]
    fn windows_that_package_managers_refuse_are_refused() {
        let wide = Compression::Zstd { level: 9, window_log: 28, long: LongMatches::On };
        assert_eq!(wide.check().unwrap_err().kind(), Kind::Limit);
        assert!(Compression::Xz { preset: 10 }.check().is_err());
    }
}
