//! Examines fat host binaries and makes them host-only.
//!
//! The transform takes the device code out of a shared library or executable and leaves a short reference to
//! kernel archives in its place. The file that results is an ordinary ELF file: its program headers stay
//! behind the ELF header (`strip`, `objcopy` and `eu-strip` always put them there, and kernels before 5.18
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
//! names that are no string table of their own, duplicates of segments or dynamic tags that must be unique,
//! load segments that share a page and not its bytes, and a dynamic section without `DT_NULL` in its segment.
//! In files that were already transformed, it refuses a reference that is not loaded from its place, sections
//! that share bytes, and a section of device code that still has bytes. In files that seem to have no device
//! code, it refuses dropped bytes of `.dynamic` or of wrappers beside those of device code, and offload
//! bundles in files without section names or in sections that claim to have no bytes.

mod analysis;
mod analyze;
mod apply;
mod bytes;
mod check;
mod check_result;
mod embedded;
mod fixed;
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

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_elf::ElfFile;

pub use analysis::{Analysis, Examined, WrapperRef};
pub use analyze::examine;
pub use embedded::{device_code_form, embedded_code};
pub use fixed::{FATBIN_SECTION, MARKER_AREA, MARKER_SECTION, WRAPPER_SECTION, device_sections};
pub use transformed::Transformed;

/// Whether the file is transformed: its device code was removed and it has a marker.
pub fn is_transformed(content: &Content) -> Result<bool> {
    let file = ElfFile::read(content, elf::EM_X86_64)?;
    Ok(file.is_some_and(|file| !file.sections_named(MARKER_SECTION).is_empty()))
}
