//! AKS2, AOTriton's storage of kernels: the code objects of one kernel for several GPUs.
//!
//! ```text
//! offset  size
//!      0     4  "AKS2"
//!      4     8  bytes of the decoded stream, number of kernels, u32 each
//!     12     4  bytes of the directory, u32
//!     16     …  one xz stream: the directory, then the code objects one after the other
//!
//! directory, for each kernel
//!      0    12  shared memory, threads of a block, place of the code object, u32 each
//!     12     8  bytes of the code object (0: not compiled), bytes of the name with its NUL, u32 each
//!     20     …  name, e.g. `attn_fwd-Sig-F__…__CO__wave1_warp2_stg1--Arch_gfx1100`
//! ```
//!
//! Integers are little-endian. Source: AOTriton's `packed_kernel.cc`; files of its release 0.11.2b, where names
//! and code agree. AOTriton asks for kernels by name, so the names decide, and only the directory is decoded. If
//! a name has no architecture, as in earlier releases, the headers of all code objects decide.
//!
//! Since its release 0.13, AOTriton keeps these files in ZIP archives, stored: `flash/attn_fwd.zip`. Source: its
//! `flatzip.py`. Names of kernels end in `;;arch=gfx1100` there.

use std::collections::BTreeSet;
use std::io::{BufReader, Read};

use rockpack_archive::zip::{self, ZipReader};
use rockpack_core::compression::{Decoder, Method, decoder_fault};
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result, ResultExt};
use rockpack_core::gfx::{BaseArch, archs_in};
use rockpack_elf::code_object;

/// The first bytes of a file, and of an archive of files.
pub const MAGICS: [[u8; 4]; 2] = [*b"AKS2", zip::MAGIC];

/// Longest directory whose names are read, in bytes. Those of AOTriton 0.11.2b have up to 21 KiB.
const DIRECTORY_LIMIT: u32 = 1 << 20;

/// Maximum decoded bytes for each byte of a file, plus 1 KiB. Files of AOTriton 0.11.2b have up to 23.
const RATIO_LIMIT: u64 = 64;

/// The archs of `family` that a file, or an archive of files, has code for. Empty if it cannot be read, or if
/// some of its code is generic and runs on all of them. Code objects are not checked.
pub fn archs(content: &Content, family: &[BaseArch]) -> Result<BTreeSet<BaseArch>> {
    let mut found = read_all(content).if_readable()?.unwrap_or_default();
    let is_generic = found.iter().any(BaseArch::is_generic);
    found.retain(|arch| !is_generic && family.contains(arch));
    Ok(found)
}

fn read_all(content: &Content) -> Result<BTreeSet<BaseArch>> {
    if content.read_array(0)? != zip::MAGIC {
        return read(content);
    }
    let archive = ZipReader::open(content.clone())?;
    let mut found = BTreeSet::new();
    for member in archive.members() {
        found.extend(read(&archive.stored(member)?)?);
    }
    Ok(found)
}

fn read(content: &Content) -> Result<BTreeSet<BaseArch>> {
    if content.read_array(0)? != MAGICS[0] {
        return Err(Error::malformed("is not a file of AOTriton"));
    }
    let size = u32::from_le_bytes(content.read_array(12)?).min(DIRECTORY_LIMIT);
    let source = BufReader::new(content.slice(16..content.len())?.reader());
    let limit = content.len().saturating_add(1 << 10).saturating_mul(RATIO_LIMIT);
    let mut stream = Decoder::new(source, Method::Xz)?.take(limit);
    let mut directory = Vec::new();
    stream.by_ref().take(size.into()).read_to_end(&mut directory).map_err(decoder_fault)?;
    if let Some(found) = archs_in_names(&directory) {
        return Ok(found);
    }
    let found = archs_in_headers(directory.as_slice().chain(&mut stream))?;
    match stream.limit() {
        0 => Err(Error::new(Kind::Limit, format!("decodes to over {RATIO_LIMIT} times its size"))),
        _ => Ok(found),
    }
}

/// The archs in the names of a directory; `None` if it is damaged or a name has no arch.
fn archs_in_names(mut directory: &[u8]) -> Option<BTreeSet<BaseArch>> {
    let mut found = BTreeSet::new();
    while let Some((entry, names)) = directory.split_first_chunk::<20>() {
        let [.., s0, s1, s2, s3, n0, n1, n2, n3] = *entry;
        let length = usize::try_from(u32::from_le_bytes([n0, n1, n2, n3])).ok()?;
        let (name, next) = names.split_at_checked(length)?;
        if [s0, s1, s2, s3] != [0; 4] {
            found.insert(archs_in(std::str::from_utf8(name).ok()?).pop()?);
        }
        directory = next;
    }
    (directory.is_empty() && !found.is_empty()).then_some(found)
}

fn archs_in_headers(mut stream: impl Read) -> Result<BTreeSet<BaseArch>> {
    let (mut found, mut window) = (BTreeSet::new(), Vec::new());
    while stream.by_ref().take(64 << 10).read_to_end(&mut window).map_err(decoder_fault)? > 0 {
        for bytes in window.windows(64).filter(|bytes| bytes.starts_with(b"\x7fELF")) {
            let header = code_object::read_header(&Content::of_bytes(bytes)).ok();
            found.extend(header.and_then(|header| header.processor));
        }
        // A header may continue in the next window.
        window.drain(..window.len().saturating_sub(63));
    }
    Ok(found)
}

#[cfg(test)]
#[path = "aks2_tests.rs"]
mod tests;
