//! Kernel archives (`.kpack`): their structure, and a reader that accepts what AMD's loader accepts.
//!
//! ```text
//! offset  size
//!      0     4  "KPAK"
//!      4     4  version, u32, 1
//!      8     8  offset of the TOC, u64
//!     16    48  zeros (some writers leave them out: their blob starts at 16)
//!     64     …  blob
//!      …     …  TOC, a MessagePack map, to the end of the file
//!
//! blob, scheme "zstd-per-kernel"            blob, scheme "none"
//!   u32 number of frames                      code objects, each 64-aligned, zeros between
//!   per ordinal: u32 size | zstd frame
//!
//! TOC
//!   format_version      1
//!   group_name          str, e.g. "blas_lib"
//!   gfx_arch_family     str, e.g. "gfx90a"
//!   gfx_arches          [str], every target that the archive answers for
//!   compression_scheme  "zstd-per-kernel" or "none"; absent means "none"
//!   zstd_offset, zstd_size          the blob, scheme "zstd-per-kernel"
//!   blobs               [{offset, size}] by ordinal, file offsets, scheme "none"
//!   toc                 { "<kernel_name>#<co_index>": { "<target>":
//!                         { "type": "hsaco", "ordinal": n, "original_size": n, ["metadata"] } } }
//! ```
//!
//! Integers of header and blob are little-endian. Source: AMD's `rocm_kpack` (the Python writer and the C++
//! loader). Its loader keeps the blob of an archive in memory, refuses blobs over 4 GiB and more than
//! 1,048,576 frames, and requires that a frame's content size equals `original_size`. Several rows may refer to
//! one ordinal: identical code objects are deduplicated. rockpack writes "zstd-per-kernel", and "none" only if
//! `archive_level` asks for it.
//!
//! # Later forms
//!
//! - A change that readers of version 1 would misread needs a new version in the header. They refuse the file
//!   as [`Code::UnsupportedVersion`] before they read anything else, regardless of `format_version`. A
//!   version 2 keeps the first eight bytes unchanged.
//! - Within version 1 a writer may add keys, of any type, to the TOC and to rows. Readers skip them, so
//!   nothing may depend on them. The keys above keep names, types and meaning.
//! - Readers take an unknown scheme for "none". An archive with a new scheme therefore leaves `blobs` empty:
//!   its rows then give [`Code::KernelNotFound`], and never compressed bytes as code. If old readers must not
//!   report a missing row, the archive needs version 2.
//! - A new scheme gets a new name. "zstd-per-kernel" stays one frame of zstd for each ordinal, decoded
//!   without a dictionary.
//!
//! Archives from the future in `runtime/tests/future.rs` test these rules.
//!
//! [`Archive::open`] accepts what AMD's loader accepts: unknown keys, bytes after the TOC, any
//! `format_version`, an unknown scheme (read as "none"), gaps, and frames without rows. Only the limits are
//! stricter, because a sparse file can have terabytes. The first of equal fields counts, and the last of equal
//! rows. AMD's loader fills a row without an ordinal from uninitialised memory; this one skips it.

mod frames;
mod toc;

use std::ffi::CStr;
use std::fmt;

use crate::message_pack::{Fault, Windows};
use crate::{Code, Names, OutOfMemory, ReadAt};

pub use frames::{FrameFault, Frames};
use toc::TocTable;
pub use toc::{Row, field};

/// The first four bytes.
pub const MAGIC: [u8; 4] = *b"KPAK";
/// The only version of header and TOC.
pub const VERSION: u32 = 1;
/// Bytes of magic, version and TOC offset.
pub const HEADER_LEN: usize = 16;
/// The offset of the blob in new archives, a multiple of the alignment of code objects.
pub const BLOB_START: u64 = 64;
/// Largest blob in bytes: AMD's loader refuses more, and 32-bit frame sizes end there too.
pub const BLOB_LIMIT: u64 = 4 << 30;
/// Maximum number of frames of an archive: AMD's loader refuses more.
pub const FRAME_LIMIT: u32 = 1 << 20;
/// Largest TOC in bytes. It has room for half a million rows; the largest known library has some ten
/// thousand. A memory budget of a packer, which decodes it as a whole, may allow less.
pub const TOC_LIMIT: u64 = 64 << 20;
pub const HSACO: &str = "hsaco";

/// The way in which code objects are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Each code object is its own zstd frame.
    ZstdPerKernel,
    None,
}

impl Scheme {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ZstdPerKernel => "zstd-per-kernel",
            Self::None => "none",
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    pub offset: u64,
    pub size: u64,
}

impl Span {
    /// The offset after the last byte; `None` if it exceeds 64 bits.
    pub fn end(self) -> Option<u64> {
        self.offset.checked_add(self.size)
    }

    /// Tells whether the whole range is in the first `len` bytes.
    pub fn is_within(self, len: u64) -> bool {
        self.end().is_some_and(|end| end <= len)
    }
}

/// The reason why a loader cannot open an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenFault<E> {
    Header(HeaderFault),
    /// The TOC begins after the end of the file.
    TocOutside(u64),
    TocTooLarge,
    /// The TOC is not a MessagePack value.
    Toc(Fault<E>),
    /// The TOC is not a map.
    NotAMap,
    /// A number of the TOC has another type, or does not fit.
    NotANumber,
    Frames(FrameFault<E>),
}

impl<E> OpenFault<E> {
    /// The result code for callers of the C interface. Unlike AMD's, it does not report refused memory as damage.
    pub fn code(&self) -> Code {
        match self {
            Self::Header(HeaderFault::Version(_)) => Code::UnsupportedVersion,
            Self::Header(_) | Self::TocOutside(_) | Self::TocTooLarge => Code::InvalidFormat,
            Self::Toc(Fault::Read(_)) | Self::Frames(FrameFault::Read(_)) => Code::Io,
            Self::Toc(Fault::OutOfMemory) | Self::Frames(FrameFault::OutOfMemory) => {
                Code::OutOfMemory
            }
            Self::Toc(_) | Self::NotAMap | Self::NotANumber => Code::MsgpackParseFailed,
            Self::Frames(FrameFault::OutOfRange(_)) => Code::Io,
            Self::Frames(_) => Code::InvalidFormat,
        }
    }
}

impl<E> From<Fault<E>> for OpenFault<E> {
    fn from(fault: Fault<E>) -> Self {
        Self::Toc(fault)
    }
}

impl<E> From<OutOfMemory> for OpenFault<E> {
    fn from(fault: OutOfMemory) -> Self {
        Self::Toc(fault.into())
    }
}

impl<E> From<FrameFault<E>> for OpenFault<E> {
    fn from(fault: FrameFault<E>) -> Self {
        Self::Frames(fault)
    }
}

/// The table of an opened archive. It takes a few times the bytes of the TOC in memory, and 16 bytes for each
/// frame, regardless of the counts in the file. It reads the file at offsets and does not keep it.
#[derive(Debug, Clone)]
pub struct Archive {
    scheme: Scheme,
    arches: Names,
    rows: toc::SortedRows,
    /// The stored code objects by ordinal.
    stored: Vec<Span>,
    len: u64,
}

impl Archive {
    pub fn open<R: ReadAt + ?Sized>(source: &R) -> Result<Self, OpenFault<R::Error>> {
        let len = source.len();
        let mut header = [0; HEADER_LEN];
        if len < header.len() as u64 {
            return Err(OpenFault::Header(HeaderFault::Truncated));
        }
        source.read_at(0, &mut header).map_err(Fault::Read)?;
        let toc_offset = parse_header(&header).map_err(OpenFault::Header)?;
        if toc_offset >= len {
            return Err(OpenFault::TocOutside(toc_offset));
        }
        let end = len.min(toc_offset.saturating_add(TOC_LIMIT));
        let table = TocTable::decode(Windows::new(source, toc_offset..end)).map_err(|fault| {
            let is_cut_short = end < len && matches!(fault, OpenFault::Toc(Fault::Truncated));
            if is_cut_short { OpenFault::TocTooLarge } else { fault }
        })?;
        let stored = match table.scheme {
            Scheme::None => table.blobs?,
            Scheme::ZstdPerKernel => Frames::open(source, table.zstd?)?.listed()?,
        };
        Ok(Self { scheme: table.scheme, arches: table.arches, rows: table.rows, stored, len })
    }

    /// The scheme in which code objects are stored.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The targets that the archive answers for, in the order of the file.
    pub fn arches(&self) -> &Names {
        &self.arches
    }

    /// The keys of the rows, each once, in byte order.
    pub fn keys(&self) -> &Names {
        &self.rows.keys
    }

    pub fn row(&self, key: &[u8], target: &[u8]) -> Option<Row> {
        self.rows.find(key, target)
    }

    /// Iterates over the rows of `key` with their targets as C reads them, in byte order.
    pub fn rows_of(&self, key: &[u8]) -> impl Iterator<Item = (&CStr, Row)> {
        self.rows.of(key)
    }

    pub fn count(&self) -> usize {
        self.stored.len()
    }

    /// The place of the code object with this ordinal: a zstd frame or uncompressed bytes, by the scheme.
    /// Fails with [`Code::KernelNotFound`] for an unknown ordinal, and with [`Code::Io`] if the place exceeds
    /// the file or [`BLOB_LIMIT`].
    pub fn stored(&self, ordinal: u32) -> Result<Span, Code> {
        let span = usize::try_from(ordinal).ok().and_then(|slot| self.stored.get(slot));
        let span = *span.ok_or(Code::KernelNotFound)?;
        if span.size <= BLOB_LIMIT && span.is_within(self.len) { Ok(span) } else { Err(Code::Io) }
    }
}

/// The reason why bytes are not a valid header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderFault {
    Truncated,
    /// The file begins with these bytes.
    Magic([u8; 4]),
    /// The header has this version.
    Version(u32),
}

impl fmt::Display for HeaderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("is shorter than a header"),
            Self::Magic(magic) => write!(f, "begins with {}, not KPAK", magic.escape_ascii()),
            Self::Version(version) => {
                write!(f, "version {version} is not known, only {VERSION} is")
            }
        }
    }
}

impl std::error::Error for HeaderFault {}

/// Reads a header, and returns the offset of the TOC. The caller checks that the TOC is inside the file.
pub fn parse_header(bytes: &[u8; HEADER_LEN]) -> Result<u64, HeaderFault> {
    let [m0, m1, m2, m3, v0, v1, v2, v3, toc_offset @ ..] = *bytes;
    let (magic, version) = ([m0, m1, m2, m3], u32::from_le_bytes([v0, v1, v2, v3]));
    if magic != MAGIC {
        return Err(HeaderFault::Magic(magic));
    }
    if version != VERSION {
        return Err(HeaderFault::Version(version));
    }
    Ok(u64::from_le_bytes(toc_offset))
}

/// Returns the bytes of a header of version [`VERSION`].
pub fn header_bytes(toc_offset: u64) -> [u8; HEADER_LEN] {
    let ([m0, m1, m2, m3], [v0, v1, v2, v3]) = (MAGIC, VERSION.to_le_bytes());
    let [t0, t1, t2, t3, t4, t5, t6, t7] = toc_offset.to_le_bytes();
    [m0, m1, m2, m3, v0, v1, v2, v3, t0, t1, t2, t3, t4, t5, t6, t7]
}

/// The separator between the parts of a TOC key, `<kernel_name>#<co_index>`.
const SEPARATOR: char = '#';

/// Digits of the highest index in a TOC key.
const DIGITS: usize = 10;

/// The TOC key of wrapper `co_index` of the binary with the name `kernel_name`.
pub fn key(kernel_name: &str, co_index: u32) -> String {
    format!("{kernel_name}{SEPARATOR}{co_index}")
}

/// The TOC key for a name that need not be UTF-8. Fails if memory is refused.
pub fn try_key(kernel_name: &[u8], co_index: u32) -> Result<Vec<u8>, OutOfMemory> {
    use std::io::Write as _;
    let mut key = Vec::new();
    key.try_reserve_exact(kernel_name.len().saturating_add(SEPARATOR.len_utf8() + DIGITS))?;
    key.extend_from_slice(kernel_name);
    // This writes into reserved memory, so it neither fails nor allocates.
    let _ = write!(key, "{SEPARATOR}{co_index}");
    Ok(key)
}

/// Splits a TOC key into kernel name and index. Returns `None` for keys of early tools, which have no index.
pub fn split_key(key: &str) -> Option<(&str, u32)> {
    let (kernel_name, co_index) = key.rsplit_once(SEPARATOR)?;
    Some((kernel_name, co_index.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_is_written() {
        let toc_offset = 0x0123_4567_89ab_cdef;
        let bytes = header_bytes(toc_offset);
        assert_eq!(&bytes, b"KPAK\x01\0\0\0\xef\xcd\xab\x89\x67\x45\x23\x01");
        assert_eq!(parse_header(&bytes), Ok(toc_offset));
    }

    #[test]
    fn keys_are_written_and_taken_apart() {
        for (name, index) in [("lib/libx.so.1", 0), ("a#b", 7), ("", u32::MAX)] {
            let text = key(name, index);
            assert_eq!(split_key(&text), Some((name, index)));
            let bytes = try_key(name.as_bytes(), index).unwrap();
            assert_eq!(bytes, text.as_bytes());
            assert!(bytes.capacity() >= name.len() + 1 + DIGITS);
        }
        assert_eq!(try_key(b"\xff", 1).unwrap(), b"\xff#1");
        for none in ["lib/libx.so", "lib/libx.so#", "lib/libx.so#-1", "lib/libx.so#4294967296"] {
            assert_eq!(split_key(none), None, "{none}");
        }
    }
}
