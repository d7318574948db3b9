//! The types of the report of discovery.

use std::collections::BTreeMap;

use rockpack_core::gfx::{BaseArch, Target};
use serde::Serialize;

/// A number of things and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// The number of things.
    pub count: u64,
    /// The sum of their bytes: uncompressed for code objects, on disk for files.
    pub bytes: u64,
}

impl Amount {
    /// Counts one more thing of `bytes` bytes.
    pub(super) fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Adds `other`.
    pub(super) fn join(&mut self, other: Self) {
        self.count += other.count;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// The content of a shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShardContents {
    /// The name.
    pub name: String,
    /// The artifacts in name order.
    pub artifacts: Vec<ArtifactContents>,
    /// The archs that are only there because the compiler fell back to them, each with the
    /// reason for saying so.
    pub fallbacks: BTreeMap<BaseArch, String>,
}

/// The content of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArtifactContents {
    /// E.g. `blas_lib_gfx110X-dgpu`.
    pub name: String,
    /// The GPU family, e.g. `gfx110X-dgpu`.
    #[serde(rename = "family")]
    pub gpu_family: String,
    /// Host files and their bytes; for fat binaries, the bytes that remain without their device code.
    pub host_files: Amount,
    /// Fat binaries among them, and binaries whose code is in kernel archives.
    pub binaries: u64,
    /// Code objects of fat binaries and in kernel archives, by target.
    pub code_objects: BTreeMap<Target, Amount>,
    /// Files of kernel databases by arch; a file for several archs counts for each.
    pub databases: BTreeMap<BaseArch, Amount>,
}

impl ArtifactContents {
    /// Whether it has device code.
    pub fn has_device_code(&self) -> bool {
        !self.code_objects.is_empty() || !self.databases.is_empty()
    }
}

/// The device code for a base arch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArchFound {
    /// The base arch.
    pub arch: BaseArch,
    /// E.g. `RDNA 3`; empty if no generation is known.
    pub generation: String,
    /// Products with it.
    pub products: Vec<String>,
    /// The shards that have device code for it.
    pub shards: Vec<String>,
    /// Code objects of fat binaries and kernel archives.
    pub code_objects: Amount,
    /// Files of kernel databases.
    pub databases: Amount,
    /// Whether each of these shards has it only because the compiler fell back to it.
    pub fallback: bool,
}
