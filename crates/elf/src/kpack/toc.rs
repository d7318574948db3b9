//! The table of contents of an archive, with everything needed to rewrite it.

use std::collections::BTreeMap;

use rmpv::Value;

use super::Scheme;

/// The table of contents.
#[derive(Debug, Clone, PartialEq)]
pub struct Toc {
    /// The component, e.g. `blas_lib`.
    pub group_name: String,
    /// The base arch, e.g. `gfx90a`.
    pub gfx_arch_family: String,
    /// The targets that the archive serves.
    pub gfx_arches: Vec<String>,
    /// The storage of code objects.
    pub scheme: Scheme,
    /// The rows, by [`key`](super::key) and then by target.
    pub rows: BTreeMap<String, BTreeMap<String, TocRow>>,
}

/// One row: the code object of a key and target.
#[derive(Debug, Clone, PartialEq)]
pub struct TocRow {
    /// The type; rockpack writes `hsaco`.
    pub kind: String,
    /// Index of the stored code object.
    pub ordinal: u32,
    /// Uncompressed size in bytes.
    pub original_size: u64,
    /// Metadata of other tools.
    pub metadata: Option<Value>,
}
