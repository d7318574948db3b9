//! Linked x86-64 ELF files: fat, transformed, host-only, or the debug file of one.

use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_elf::marker::{self, AnyMarker};
use serde::Serialize;

use super::bundle::{self, BundleReport};
use rockpack_split::host_binary::{self, Analysis, Examined, Transformed};

/// A host binary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostBinaryReport {
    /// Whether and how it holds device code.
    pub state: DeviceCodeState,
    /// The wrappers, by index.
    pub wrappers: Vec<WrapperReport>,
    /// The marker of a transformed binary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marker: Option<MarkerReport>,
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

/// Whether a host binary holds device code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceCodeState {
    /// No device code and no reference to any.
    HostOnly,
    /// Holds device code.
    Fat,
    /// Refers to kernel archives.
    Transformed,
    /// A separate debug file.
    SeparateDebug,
}

/// A wrapper of a host binary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WrapperReport {
    /// The position in `.hipFatBinSegment`; in a transformed binary, the co_index.
    pub index: u32,
    /// Offset of the bundle from the start of `.hip_fatbin`; `None` once transformed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle_offset: Option<u64>,
}

pub(super) fn host_binary(content: &Content) -> Result<HostBinaryReport> {
    Ok(match host_binary::examine(content)? {
        Examined::NoDeviceCode => plain(DeviceCodeState::HostOnly),
        Examined::SeparateDebug => plain(DeviceCodeState::SeparateDebug),
        Examined::Fat(analysis) => fat(&analysis)?,
        Examined::Transformed(transformed) => transformed_binary(&transformed)?,
    })
}

fn plain(state: DeviceCodeState) -> HostBinaryReport {
    HostBinaryReport { state, wrappers: Vec::new(), marker: None, bundles: Vec::new() }
}

fn fat(analysis: &Analysis) -> Result<HostBinaryReport> {
    Ok(HostBinaryReport {
        wrappers: analysis
            .wrappers()
            .iter()
            .map(|w| WrapperReport { index: w.index, bundle_offset: Some(w.bundle_offset) })
            .collect(),
        bundles: bundle::bundles(&analysis.fatbin())?,
        ..plain(DeviceCodeState::Fat)
    })
}

fn transformed_binary(transformed: &Transformed) -> Result<HostBinaryReport> {
    let indices = transformed.co_indexes().iter();
    Ok(HostBinaryReport {
        wrappers: indices.map(|&index| WrapperReport { index, bundle_offset: None }).collect(),
        marker: Some(marker(transformed.marker())?),
        ..plain(DeviceCodeState::Transformed)
    })
}

fn marker(bytes: &[u8]) -> Result<MarkerReport> {
    Ok(match marker::parse(bytes)? {
        AnyMarker::Map(map) => MarkerReport {
            kernel_name: Some(map.kernel_name),
            kpack_search_paths: map.kpack_search_paths,
        },
        AnyMarker::PathList(paths) => MarkerReport { kernel_name: None, kpack_search_paths: paths },
    })
}
