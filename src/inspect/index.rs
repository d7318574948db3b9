//! Indexes of kernel databases (`.dat`, `.dat.zlib`).

use rockpack_core::content::Content;
use rockpack_core::error::Result;
use serde::Serialize;

use rockpack_split::input::database::{self, IndexDescription};

/// An index and its description.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KernelIndex {
    /// Size of the file in bytes.
    pub size: u64,
    /// The library, archs and entries of the index.
    #[serde(flatten)]
    pub description: IndexDescription,
}

pub(super) fn index(content: &Content) -> Result<KernelIndex> {
    Ok(KernelIndex { size: content.len(), description: database::describe_index(content)? })
}
