//! LLVM offload binary: images of device code, each with a few strings about it.
//!
//! ```text
//! 4 bytes    magic 10 FF 10 AD
//! u32        version, 1 or 2
//! u64        size of the binary, a multiple of 8
//! u64        offset of the entries
//! u64        version 1: size of its one entry, 40; version 2: number of entries
//! per entry  u16 kind of the image | u16 producer | u32 flags
//!            u64 offset of its rows | u64 number of rows | u64 offset of the image | u64 its size
//! per row    u64 offset of the key | u64 offset of the value | version 2: u64 size of the value
//! then       keys and values, each followed by a zero byte, and the images in their order
//! ```
//!
//! Offsets count from the magic. The values of `triple` and `arch` say what an image is for:
//! `amdgcn-amd-amdhsa`, `gfx90a:xnack+`. Producers are 1 OpenMP, 2 CUDA, 3 (to LLVM 19) or 4 HIP, 8 SYCL.
//! LLVM takes the kind of an image from its file name, so it is not read. A file may have several binaries.
//!
//! Source: LLVM's documentation of clang-offload-packager and llvm-offload-binary; binaries of LLVM 19
//! (version 1) and 23 (version 2).
//!
//! Refused: other versions, images that overlap each other or the entries, and offsets beyond the binary.

use crate::code_object;
use crate::offload_bundle::{Bundle, BundleEntry, BundleEntryKind, ENTRY_LIMIT, EntryId, ID_LIMIT};
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};

/// The first bytes of every offload binary.
pub const MAGIC: &[u8; 4] = b"\x10\xff\x10\xad";

/// Maximum number of rows of an entry that are read. Compilers write up to five; the field has 64 bits.
const ROW_LIMIT: u64 = 32;

const ENTRY_LEN: u64 = 40;

/// Reads the offload binary at the start of `content`, which may extend beyond it, as a bundle of at least
/// one image, each with an id as compilers write it in a bundle: `hip-amdgcn-amd-amdhsa--gfx1100`.
pub fn parse(content: &Content) -> Result<Bundle> {
    let _open = content.pin()?;
    parse_inner(content).map_err(|error| error.structure("offload binary").at(&content.place(0)))
}

fn parse_inner(content: &Content) -> Result<Bundle> {
    if !content.starts_with(MAGIC)? {
        return Err(Error::malformed("the magic is missing"));
    }
    let version = u32::from_le_bytes(content.read_array(4)?);
    let [len, start, count] = words(content, 8)?;
    let (count, row_len) = match (version, count) {
        (1, ENTRY_LEN) => (1, 16),
        (2, 1..=ENTRY_LIMIT) => (count, 24),
        (1 | 2, _) => {
            let message = format!(
                "{count} is not a valid entry size (version 1) or number of entries (version 2)"
            );
            return Err(Error::unsupported(message).at(&content.place(24)));
        }
        _ => {
            let message = format!("version {version} is not known");
            return Err(Error::unsupported(message).at(&content.place(4)));
        }
    };
    let content = content.slice(0..len)?;
    let mut end = start.saturating_add(count * ENTRY_LEN);
    let mut entries = Vec::new();
    for at in (0..count).map(|index| start.saturating_add(index * ENTRY_LEN)) {
        let image = image(&content, at, row_len).map_err(|error| error.at(&content.place(at)))?;
        if image.offset < end {
            let message = format!("image {} overlaps an earlier one, or the entries", image.id);
            return Err(Error::malformed(message).at(&content.place(image.offset)));
        }
        end = image.offset + image.content.len();
        entries.push(image);
    }
    Ok(Bundle { entries, len, is_binary: true })
}

/// The image of the entry at `at`, whose rows have `row_len` bytes.
fn image(content: &Content, at: u64, row_len: u64) -> Result<BundleEntry> {
    let [head, rows, count, offset, size] = words(content, at)?;
    if count > ROW_LIMIT {
        let message = format!("{count} strings of an image exceed the limit of {ROW_LIMIT}");
        return Err(Error::new(Kind::Limit, message));
    }
    let (mut triple, mut arch) = (String::new(), String::new());
    for row in (0..count).map(|index| rows.saturating_add(index * row_len)) {
        let [key, value] = words(content, row)?;
        let wanted = match text(content, key, None)?.as_str() {
            "triple" => &mut triple,
            "arch" => &mut arch,
            _ => continue,
        };
        let size = if row_len == 16 { None } else { Some(words::<1>(content, row + 16)?[0]) };
        *wanted = text(content, value, size)?;
    }
    let content = content.slice(offset..offset.saturating_add(size))?;
    let is_amd = triple.starts_with("amdgcn") || triple.contains("-amd-");
    let producer = match (head >> 16) & 0xffff {
        1 => "openmp",
        2 => "cuda",
        3 | 4 => "hip",
        8 => "sycl",
        _ => "none",
    };
    let (kind, name) = if is_amd || code_object::is_code_object(&content)? {
        (BundleEntryKind::Hip, producer)
    } else if ["nvptx", "spir"].iter().any(|start| triple.starts_with(start)) {
        (BundleEntryKind::Other(producer.to_owned()), producer)
    } else {
        (BundleEntryKind::Host, "host")
    };
    let text = format!("{name}-{triple}--{arch}");
    // The code object decides: an `arch` that is not a target ID yields no target.
    let target = arch.parse().ok().filter(|_| kind == BundleEntryKind::Hip);
    Ok(BundleEntry { id: EntryId { text, kind, triple, target }, content, offset })
}

/// The string at `at`: of `size` bytes, or up to a zero byte.
fn text(content: &Content, at: u64, size: Option<u64>) -> Result<String> {
    let end =
        size.map_or(at.saturating_add(ID_LIMIT).min(content.len()), |size| at.saturating_add(size));
    let mut bytes = content.read_vec(at..end, ID_LIMIT, "a string")?;
    let fault = |what: &str| Error::malformed(what).at(&content.place(at));
    if size.is_none() {
        let zero = bytes.iter().position(|byte| *byte == 0);
        bytes.truncate(zero.ok_or_else(|| fault("a string has no end"))?);
    }
    String::from_utf8(bytes).map_err(|_| fault("a string is not text"))
}

fn words<const N: usize>(content: &Content, at: u64) -> Result<[u64; N]> {
    let mut words = [0; N];
    for (index, word) in (0..).zip(&mut words) {
        *word = u64::from_le_bytes(content.read_array(at.saturating_add(index * 8))?);
    }
    Ok(words)
}

#[cfg(test)]
#[path = "offload_binary_tests.rs"]
mod tests;
