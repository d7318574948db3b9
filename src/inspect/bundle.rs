//! Offload bundles, in a fat binary or in a file of their own, plain or compressed (CCOB).

use std::collections::BTreeSet;

use rockpack_core::content::{Content, Sha256Digest};
use rockpack_core::error::Result;
use rockpack_elf::ccob::CcobMethod;
use rockpack_elf::fatbin::{Bundles, PinnedBundle};
use rockpack_elf::offload_bundle;
use serde::Serialize;

/// A bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BundleReport {
    /// Offset from the start of the section or file.
    pub offset: u64,
    /// The size in the section or file, in bytes.
    pub size: u64,
    /// The compression; `None` of a plain bundle.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub compression: Option<BundleCompression>,
    /// The entries in the order of their table.
    pub entries: Vec<BundleEntryReport>,
}

/// The compression of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BundleCompression {
    /// Version of the compressed bundle format.
    pub compressed_version: u16,
    /// `zlib` or `zstd`.
    pub compression_method: &'static str,
    /// Bytes of the bundle once it is decompressed.
    pub uncompressed_size: u64,
}

/// An entry of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BundleEntryReport {
    /// Entry id, e.g. `hipv4-amdgcn-amd-amdhsa--gfx1100`.
    pub id: String,
    /// The target ID in the entry id, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The size in bytes.
    pub size: u64,
    /// The SHA-256 of the bytes, in hex.
    pub sha256: Sha256Digest,
}

/// All bundles of a section or file.
pub(super) fn bundles(content: &Content) -> Result<Vec<BundleReport>> {
    Bundles::new(content).map(|next| bundle(&next?)).collect()
}

/// Describes a bundle. Its decoded bytes stay pinned while the entries are digested.
fn bundle(found: &PinnedBundle) -> Result<BundleReport> {
    let found = &found.bundle;
    let compression = found.compression.as_ref().map(|header| BundleCompression {
        compressed_version: header.version,
        compression_method: match header.method {
            CcobMethod::Zlib => "zlib",
            CcobMethod::Zstd => "zstd",
        },
        uncompressed_size: header.uncompressed_size,
    });
    let entries = found.bundle.entries.iter().map(entry).collect::<Result<_>>()?;
    Ok(BundleReport { offset: found.offset, size: found.extent, compression, entries })
}

fn entry(entry: &offload_bundle::BundleEntry) -> Result<BundleEntryReport> {
    Ok(BundleEntryReport {
        id: entry.id.to_string(),
        target: entry.id.target.as_ref().map(ToString::to_string),
        size: entry.content.len(),
        sha256: entry.content.digest()?,
    })
}

/// The targets that have code in `bundles`.
pub(super) fn targets(bundles: &[BundleReport]) -> BTreeSet<String> {
    let filled = bundles.iter().flat_map(|bundle| &bundle.entries).filter(|entry| entry.size > 0);
    filled.filter_map(|entry| entry.target.clone()).collect()
}
