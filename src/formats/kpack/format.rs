//! What a kernel archive consists of.
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
//! Integers of header and blob are little-endian. Source: AMD's `rocm_kpack` (the Python writer
//! and the C++ loader). Its loader keeps the blob of an archive in memory, refuses blobs over
//! 4 GiB and more than 1,048,576 frames, and demands that a frame's content size equals
//! `original_size`. Two rows may name one ordinal: identical code objects are stored once.

use std::collections::BTreeMap;

use rmpv::Value;

/// The first four bytes.
pub const MAGIC: [u8; 4] = *b"KPAK";
/// The only version of header and TOC there is.
pub const VERSION: u32 = 1;
/// Bytes of magic, version and TOC offset.
pub const HEADER_LEN: u64 = 16;
/// Where the blob starts in archives that this module writes.
pub const BLOB_START: u64 = 64;
/// Largest blob in bytes: AMD's loader refuses more, and 32-bit frame sizes end there too.
pub const BLOB_LIMIT: u64 = 4 << 30;
/// Most frames of an archive: AMD's loader refuses more.
pub const FRAME_LIMIT: u64 = 1 << 20;
/// Largest TOC in bytes. It is decoded as a whole; this is room for half a million rows, where
/// the largest known library has some ten thousand. A budget of memory may allow less.
pub const TOC_LIMIT: u64 = 64 << 20;
/// The row type of a code object.
pub const HSACO: &str = "hsaco";

/// How code objects are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Each code object is a zstd frame of its own.
    ZstdPerKernel,
    /// Code objects are stored as they are.
    None,
}

impl Scheme {
    /// The value of `compression_scheme`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ZstdPerKernel => "zstd-per-kernel",
            Self::None => "none",
        }
    }
}

/// The table of contents.
#[derive(Debug, Clone, PartialEq)]
pub struct Toc {
    /// Always [`VERSION`].
    pub format_version: u32,
    /// The package component, e.g. `blas_lib`.
    pub group_name: String,
    /// The base arch, e.g. `gfx90a`.
    pub gfx_arch_family: String,
    /// The targets that the archive answers for.
    pub gfx_arches: Vec<String>,
    /// How code objects are stored.
    pub scheme: Scheme,
    /// By [`key`], then by target.
    pub rows: BTreeMap<String, BTreeMap<String, Row>>,
}

/// One row: which code object a target gets for a key.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// `hsaco`.
    pub kind: String,
    /// Index of the stored code object.
    pub ordinal: u32,
    /// Its size in bytes, uncompressed.
    pub original_size: u64,
    /// What other tools attach.
    pub metadata: Option<Value>,
}

/// The TOC key of wrapper `co_index` of the binary that calls itself `kernel_name`.
pub fn key(kernel_name: &str, co_index: u32) -> String {
    format!("{kernel_name}#{co_index}")
}

/// The parts of a TOC key; archives of early tools have keys without an index.
pub fn split_key(key: &str) -> Option<(&str, u32)> {
    let (kernel_name, co_index) = key.rsplit_once('#')?;
    Some((kernel_name, co_index.parse().ok()?))
}
