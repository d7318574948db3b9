//! Device code in a host binary, wherever it lies: found by its own bytes, so that neither a
//! stripped section table nor another section name hides it.
//!
//! Compilers and runtimes contain the magic of a bundle as a constant; what counts is a magic
//! with a table (or, compressed, a header and the start of a stream) behind it that makes sense, and
//! the header of an AMDGPU ELF file. The split looks for the same outside of `.hip_fatbin`, by code of
//! its own.

use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;

use flate2::bufread::ZlibDecoder;
use object::elf;
use rockpack_core::content::{Content, ContentReader, WINDOW};
use rockpack_core::error::{Error, Result};
use rockpack_core::hold::{fault, hold};
use rockpack_report::EmbeddedForm;
use zstd::stream::read::Decoder;

use crate::own::elf_file::u16_at;

pub(crate) const BUNDLE_MAGIC: &[u8; 24] = b"__CLANG_OFFLOAD_BUNDLE__";
pub(crate) const COMPRESSED_MAGIC: &[u8; 4] = b"CCOB";
/// Longest entry id; real ones have some sixty bytes.
pub(crate) const ID_LIMIT: u64 = 1024;
/// Most entries of a bundle; there are some hundred targets.
pub(crate) const ENTRY_LIMIT: u64 = 4096;
/// First bytes of a zstd frame.
pub(super) const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// First bytes of an ELF file.
const ELF_MAGIC: &[u8; 4] = b"\x7fELF";

/// Device code among other bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Embedded {
    pub(crate) form: EmbeddedForm,
    pub(crate) offset: u64,
}

/// The first device code that begins in `range` of `content`.
pub(crate) fn first_code(content: &Content, range: Range<u64>) -> Result<Option<Embedded>> {
    let mut reader = content.slice(range.clone())?.reader();
    let mut window = vec![0; WINDOW + BUNDLE_MAGIC.len()];
    // Bytes at the front of the window that the last pass has left over, and where they are.
    let (mut kept, mut base) = (0, range.start);
    loop {
        let len = reader.read_window(&mut window[kept..])?;
        let filled = kept + len;
        for at in candidates(&window[..filled]) {
            let offset = base + at as u64;
            if let Some(form) = form(&content.slice(offset..content.len())?)? {
                return Ok(Some(Embedded { form, offset }));
            }
        }
        if len == 0 {
            return Ok(None);
        }
        let keep = filled.min(BUNDLE_MAGIC.len() - 1);
        window.copy_within(filled - keep..filled, 0);
        base += (filled - keep) as u64;
        kept = keep;
    }
}

/// The offsets of magics in `bytes`, in order. The C library searches for one byte of each: of all bytes, `O`
/// and the first one of ELF are the rarest.
fn candidates(bytes: &[u8]) -> Vec<usize> {
    let magics: [(&[u8], usize); 3] = [(BUNDLE_MAGIC, 8), (COMPRESSED_MAGIC, 2), (ELF_MAGIC, 0)];
    let mut found = Vec::new();
    for (magic, skip) in magics {
        let mut rest = bytes;
        while rest.skip_until(magic[skip]).is_ok_and(|passed| passed > 0) {
            // Behind the last of these bytes, the end of all is where the search stops.
            let start = (bytes.len() - rest.len() - 1).checked_sub(skip);
            found.extend(start.filter(|start| bytes[*start..].starts_with(magic)));
        }
    }
    found.sort_unstable();
    found
}

/// The form of the device code at the start of `rest`; `None` if there is none.
fn form(rest: &Content) -> Result<Option<EmbeddedForm>> {
    let (is_it, form) = match array::<4>(rest, 0)? {
        Some(magic) if magic == *COMPRESSED_MAGIC => {
            (is_compressed(rest)?, EmbeddedForm::CompressedBundle)
        }
        Some(magic) if magic == *ELF_MAGIC => (is_code_object(rest)?, EmbeddedForm::CodeObject),
        Some(_) => (is_plain(rest)?, EmbeddedForm::Bundle),
        None => return Ok(None),
    };
    Ok(is_it.then_some(form))
}

/// Whether a table of entries follows, each with an id and inside of the file, and one of them is
/// device code.
fn is_plain(bundle: &Content) -> Result<bool> {
    let count = array(bundle, 24)?.map_or(0, u64::from_le_bytes);
    if !(1..=ENTRY_LIMIT).contains(&count) {
        return Ok(false);
    }
    let (mut at, mut device) = (32, false);
    for _ in 0..count {
        let Some(row) = array::<24>(bundle, at)? else { return Ok(false) };
        let (words, _) = row.as_chunks::<8>();
        let [offset, size, id_len] = [0, 1, 2].map(|at| u64::from_le_bytes(words[at]));
        let inside = size == 0 || offset.checked_add(size).is_some_and(|end| end <= bundle.len());
        if !inside || !(1..=ID_LIMIT).contains(&id_len) || at + 24 + id_len > bundle.len() {
            return Ok(false);
        }
        let id = bundle.read_vec(at + 24..at + 24 + id_len, ID_LIMIT, "entry id")?;
        if !id.contains(&b'-') || !id.iter().all(u8::is_ascii_graphic) {
            return Ok(false);
        }
        device |= size > 0 && !id.starts_with(b"host-");
        at += 24 + id_len;
    }
    Ok(device)
}

/// Whether a known version, method and sizes follow, and a stream of that method.
fn is_compressed(bundle: &Content) -> Result<bool> {
    let fields = match CompressedHeader::read(bundle) {
        Err(error) if error.is_of_reading() => return Err(error),
        Err(_) => return Ok(false),
        Ok(fields) => fields,
    };
    let begins = match (fields.method, array::<4>(bundle, fields.header)?) {
        // The second byte makes a number that 31 divides of both.
        (0, Some([0x78, second, ..])) => (0x7800 + u16::from(second)).is_multiple_of(31),
        (1, Some(magic)) => magic == ZSTD_MAGIC || is_skippable(magic),
        _ => false,
    };
    let total = fields.total.unwrap_or(bundle.len());
    Ok(begins && total > fields.header && total <= bundle.len())
}

/// Whether these are the first bytes of a skippable zstd frame.
pub(super) fn is_skippable(magic: [u8; 4]) -> bool {
    u32::from_le_bytes(magic) >> 4 == 0x184_d2a5
}

/// Whether this is the header of an AMDGPU ELF file whose tables are inside of the file around it.
fn is_code_object(rest: &Content) -> Result<bool> {
    let Some(header) = array::<64>(rest, 0)? else { return Ok(false) };
    let kinds = [elf::ET_REL.0, elf::ET_EXEC.0, elf::ET_DYN.0];
    let amdgpu = kinds.contains(&u16_at(&header, 16)) && u16_at(&header, 18) == elf::EM_AMDGPU.0;
    let versions = header[4..7] == [2, 1, 1] && header[20..24] == [1, 0, 0, 0];
    let mut tables = [(4, 54), (5, 58)].into_iter();
    Ok(amdgpu
        && versions
        && u16_at(&header, 52) == 64
        && tables.all(|(word, size)| has_table(rest, &header, word, size)))
}

/// Whether a table is inside of the file: its offset is in the word `word` of the header, and the size
/// and the number of its rows are at `size`.
fn has_table(rest: &Content, header: &[u8; 64], word: usize, size: usize) -> bool {
    let (words, _) = header.as_chunks::<8>();
    let len = u64::from(u16_at(header, size)) * u64::from(u16_at(header, size + 2));
    let end = u64::from_le_bytes(words[word]).checked_add(len);
    end.is_some_and(|end| end <= rest.len())
}

/// The bytes at `at`, if there are as many.
pub(super) fn array<const N: usize>(content: &Content, at: u64) -> Result<Option<[u8; N]>> {
    if at.checked_add(N as u64).is_some_and(|end| end <= content.len()) {
        content.read_array(at).map(Some)
    } else {
        Ok(None)
    }
}

/// Compressed bytes that are read at once.
const READ_AHEAD: usize = 64 << 10;

/// Decodes the compressed bundle (CCOB) at the start of `bundle`, a second way; how far header and stream reach.
///
/// The payload is decoded as `clang-offload-bundler` and the HIP runtime do it, which hand all of it to
/// `ZSTD_decompress`: any number of zstd frames form one stream, and skippable frames add
/// nothing to it. Version 1 does not say how long the payload is: it ends behind the last
/// frame. Source: LLVM's `CompressedOffloadBundle`; the frames of RFC 8878.
///
/// Refused: other versions and methods, streams that are not as long as the header says, and bytes behind
/// the last frame within the total size.
pub(crate) fn read_compressed(bundle: &Content) -> Result<(Content, u64)> {
    let fields = CompressedHeader::read(bundle)?;
    let end = fields.total.unwrap_or(bundle.len());
    if end < fields.header {
        return Err(malformed(bundle, "is shorter than its header"));
    }
    let payload = bundle.slice(fields.header..end)?;
    let (decoded, used) = fields.decode(&payload).map_err(|error| error.at(&bundle.place(0)))?;
    if fields.total.is_some() && used < payload.len() {
        return Err(malformed(bundle, "has bytes behind its compressed stream"));
    }
    Ok((decoded, fields.header.saturating_add(used)))
}

fn malformed(bundle: &Content, message: &str) -> Error {
    Error::malformed(message).at(&bundle.place(0))
}

/// The fields of a compressed bundle's header.
pub(super) struct CompressedHeader {
    pub(super) method: u16,
    /// Bytes of the header.
    pub(super) header: u64,
    /// Bytes of header and stream, where they are stated.
    pub(super) total: Option<u64>,
    /// Bytes of the bundle inside.
    size: u64,
}

impl CompressedHeader {
    pub(super) fn read(bundle: &Content) -> Result<Self> {
        let [v0, v1, m0, m1] = bundle.read_array(4)?;
        let (version, method) = (u16::from_le_bytes([v0, v1]), u16::from_le_bytes([m0, m1]));
        let (header, total, size) = match version {
            1 => (20, None, read_u32(bundle, 8)?),
            2 => (24, Some(read_u32(bundle, 8)?), read_u32(bundle, 12)?),
            3 => (32, Some(read_u64(bundle, 8)?), read_u64(bundle, 16)?),
            _ => {
                let message = format!("CCOB version {version} is not known");
                return Err(Error::unsupported(message).at(&bundle.place(4)));
            }
        };
        Ok(Self { method, header, total, size })
    }

    /// The decoded bytes of `payload`, and how many of its own they took.
    fn decode(&self, payload: &Content) -> Result<(Content, u64)> {
        match self.method {
            0 => {
                let input = BufReader::with_capacity(READ_AHEAD, payload.reader());
                let mut decoder = ZlibDecoder::new(input);
                Ok((hold(&mut decoder, self.size)?, decoder.total_in()))
            }
            1 => {
                let mut frames = Frames { payload: payload.clone(), at: 0, frame: None };
                Ok((hold(&mut frames, self.size)?, frames.at))
            }
            method => Err(Error::unsupported(format!("CCOB method {method} is not known"))),
        }
    }
}

fn read_u32(bundle: &Content, at: u64) -> Result<u64> {
    bundle.read_array(at).map(|bytes| u64::from(u32::from_le_bytes(bytes)))
}

pub(super) fn read_u64(bundle: &Content, at: u64) -> Result<u64> {
    bundle.read_array(at).map(u64::from_le_bytes)
}

type FrameDecoder = Decoder<'static, BufReader<ContentReader>>;

/// Reads zstd frames, one after the other.
struct Frames {
    payload: Content,
    /// The offset of the current frame, or of the end of the last one.
    at: u64,
    frame: Option<FrameDecoder>,
}

impl Frames {
    /// The next frame that has content; none where no frame begins.
    fn next(&mut self) -> Result<Option<FrameDecoder>> {
        while let Some(magic) = array::<4>(&self.payload, self.at)? {
            if magic == ZSTD_MAGIC {
                let rest = self.payload.slice(self.at..self.payload.len())?.reader();
                let input = BufReader::with_capacity(READ_AHEAD, rest);
                return Ok(Some(Decoder::with_buffer(input).map_err(fault)?.single_frame()));
            }
            if !is_skippable(magic) {
                break;
            }
            let size = u32::from_le_bytes(self.payload.read_array(self.at.saturating_add(4))?);
            let end = self.at.saturating_add(8).saturating_add(size.into());
            if end > self.payload.len() {
                return Err(Error::truncated("ends within a skippable frame"));
            }
            self.at = end;
        }
        Ok(None)
    }
}

impl Read for Frames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.frame.is_none() {
                self.frame = self.next().map_err(io::Error::from)?;
            }
            let Some(frame) = &mut self.frame else { return Ok(0) };
            let len = frame.read(buffer)?;
            if len > 0 || buffer.is_empty() {
                return Ok(len);
            }
            if let Some(frame) = self.frame.take() {
                let input = frame.finish();
                let ahead = input.buffer().len() as u64;
                self.at = self.at.saturating_add(input.get_ref().position()).saturating_sub(ahead);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle() -> Vec<u8> {
        let id = b"hip-amdgcn-amd-amdhsa--gfx1100";
        let words = [1_u64, 96, 4, id.len() as u64].map(u64::to_le_bytes).concat();
        let mut bytes = [&BUNDLE_MAGIC[..], &words, id].concat();
        bytes.resize(96, 0);
        bytes.extend(b"code");
        bytes
    }

    fn compressed() -> Vec<u8> {
        let mut bytes = b"CCOB\x02\0\x01\0".to_vec();
        bytes.extend([40_u32, 100].map(u32::to_le_bytes).concat());
        bytes.extend([0; 8]);
        bytes.extend(ZSTD_MAGIC);
        bytes.resize(40, 0);
        bytes
    }

    fn found(bytes: Vec<u8>) -> Option<u64> {
        let content = Content::of_bytes(bytes);
        first_code(&content, 0..content.len()).unwrap().map(|found| found.offset)
    }

    #[test]
    fn a_bundle_is_found_wherever_it_stands() {
        for device in [bundle(), compressed()] {
            for before in [0, 1, 4095, WINDOW - 10, WINDOW, WINDOW + 13, 2 * WINDOW + 1] {
                let bytes = [vec![b'C'; before], device.clone()].concat();
                assert_eq!(found(bytes), Some(before as u64), "{before}");
            }
        }
    }

    #[test]
    fn the_magic_alone_is_no_bundle() {
        assert_eq!(found([&BUNDLE_MAGIC[..], &[0; 100]].concat()), None);
        assert_eq!(found(BUNDLE_MAGIC.to_vec()), None);
        assert_eq!(found([&b"CCOB\0compressed bundles begin so"[..], &[0; 100]].concat()), None);
        for (device, least) in [(bundle(), 100), (compressed(), 40)] {
            for len in 0..least {
                assert_eq!(found(device[..len].to_vec()), None, "{len}");
            }
        }
    }
}
