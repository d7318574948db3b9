//! Examines fat host binaries, and makes them host-only or takes bundles out.
//!
//! The transform takes the device code out of a shared library or executable and leaves a short reference to
//! kernel archives in its place. The file that results is an ordinary ELF file: its program headers stay
//! after the ELF header (GNU `strip` and `objcopy` always put them there, and kernels before 5.18
//! compute `AT_PHDR` from it), addresses of code and data do not change, and the removed range is a hole
//! between two load segments.
//!
//! It runs in two phases. [`examine`] reads the small tables, decides the whole layout and makes every
//! refusal that depends on the binary. [`Analysis::apply`] writes once the install paths in the reference are
//! known, and refuses a reference that does not fit. The reference's length never changes the layout.
//!
//! The transform refuses, among others: static executables with device code, device code without wrappers,
//! wrappers that point outside of the device code, anything else that points into it, files without room for
//! the program headers that the split segment needs, and files whose sections do not show what the dynamic
//! linker reads: its symbols, relocations, and the tables that make that room. It also refuses files that no
//! linker writes and that tools read in different ways: a first section that is not the null section, section
//! names outside a string table of their own, duplicates of segments or dynamic tags that must be unique,
//! load segments that share a page but not its bytes, and a dynamic section without `DT_NULL` in its segment.
//! In files that were already transformed, it refuses a reference that is not loaded from its file offset, sections
//! that share bytes, and a section of device code that still has bytes. In files that seem to have no device
//! code, it refuses device code next to `.dynamic` or wrappers without bytes, and offload
//! bundles in files without section names or in sections that claim to have no bytes.

mod analyze;
mod apply;
mod check;
mod embedded;
mod headers;
mod layout;
mod make_room;
mod references;
mod registration;
mod search;
mod symbols;
mod thinned;
mod transformed;
mod wrappers;

use std::ops::Range;
use std::sync::Arc;

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_elf::{Dynamic, ElfFile, ProgramHeader};

use headers::Tail;
use layout::Layout;
use registration::Registration;
use symbols::SymbolEdit;
use wrappers::BoundWrapper;

pub use analyze::{examine, examine_for};
pub use embedded::{device_code_form, embedded_code, first_code};
pub use layout::MovedBundle;
pub use transformed::Transformed;

/// Whether the file is transformed: its device code was removed and it has a marker.
pub fn is_transformed(content: &Content) -> Result<bool> {
    let file = ElfFile::read(content, elf::EM_X86_64)?;
    Ok(file.is_some_and(|file| !file.sections_named(MARKER_SECTION).is_empty()))
}

#[derive(Debug)]
pub enum Examined {
    /// Not a linked x86-64 ELF file, or one without device code.
    NoDeviceCode,
    Fat(Box<Analysis>),
    /// A binary whose device code is in kernel archives already.
    Transformed(Transformed),
    /// The separate debug information of a binary: it has section headers for device code, but
    /// no bytes.
    SeparateDebug,
}

/// A fat binary that can be transformed; made by [`examine`].
#[derive(Debug, Clone)]
pub struct Analysis {
    file: ElfFile,
    dynamic: Dynamic,
    layout: Layout,
    program_headers: Vec<ProgramHeader>,
    tail: Tail,
    fatbin: Content,
    bound: Vec<BoundWrapper>,
    symbol_edits: Vec<SymbolEdit>,
    wrappers: Vec<WrapperRef>,
    /// The changes for a binary that is made for every HIP runtime.
    registration: Option<Registration>,
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
    pub fn original(&self) -> &Content {
        self.file.content()
    }

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

    /// Bytes available for a marker: [`MARKER_AREA`], or fewer if the device code was
    /// smaller.
    pub fn marker_capacity(&self) -> u64 {
        self.layout.area
    }
}

/// Bytes set aside for the reference to kernel archives in every transformed binary, so that a
/// later rewrite moves nothing. Two hundred bytes are usual.
pub const MARKER_AREA: u64 = 1024;

/// Device code smaller than this is refused, because a reference might not fit in its place. The
/// smallest real one, a single compressed kernel, has a thousand bytes.
const LEAST_MARKER_AREA: u64 = 256;

/// Page size of the machine, by which segments are mapped.
const PAGE: u64 = 0x1000;

/// Maximum number of faults of a kind reported at once: a damaged table may have a fault per entry.
const MAX_FAULTS: usize = 16;

/// The library of `runtime/shim`, by which binaries for every HIP runtime register their wrappers.
pub const SHIM: &str = "librocm_kpack_shim.so.0";

/// Whether a `DT_NEEDED` entry is [`SHIM`]: its soname, or a path relative to the folder of the binary.
pub fn is_shim(needed: &str) -> bool {
    let path = needed.strip_prefix("$ORIGIN").unwrap_or_default();
    needed == SHIM || path.starts_with('/') && path.rsplit('/').next() == Some(SHIM)
}

/// Name of the section with the offload bundles.
pub const FATBIN_SECTION: &str = ".hip_fatbin";
pub const WRAPPER_SECTION: &str = ".hipFatBinSegment";
/// Name of the section with the reference to kernel archives.
pub const MARKER_SECTION: &str = ".rocm_kpack_ref";

/// The bytes of every section with offload bundles, whether the file can be transformed or not.
pub fn device_sections(content: &Content) -> Result<Vec<Content>> {
    let Some(file) = ElfFile::read(content, elf::EM_X86_64)? else {
        return Ok(Vec::new());
    };
    device_ranges(&file)?.into_iter().map(|range| content.slice(range)).collect()
}

fn device_ranges(file: &ElfFile) -> Result<Vec<Range<u64>>> {
    let sections = file.sections_named(FATBIN_SECTION).into_iter();
    let in_file = sections.filter(|(_, section)| section.is_in_file());
    in_file.map(|(index, section)| file.file_range(index, &section)).collect()
}

/// The next multiple of `align`, a power of two. Addresses are validated to be small.
fn align_up(value: u64, align: u64) -> u64 {
    value.checked_next_multiple_of(align).unwrap_or(u64::MAX)
}

/// Whether the bytes of `range` are all zero; an empty or reversed range is.
fn is_zero(file: &ElfFile, range: Range<u64>) -> Result<bool> {
    is_filled_with(file, range, &[0])
}

fn is_filled_with(file: &ElfFile, range: Range<u64>, fillers: &[u8]) -> Result<bool> {
    Ok(file.content().first_other_byte(range, fillers)?.is_none())
}
