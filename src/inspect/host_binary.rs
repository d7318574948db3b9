//! Linked x86-64 ELF files: fat, transformed, host-only, or the debug file of one.

use serde::Serialize;

use super::bundle::{self, Bundle};
use crate::content::Content;
use crate::error::Result;
use crate::formats::marker::{self, AnyMarker};
use crate::split::host_binary::{self, Analysis, Examined, Transformed};

/// A host binary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostBinary {
    /// Whether and how it holds device code.
    pub state: State,
    /// Its wrappers, by index.
    pub wrappers: Vec<Wrapper>,
    /// The marker of a transformed binary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marker: Option<Marker>,
    /// The bundles of a fat binary, by offset.
    pub bundles: Vec<Bundle>,
}

/// The reference of a transformed binary to its archives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Marker {
    /// Its key in the archives; the early prototype's form has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_name: Option<String>,
    /// Paths relative to the binary's directory.
    pub kpack_search_paths: Vec<String>,
}

/// Whether a host binary holds device code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
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
pub struct Wrapper {
    /// Its position in `.hipFatBinSegment`; the co_index of a transformed binary.
    pub index: u32,
    /// Offset of its bundle from the start of `.hip_fatbin`; `None` once transformed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle_offset: Option<u64>,
}

pub(super) fn host_binary(content: &Content) -> Result<HostBinary> {
    Ok(match host_binary::examine(content)? {
        Examined::NoDeviceCode => plain(State::HostOnly),
        Examined::SeparateDebug => plain(State::SeparateDebug),
        Examined::Fat(analysis) => fat(&analysis)?,
        Examined::Transformed(transformed) => transformed_binary(&transformed)?,
    })
}

fn plain(state: State) -> HostBinary {
    HostBinary { state, wrappers: Vec::new(), marker: None, bundles: Vec::new() }
}

fn fat(analysis: &Analysis) -> Result<HostBinary> {
    let wrapper = |w: &host_binary::WrapperRef| Wrapper {
        index: w.index,
        bundle_offset: Some(w.bundle_offset),
    };
    Ok(HostBinary {
        wrappers: analysis.wrappers().iter().map(wrapper).collect(),
        bundles: bundle::bundles(&analysis.fatbin())?,
        ..plain(State::Fat)
    })
}

fn transformed_binary(transformed: &Transformed) -> Result<HostBinary> {
    let indices = transformed.co_indexes().iter();
    Ok(HostBinary {
        wrappers: indices.map(|&index| Wrapper { index, bundle_offset: None }).collect(),
        marker: Some(marker(transformed.marker())?),
        ..plain(State::Transformed)
    })
}

fn marker(bytes: &[u8]) -> Result<Marker> {
    Ok(match marker::parse(bytes)? {
        AnyMarker::Map(map) => Marker {
            kernel_name: Some(map.kernel_name),
            kpack_search_paths: map.kpack_search_paths,
        },
        AnyMarker::PathList(paths) => Marker { kernel_name: None, kpack_search_paths: paths },
    })
}
