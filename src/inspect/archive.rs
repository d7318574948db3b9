//! `.kpack` archives.

use std::collections::BTreeMap;

use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_elf::kpack;
use serde::Serialize;

/// A kernel archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArchiveReport {
    /// The name that the archive was given, e.g. `blas_lib`.
    pub group_name: String,
    /// The base arch.
    pub gfx_arch_family: String,
    /// The targets that it serves, in the order in which loaders try them.
    pub gfx_arches: Vec<String>,
    /// `zstd-per-kernel` or `none`.
    pub compression_scheme: String,
    /// Size of the file in bytes.
    pub size: u64,
    /// Number of distinct code objects.
    pub code_objects: usize,
    /// Bytes of all distinct code objects, uncompressed.
    pub uncompressed_size: u64,
    /// The rows: key → target → row.
    pub rows: BTreeMap<String, BTreeMap<String, ArchiveRow>>,
}

/// One row of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArchiveRow {
    /// The number of the stored code object that the row refers to.
    pub ordinal: u32,
    /// The uncompressed size of that code object in bytes.
    pub original_size: u64,
}

pub(super) fn archive(content: &Content) -> Result<ArchiveReport> {
    let reader = kpack::KpackReader::open(content.clone())?;
    let toc = reader.toc();
    let mut sizes = BTreeMap::new();
    let mut rows: BTreeMap<String, BTreeMap<String, ArchiveRow>> = BTreeMap::new();
    for (key, targets) in &toc.rows {
        for (target, row) in targets {
            sizes.insert(row.ordinal, row.original_size);
            let row = ArchiveRow { ordinal: row.ordinal, original_size: row.original_size };
            rows.entry(key.clone()).or_default().insert(target.clone(), row);
        }
    }
    Ok(ArchiveReport {
        group_name: toc.group_name.clone(),
        gfx_arch_family: toc.gfx_arch_family.clone(),
        gfx_arches: toc.gfx_arches.clone(),
        compression_scheme: toc.scheme.as_str().to_owned(),
        size: content.len(),
        code_objects: reader.len(),
        uncompressed_size: sizes.values().sum(),
        rows,
    })
}
