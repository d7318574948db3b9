//! The sections with offload bundles.

use std::ops::Range;

use object::elf;
use rockpack_base::content::Content;
use rockpack_base::error::Result;
use rockpack_base::formats::elf::ElfFile;

use super::fixed::FATBIN_SECTION;

/// The bytes of every section with offload bundles, whether the file can be transformed or not.
pub fn device_sections(content: &Content) -> Result<Vec<Content>> {
    let Some(file) = ElfFile::read(content, elf::EM_X86_64)? else {
        return Ok(Vec::new());
    };
    device_ranges(&file)?.into_iter().map(|range| content.slice(range)).collect()
}

/// Where in the file the sections with offload bundles are.
pub(super) fn device_ranges(file: &ElfFile) -> Result<Vec<Range<u64>>> {
    let sections = file.sections_named(FATBIN_SECTION).into_iter();
    let in_file = sections.filter(|(_, section)| section.is_in_file());
    in_file.map(|(index, section)| file.file_range(index, &section)).collect()
}
