//! The result of examining a file.

use std::sync::Arc;

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_elf::{Dynamic, ElfFile, ProgramHeader};

use super::layout::Layout;
use super::sections::Tail;
use super::symbols::SymbolEdit;
use super::transformed::Transformed;
use super::wrappers::BoundWrapper;

/// The result of examining a file.
#[derive(Debug)]
pub enum Examined {
    /// No linked x86-64 ELF file, or one without device code.
    NoDeviceCode,
    /// A fat binary that can be transformed.
    Fat(Box<Analysis>),
    /// A binary whose device code is in kernel archives already.
    Transformed(Transformed),
    /// The separate debug information of a binary: it has section headers for device code, but
    /// no bytes.
    SeparateDebug,
}

/// A fat binary that can be transformed; made by [`examine`](super::examine).
#[derive(Debug)]
pub struct Analysis {
    pub(super) file: ElfFile,
    pub(super) dynamic: Dynamic,
    pub(super) layout: Layout,
    pub(super) program_headers: Vec<ProgramHeader>,
    pub(super) tail: Tail,
    pub(super) fatbin: Content,
    pub(super) bound: Vec<BoundWrapper>,
    pub(super) symbol_edits: Vec<SymbolEdit>,
    pub(super) wrappers: Vec<WrapperRef>,
}

/// A wrapper and the bundle that it points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrapperRef {
    /// Position among the wrappers of the binary.
    pub index: u32,
    /// Offset of its bundle from the start of `.hip_fatbin`.
    pub bundle_offset: u64,
    /// Name of the bundle's symbol, `__hip_fatbin_<id>`, where exactly one is known.
    pub symbol: Option<Arc<str>>,
}

impl Analysis {
    /// The fat binary.
    pub fn original(&self) -> &Content {
        self.file.content()
    }

    /// The bytes of `.hip_fatbin`.
    pub fn fatbin(&self) -> Content {
        self.fatbin.clone()
    }

    /// Length of the transformed file in bytes, whatever the marker.
    pub fn output_len(&self) -> u64 {
        self.tail.file_end
    }

    /// The wrappers, in the order of their indexes.
    pub fn wrappers(&self) -> &[WrapperRef] {
        &self.wrappers
    }

    /// The name by which other binaries need this one.
    pub fn soname(&self) -> Result<Option<String>> {
        self.dynamic.last_string(&self.file, elf::DT_SONAME)
    }

    /// Bytes available for a marker: [`MARKER_AREA`](super::MARKER_AREA), or fewer if the device code was
    /// smaller.
    pub fn marker_capacity(&self) -> u64 {
        self.layout.area
    }
}
