//! AMDGPU code objects in files of their own.

use std::collections::BTreeSet;

use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_elf::amdgpu_metadata::{self, CodeObjectMetadata};
use rockpack_elf::code_object;
use serde::Serialize;

/// A code object in a file of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CodeObjectReport {
    /// The target ID in the ELF header; `None` if the processor is unknown.
    pub target: Option<String>,
    /// The flags of its ELF header.
    pub flags: u32,
    /// The version of the ABI that its ELF header states: 2 is code object V4, 3 is V5.
    pub abi_version: u8,
    /// Size of the file in bytes.
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
