//! Indexes of kernel databases (`.dat`, `.dat.zlib`).

use std::collections::BTreeSet;

use serde::Serialize;

use crate::content::Content;
use crate::error::Result;
use crate::gfx::BaseArch;
use crate::input::database::{self, IndexDescription};

/// What an index says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KernelIndex {
    /// Size of the file in bytes.
    pub size: u64,
    /// The archs that it names.
    pub archs: BTreeSet<BaseArch>,
    /// The operations that it has kernels for.
    pub operations: BTreeSet<String>,
    /// Number of solutions: of kernels with the problems that they solve.
    pub solutions: u64,
    /// The files of code objects that it refers to, beside it.
    pub code_object_files: BTreeSet<String>,
    /// Further libraries that are loaded when they are needed: `<name>.dat` beside it.
    pub libraries: BTreeSet<String>,
}

pub(super) fn index(content: &Content) -> Result<KernelIndex> {
    let IndexDescription { archs, operations, solutions, code_object_files, libraries } =
        database::describe_index(content)?;
    let size = content.len();
    Ok(KernelIndex { size, archs, operations, solutions, code_object_files, libraries })
}
