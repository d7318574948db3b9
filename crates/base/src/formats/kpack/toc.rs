//! The table of contents of an archive that can be written anew.

use std::collections::BTreeMap;

use rmpv::Value;

use super::Scheme;

/// Largest TOC in bytes. It is decoded as a whole; this is room for half a million rows, where
/// the largest known library has some ten thousand. A budget of memory may allow less.
pub const TOC_LIMIT: u64 = 64 << 20;

/// The table of contents.
#[derive(Debug, Clone, PartialEq)]
pub struct Toc {
    /// Always [`VERSION`](super::VERSION).
    pub format_version: u32,
    /// The package component, e.g. `blas_lib`.
    pub group_name: String,
    /// The base arch, e.g. `gfx90a`.
    pub gfx_arch_family: String,
    /// The targets that the archive answers for.
    pub gfx_arches: Vec<String>,
    /// How code objects are stored.
    pub scheme: Scheme,
    /// By [`key`](super::key), then by target.
    pub rows: BTreeMap<String, BTreeMap<String, TocRow>>,
}

/// One row: which code object a target gets for a key.
#[derive(Debug, Clone, PartialEq)]
pub struct TocRow {
    /// `hsaco`.
    pub kind: String,
    /// Index of the stored code object.
    pub ordinal: u32,
    /// Its size in bytes, uncompressed.
    pub original_size: u64,
    /// What other tools attach.
    pub metadata: Option<Value>,
}
