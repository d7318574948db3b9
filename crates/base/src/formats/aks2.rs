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

use std::collections::BTreeSet;
use std::io::{BufReader, Read};

use super::code_object;
use super::compression::{Decoder, Method, decoder_fault};
use crate::content::Content;
use crate::error::Result;
use crate::gfx::{BaseArch, archs_in};

/// The first bytes of a file.
pub const MAGIC: [u8; 4] = *b"AKS2";

/// Longest directory whose names are read, in bytes. Those of AOTriton 0.11.2b have up to 21 KiB.
const DIRECTORY_LIMIT: u32 = 1 << 20;

/// The archs of `family` that a file has code for; none if it cannot be read, or if some of its code is generic and
/// runs on all of them. `None` for a file without the magic. Code objects are not checked.
pub fn archs(content: &Content, family: &[BaseArch]) -> Result<Option<BTreeSet<BaseArch>>> {
    if content.len() < 4 || content.read_array(0)? != MAGIC {
        return Ok(None);
    }
    let mut found = match read(content) {
        Err(error) if error.is_of_format() => BTreeSet::new(),
        read => read?,
    };
    let is_generic = found.iter().any(BaseArch::is_generic);
    found.retain(|arch| !is_generic && family.contains(arch));
    Ok(Some(found))
}

fn read(content: &Content) -> Result<BTreeSet<BaseArch>> {
    let size = u32::from_le_bytes(content.read_array(12)?).min(DIRECTORY_LIMIT);
    let source = BufReader::new(content.slice(16..content.len())?.reader());
    // The field for its length has 4 bytes; a hostile stream would never end.
    let mut stream = Decoder::new(source, Method::Xz)?.take(u32::MAX.into());
    let mut directory = Vec::new();
    stream.by_ref().take(size.into()).read_to_end(&mut directory).map_err(decoder_fault)?;
    named(&directory).map_or_else(|| of_headers(directory.as_slice().chain(stream)), Ok)
}

/// The archs in the names of a directory; `None` if it is damaged or a name has no arch.
fn named(mut directory: &[u8]) -> Option<BTreeSet<BaseArch>> {
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

/// The archs in the ELF headers of a stream, wherever they are.
fn of_headers(mut stream: impl Read) -> Result<BTreeSet<BaseArch>> {
    let (mut found, mut window) = (BTreeSet::new(), Vec::new());
    while stream.by_ref().take(64 << 10).read_to_end(&mut window).map_err(decoder_fault)? > 0 {
        for bytes in window.windows(64).filter(|bytes| bytes.starts_with(b"\x7fELF")) {
            let header = code_object::read_header(&Content::of_bytes(bytes)).ok();
            found.extend(header.and_then(|header| header.processor));
        }
        // A header may go on in the next window.
        window.drain(..window.len().saturating_sub(63));
    }
    Ok(found)
}

#[cfg(test)]
#[path = "aks2_tests.rs"]
mod tests;
