//! Device code in a host binary outside of `.hip_fatbin`: an array in its data, which the program passes to
//! the runtime itself, or bytes that another tool appended to the file.
//!
//! Compilers, bundlers and runtimes have the magics as constants, so a magic alone is not device code. The
//! whole header must be valid: a bundle needs a valid table with a device entry that has bytes, a
//! compressed bundle a stream that begins after its header and ends within the file, and an AMDGPU ELF file
//! tables within the file. `verify` searches host packages by [`first_code`].

use std::io::{self, BufReader, Read};
use std::ops::Range;

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::zstd_stream;
use rockpack_elf::ccob::{self, CcobMethod};
use rockpack_elf::{ElfFile, FILE_HEADER_SIZE, FileHeader, offload_bundle};

use super::device_ranges;
use super::search;
use rockpack_report::{EmbeddedCode, EmbeddedForm};

/// Maximum number of pieces of device code that a file may have outside of `.hip_fatbin`: a finding names each, and
/// damaged bytes could have any number.
const PLACES_LIMIT: usize = 1 << 12;

/// Bytes of a bundle's table that are read at once; a table of ten entries is smaller.
const TABLE_BUFFER: usize = 1 << 10;

/// Device code with the least number of its bytes.
struct FoundCode {
    form: EmbeddedForm,
    offset: u64,
    len: u64,
}

/// The device code of the linked x86-64 ELF file `content` that is not in `.hip_fatbin`, in order.
pub fn embedded_code(content: &Content) -> Result<Vec<EmbeddedCode>> {
    let _open = content.pin()?;
    let Some(file) = ElfFile::read(content, elf::EM_X86_64)? else {
        return Ok(Vec::new());
    };
    if !matches!(file.header.e_type, elf::ET_DYN | elf::ET_EXEC) {
        return Ok(Vec::new());
    }
    let mut places = Vec::new();
    for mut gap in gaps(device_ranges(&file)?, content.len()) {
        while let Some(found) = first(content, gap.clone())? {
            gap.start = found.offset.saturating_add(found.len);
            let FoundCode { form, offset, .. } = found;
            if places.len() == PLACES_LIMIT {
                let message = format!(
                    "the file has more than {PLACES_LIMIT} pieces of device code outside of .hip_fatbin"
                );
                let error = Error::new(Kind::Limit, message).at(&content.place(offset));
                return Err(error.hint("ship them as a separate file, or together as one archive"));
            }
            let mut sections = file.sections.iter().filter(|section| section.is_in_file());
            let section = sections.find(|it| (it.sh_offset..it.file_end()).contains(&offset));
            let name = section.map(|section| file.name(section)).filter(|name| !name.is_empty());
            let section = name.map(|name| name.into_owned());
            places.push(EmbeddedCode { form, offset, section });
        }
    }
    Ok(places)
}

/// The form of the first device code that begins in `bytes`, the first bytes of a file of any length.
pub fn device_code_form(bytes: Vec<u8>) -> Result<Option<EmbeddedForm>> {
    let read = Content::of_bytes(bytes);
    let file = Content::concat([&read, &Content::zeros(1 << 62)]);
    Ok(first(&file, 0..read.len())?.map(|found| found.form))
}

/// The form and the offset of the first device code that begins in `range`, which is inside of `content`.
pub fn first_code(content: &Content, range: Range<u64>) -> Result<Option<(EmbeddedForm, u64)>> {
    Ok(first(content, range)?.map(|found| (found.form, found.offset)))
}

fn first(content: &Content, range: Range<u64>) -> Result<Option<FoundCode>> {
    search::first(content, range, &|at, head| device_code_at(content, at, head))
}

/// The ranges of a file of `len` bytes that are outside of `ranges`.
fn gaps(mut ranges: Vec<Range<u64>>, len: u64) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    let mut gaps = Vec::new();
    let mut at = 0;
    for Range { start, end } in ranges {
        gaps.push(at..start.max(at));
        at = end.max(at);
    }
    gaps.push(at..len.max(at));
    gaps
}

/// The device code that begins at offset `at` of `content` with the bytes `head`, if any.
fn device_code_at(content: &Content, at: u64, head: &[u8]) -> Result<Option<FoundCode>> {
    let left = content.len().saturating_sub(at);
    let (form, len) = if let Some(rest) = head.strip_prefix(offload_bundle::MAGIC) {
        let count = rest.first_chunk().map_or(0, |count| u64::from_le_bytes(*count));
        (EmbeddedForm::Bundle, bundle_len(&content.slice(at..content.len())?, count)?)
    } else if head.starts_with(ccob::MAGIC) {
        (EmbeddedForm::CompressedBundle, compressed_len(head, left))
    } else {
        (EmbeddedForm::CodeObject, code_object_len(head, left))
    };
    Ok(len.map(|len| FoundCode { form, offset: at, len }))
}

/// The length of the bundle of `count` entries at the start of `bundle`, if its table is valid and it
/// has device code.
fn bundle_len(bundle: &Content, count: u64) -> Result<Option<u64>> {
    if !(1..=offload_bundle::ENTRY_LIMIT).contains(&count) {
        return Ok(None);
    }
    let entries = bundle.slice(offload_bundle::HEADER_LEN..bundle.len())?;
    let mut table = BufReader::with_capacity(TABLE_BUFFER, entries.reader());
    match bundle_end(&mut table, count, bundle.len()) {
        Ok(end) => Ok(end),
        Err(fault) if fault.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(fault) => Err(Error::from_io(fault).unwrap_or_else(|fault| {
            Error::library_failure("cannot read an offload bundle", fault)
        })),
    }
}

/// The end of the last device code of the `count` entries that `table` reads, in a file that has `len` bytes
/// from the start of the bundle.
fn bundle_end(table: &mut impl Read, count: u64, len: u64) -> io::Result<Option<u64>> {
    let mut device = None;
    for _ in 0..count {
        let (offset, size, id_len) = (number(table)?, number(table)?, number(table)?);
        let end = if size == 0 { Some(0) } else { offset.checked_add(size) };
        let Some(end) = end.filter(|end| *end <= len) else { return Ok(None) };
        if !(1..=offload_bundle::ID_LIMIT).contains(&id_len) {
            return Ok(None);
        }
        let mut id = Vec::new();
        table.by_ref().take(id_len).read_to_end(&mut id)?;
        if id.len() as u64 != id_len || !id.contains(&b'-') || !id.iter().all(u8::is_ascii_graphic)
        {
            return Ok(None);
        }
        if size > 0 && !id.starts_with(b"host-") {
            device = device.max(Some(end));
        }
    }
    Ok(device)
}

fn number(table: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    table.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// The length of the compressed bundle that begins with `head`, with `left` bytes to the end of the file.
/// Version 1 does not state its length.
fn compressed_len(head: &[u8], left: u64) -> Option<u64> {
    let header = ccob::read_header(&Content::of_bytes(head)).ok()?;
    let stream = head.get(usize::try_from(header.len).ok()?..)?.first_chunk::<4>()?;
    let begins = match header.method {
        CcobMethod::Zlib => {
            stream[0] == 0x78 && u16::from_be_bytes([stream[0], stream[1]]) % 31 == 0
        }
        CcobMethod::Zstd => zstd_stream::begins_frame(stream),
    };
    let total = header.total_size.unwrap_or(left);
    let whole = total > header.len && total <= left;
    (begins && whole).then(|| header.total_size.unwrap_or(header.len))
}

/// The length of the AMDGPU ELF file that begins with `head`, by its header's tables, with `left`
/// bytes to the end of the surrounding file.
fn code_object_len(head: &[u8], left: u64) -> Option<u64> {
    let header = FileHeader::read(&Content::of_bytes(*head.first_chunk::<64>()?)).ok()??;
    let is_amdgpu = [elf::ET_REL, elf::ET_EXEC, elf::ET_DYN].contains(&header.e_type)
        && header.e_machine == elf::EM_AMDGPU
        && (header.e_version, header.e_ehsize) == (1, 64);
    let segments = end_within(header.e_phoff, header.e_phentsize, header.e_phnum, left)?;
    let sections = end_within(header.e_shoff, header.e_shentsize, header.e_shnum, left)?;
    is_amdgpu.then(|| segments.max(sections).max(FILE_HEADER_SIZE))
}

/// The end of a table of `count` entries of `size` bytes; `None` if it is above `limit`.
fn end_within(start: u64, size: u16, count: u16, limit: u64) -> Option<u64> {
    start.checked_add(u64::from(size) * u64::from(count)).filter(|end| *end <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_what_ranges_leave() {
        assert_eq!(gaps(vec![3..3, 0..0], 9), [0..0, 0..3, 3..9]);
        assert_eq!(gaps(vec![4..6, 1..3], 9), [0..1, 3..4, 6..9]);
        assert_eq!(gaps(vec![2..8, 3..5], 6), [0..2, 8..8, 8..8]);
    }

    fn bundle() -> Vec<u8> {
        let id = b"hip-amdgcn-amd-amdhsa--gfx1100";
        let words = [1_u64, 96, 4, id.len() as u64].map(u64::to_le_bytes).concat();
        let mut bytes = [&offload_bundle::MAGIC[..], &words, id].concat();
        bytes.resize(96, 0);
        bytes.extend(b"code");
        bytes
    }

    fn compressed() -> Vec<u8> {
        let mut bytes = b"CCOB\x02\0\x01\0".to_vec();
        bytes.extend([40_u32, 100].map(u32::to_le_bytes).concat());
        bytes.extend([0; 8]);
        bytes.extend(b"\x28\xb5\x2f\xfd");
        bytes.resize(40, 0);
        bytes
    }

    fn found(bytes: Vec<u8>) -> Option<u64> {
        let content = Content::of_bytes(bytes);
        first_code(&content, 0..content.len()).unwrap().map(|(_, offset)| offset)
    }

    #[test]
    fn a_bundle_is_found_wherever_it_stands() {
        for device in [bundle(), compressed()] {
            for before in [0, 1, 4095, (1 << 20) - 10, 1 << 20, (1 << 20) + 13, (2 << 20) + 1] {
                let bytes = [vec![b'C'; before], device.clone()].concat();
                assert_eq!(found(bytes), Some(before as u64), "{before}");
            }
        }
    }

    #[test]
    fn the_magic_alone_is_not_device_code() {
        assert_eq!(found([&offload_bundle::MAGIC[..], &[0; 100]].concat()), None);
        assert_eq!(found(offload_bundle::MAGIC.to_vec()), None);
        assert_eq!(found([&b"CCOB\0compressed bundles begin so"[..], &[0; 100]].concat()), None);
        for (device, least) in [(bundle(), 100), (compressed(), 40)] {
            for len in 0..least {
                assert_eq!(found(device[..len].to_vec()), None, "{len}");
            }
        }
    }
}
