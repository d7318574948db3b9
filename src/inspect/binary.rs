//! Files of device code, and binaries that contain it: linked x86-64 ELF files (fat, transformed, host-only, or the
//! debug file of one), offload bundles, plain or compressed (CCOB), `.kpack` archives, and AMDGPU code objects.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::content::{Content, Sha256Digest};
use rockpack_core::error::Result;
use rockpack_elf::amdgpu_metadata::{self, CodeObjectMetadata};
use rockpack_elf::ccob::CcobMethod;
use rockpack_elf::fatbin::{Bundles, FatbinBundle};
use rockpack_elf::marker::{self, AnyMarker};
use rockpack_elf::{code_object, kpack, offload_bundle};
use rockpack_split::host_binary::{self, Examined};
use rockpack_split::needed_shim;
use serde::Serialize;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct HostBinaryReport {
    pub size: u64,
    pub state: DeviceCodeState,
    pub wrappers: Vec<WrapperReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marker: Option<MarkerReport>,
    /// The needed library that a transformed binary registers its wrappers with, if every HIP runtime loads their code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registers_with: Option<String>,
    /// The bundles of a fat binary, by offset.
    pub bundles: Vec<BundleReport>,
}

/// The reference of a transformed binary to its archives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MarkerReport {
    /// The start of the keys in the archives; `None` in the form of the early prototype.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_name: Option<String>,
    /// Paths of archives, relative to the directory of the binary.
    pub kpack_search_paths: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceCodeState {
    /// No device code and no reference to any.
    #[default]
    HostOnly,
    Fat,
    /// Refers to kernel archives.
    Transformed,
    SeparateDebug,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WrapperReport {
    /// The position in `.hipFatBinSegment`; in a transformed binary, the co_index.
    pub index: u32,
    /// Offset of the bundle from the start of `.hip_fatbin`; `None` once transformed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle_offset: Option<u64>,
}

pub(super) fn host_binary(content: &Content) -> Result<HostBinaryReport> {
    let host_only = HostBinaryReport { size: content.len(), ..Default::default() };
    Ok(match host_binary::examine(content)? {
        Examined::NoDeviceCode => host_only,
        Examined::SeparateDebug => {
            HostBinaryReport { state: DeviceCodeState::SeparateDebug, ..host_only }
        }
        Examined::Fat(analysis) => {
            let wrappers = analysis.wrappers().iter().map(|wrapper| WrapperReport {
                index: wrapper.index,
                bundle_offset: Some(wrapper.bundle_offset),
            });
            HostBinaryReport {
                state: DeviceCodeState::Fat,
                wrappers: wrappers.collect(),
                bundles: bundles(&analysis.fatbin())?,
                ..host_only
            }
        }
        Examined::Transformed(transformed) => {
            let indices = transformed.co_indexes().iter();
            let wrappers = indices.map(|&index| WrapperReport { index, bundle_offset: None });
            HostBinaryReport {
                size: content.len(),
                state: DeviceCodeState::Transformed,
                wrappers: wrappers.collect(),
                marker: Some(marker_report(transformed.marker())?),
                registers_with: needed_shim(content)?,
                bundles: Vec::new(),
            }
        }
    })
}

fn marker_report(bytes: &[u8]) -> Result<MarkerReport> {
    Ok(match marker::parse(bytes)? {
        AnyMarker::Map(map) => MarkerReport {
            kernel_name: Some(map.kernel_name),
            kpack_search_paths: map.kpack_search_paths,
        },
        AnyMarker::PathList(paths) => MarkerReport { kernel_name: None, kpack_search_paths: paths },
    })
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BundleReport {
    /// Offset from the start of the section or file.
    pub offset: u64,
    pub size: u64,
    /// `None` for a plain bundle.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub compression: Option<BundleCompression>,
    /// The entries in the order of their table.
    pub entries: Vec<BundleEntryReport>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BundleCompression {
    /// Version of the compressed bundle format.
    pub compressed_version: u16,
    /// `zlib` or `zstd`.
    pub compression_method: &'static str,
    /// Bytes of the bundle once it is decompressed.
    pub uncompressed_size: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BundleEntryReport {
    /// Entry id, e.g. `hipv4-amdgcn-amd-amdhsa--gfx1100`.
    pub id: String,
    /// The target ID in the entry id, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    pub size: u64,
    /// The SHA-256 of the bytes, in hex.
    pub sha256: Sha256Digest,
}

pub(super) fn bundles(content: &Content) -> Result<Vec<BundleReport>> {
    Bundles::new(content).map(|next| bundle(&next?)).collect()
}

/// Describes a bundle. Its decoded bytes stay pinned while the entries are digested.
fn bundle(found: &FatbinBundle) -> Result<BundleReport> {
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

pub(super) fn targets(bundles: &[BundleReport]) -> BTreeSet<String> {
    let filled = bundles.iter().flat_map(|bundle| &bundle.entries).filter(|entry| entry.size > 0);
    filled.filter_map(|entry| entry.target.clone()).collect()
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArchiveReport {
    /// The name that the archive was given, e.g. `blas_lib`.
    pub group_name: String,
    pub gfx_arch_family: String,
    /// The targets that it serves, in the order in which loaders try them.
    pub gfx_arches: Vec<String>,
    /// `zstd-per-kernel` or `none`.
    pub compression_scheme: String,
    pub size: u64,
    /// Distinct code objects.
    pub code_objects: usize,
    /// Bytes of all distinct code objects, uncompressed.
    pub uncompressed_size: u64,
    /// The rows: key → target → row.
    pub rows: BTreeMap<String, BTreeMap<String, ArchiveRow>>,
}

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

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CodeObjectReport {
    /// The target ID in the ELF header; `None` if the processor is unknown.
    pub target: Option<String>,
    pub flags: u32,
    /// The ABI version in its ELF header: 2 is code object V4, 3 is V5.
    pub abi_version: u8,
    pub size: u64,
    /// The kernels whose descriptors it defines.
    pub kernels: BTreeSet<String>,
    /// The metadata of the kernels in the notes; empty before code object V3. Notes of several versions
    /// give several values.
    pub metadata: Vec<CodeObjectMetadata>,
}

pub(super) fn code_object(content: &Content) -> Result<CodeObjectReport> {
    let header = code_object::read_header(content)?;
    Ok(CodeObjectReport {
        target: header.target.map(|target| target.to_string()),
        flags: header.flags,
        abi_version: header.abi_version,
        size: content.len(),
        kernels: code_object::kernel_names(content)?,
        metadata: amdgpu_metadata::read(content)?,
    })
}
