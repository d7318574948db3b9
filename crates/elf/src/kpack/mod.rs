//! Kernel archives (`.kpack`): the code objects of a component's binaries for one base arch.
//!
//! [`rockpack_kpack::archive`] defines their layout, names and numbers, and reads them as leniently as a
//! loader. This module writes them, and reads them as strictly as a tool must that rewrites them.

#[cfg(test)]
mod agreement_tests;
mod reader;
mod writer;

use std::collections::BTreeMap;

use rmpv::Value;

pub use reader::{KpackReader, decoded};
pub use rockpack_kpack::archive::{
    BLOB_LIMIT, BLOB_START, FRAME_LIMIT, HSACO, MAGIC, Scheme, TOC_LIMIT, VERSION, key, split_key,
};
pub use writer::write;

#[derive(Debug, Clone, PartialEq)]
pub struct Toc {
    /// The component, e.g. `blas_lib`.
    pub group_name: String,
    /// The base arch, e.g. `gfx90a`.
    pub gfx_arch_family: String,
    /// The targets that the archive serves.
    pub gfx_arches: Vec<String>,
    pub scheme: Scheme,
    /// The rows, by [`key`] and then by target.
    pub rows: BTreeMap<String, BTreeMap<String, TocRow>>,
}

/// One row: the code object of a key and target.
#[derive(Debug, Clone, PartialEq)]
pub struct TocRow {
    /// The type; rockpack writes `hsaco`.
    pub kind: String,
    pub ordinal: u32,
    /// Uncompressed size in bytes.
    pub original_size: u64,
    pub metadata: Option<Value>,
}
