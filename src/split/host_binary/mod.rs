//! Fat host binaries: what is in them, and how they become host-only.
//!
//! The transform takes the device code out of a shared library or executable and leaves a short
//! reference to kernel archives in its place. The file that results is an ordinary ELF file: its
//! program headers stay behind the ELF header (`strip`, `objcopy` and `eu-strip` put them there
//! whatever they find, and kernels before 5.18 compute `AT_PHDR` from it), addresses of code and
//! data do not change, and the removed range is a hole between two load segments.
//!
//! It runs in two phases. [`examine`] reads the small tables, decides the whole layout and makes
//! every refusal that the binary gives cause for; [`Analysis::apply`] writes, when the install paths that
//! the reference names are known, and refuses a reference that does not fit. The reference's length
//! never changes the layout.
//!
//! Refused, among others: static executables with device code, device code without wrappers,
//! wrappers that point outside of the device code, anything else that points into it, files
//! without room for the program headers that the split segment needs, and files whose sections do
//! not show what the dynamic linker reads: its symbols, relocations, and what makes that room. So is
//! what no linker writes and tools read in different ways: a first section that is not the null
//! section, section names that are no string table of their own, two segments of what there is one
//! of, two tags of which loaders take one, load segments that share a page and not its bytes, and a
//! dynamic section without `DT_NULL` in its segment. Of files that were transformed
//! already: a reference that is not loaded from where it is, sections that share bytes, and a section
//! of device code that still has bytes. Of files that seem to have no device code: dropped bytes of
//! `.dynamic` or the wrappers beside those of device code, and offload bundles where no section has a
//! name or theirs is said to have no bytes.

mod analyze;
mod apply;
mod bytes;
mod check;
mod embedded;
mod layout;
mod make_room;
mod probe;
mod program_headers;
mod references;
mod search;
mod sections;
mod splices;
mod symbols;
mod transformed;
mod wrappers;

use std::ops::Range;
use std::sync::Arc;

use object::elf;
use rockpack_base::content::Content;
use rockpack_base::error::Result;
use rockpack_base::formats::elf::{Dynamic, ElfFile, ProgramHeader};

use layout::Layout;
use sections::Tail;
use symbols::SymbolEdit;
use wrappers::BoundWrapper;

pub use embedded::embedded_code;
pub use transformed::Transformed;

/// Bytes set aside for the reference to kernel archives in every transformed binary, so that a
/// later rewrite moves nothing. Two hundred bytes are usual.
pub const MARKER_AREA: u64 = 1024;

/// Device code smaller than this is refused, because a reference might not fit in its place. The
/// smallest real one, a single compressed kernel, has a thousand bytes.
const LEAST_MARKER_AREA: u64 = 256;

/// Page size of the machine: what loads are mapped by.
pub(crate) const PAGE: u64 = 0x1000;

/// Faults of a kind that are reported at once: a damaged table has as many as entries.
const MAX_FAULTS: usize = 16;

/// Name of the section with the offload bundles.
pub const FATBIN_SECTION: &str = ".hip_fatbin";
/// Name of the section with the wrappers.
pub const WRAPPER_SECTION: &str = ".hipFatBinSegment";
/// Name of the section with the reference to kernel archives.
pub const MARKER_SECTION: &str = ".rocm_kpack_ref";

/// What a file turned out to be.
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

/// Finds out what `content` is. Every refusal that the binary gives cause for happens here.
pub fn examine(content: &Content) -> Result<Examined> {
    let _open = content.pin()?;
    match ElfFile::read(content, elf::EM_X86_64)? {
        Some(file) => analyze::examine(file),
        None => Ok(Examined::NoDeviceCode),
    }
}

/// The bytes of every section with offload bundles, whether the file can be transformed or not.
pub fn device_sections(content: &Content) -> Result<Vec<Content>> {
    let Some(file) = ElfFile::read(content, elf::EM_X86_64)? else {
        return Ok(Vec::new());
    };
    device_ranges(&file)?.into_iter().map(|range| content.slice(range)).collect()
}

/// Where in the file the sections with offload bundles are.
fn device_ranges(file: &ElfFile) -> Result<Vec<Range<u64>>> {
    let sections = file.sections_named(FATBIN_SECTION).into_iter();
    let in_file = sections.filter(|(_, section)| section.is_in_file());
    in_file.map(|(index, section)| file.file_range(index, &section)).collect()
}

/// Whether device code was taken out of the file, and a marker says where it is.
pub fn is_transformed(content: &Content) -> Result<bool> {
    let file = ElfFile::read(content, elf::EM_X86_64)?;
    Ok(file.is_some_and(|file| !file.sections_named(MARKER_SECTION).is_empty()))
}

/// A fat binary that can be transformed; made by [`examine`].
#[derive(Debug)]
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

    /// The names of the libraries that it needs.
    pub fn needed(&self) -> Result<Vec<String>> {
        self.dynamic.names(&self.file, elf::DT_NEEDED)
    }

    /// Bytes that can hold a marker: [`MARKER_AREA`], or fewer where the device code was
    /// smaller.
    pub fn marker_capacity(&self) -> u64 {
        self.layout.area
    }
}
