//! Constants of the transform: names of sections, sizes, and the ranges of device code.

use std::ops::Range;

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_elf::ElfFile;

/// Bytes set aside for the reference to kernel archives in every transformed binary, so that a
/// later rewrite moves nothing. Two hundred bytes are usual.
pub const MARKER_AREA: u64 = 1024;

/// Device code smaller than this is refused, because a reference might not fit in its place. The
/// smallest real one, a single compressed kernel, has a thousand bytes.
pub(super) const LEAST_MARKER_AREA: u64 = 256;

/// Page size of the machine, by which segments are mapped.
pub(super) const PAGE: u64 = 0x1000;

/// Most faults of a kind reported at once: a damaged table may have a fault per entry.
pub(super) const MAX_FAULTS: usize = 16;

/// Name of the section with the offload bundles.
pub const FATBIN_SECTION: &str = ".hip_fatbin";
/// Name of the section with the wrappers.
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

/// The file ranges of the sections with offload bundles.
pub(super) fn device_ranges(file: &ElfFile) -> Result<Vec<Range<u64>>> {
    let sections = file.sections_named(FATBIN_SECTION).into_iter();
    let in_file = sections.filter(|(_, section)| section.is_in_file());
    in_file.map(|(index, section)| file.file_range(index, &section)).collect()
}
