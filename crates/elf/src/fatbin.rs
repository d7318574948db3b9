//! The content of a `.hip_fatbin` section: offload bundles one after the other.
//!
//! ```text
//! bundle | zeros | bundle | zeros | …      each bundle plain or compressed, aligned
//! ```
//!
//! Bundles are normally aligned to 4096 bytes. Where one ends is computed from its own table or
//! compressed stream; then only zeros may follow up to the magic of the next. Compressed bytes
//! are never searched for a magic. A separate file may hold LLVM offload binaries instead.
//!
//! Source: the objects of LLVM 17 to 19 and of AMD's compiler, linked by lld and bfd.
//!
//! Refused: anything but zeros between bundles, and a bundle that is not aligned to 8 bytes.

use crate::ccob;
use crate::offload_binary;
use crate::offload_bundle::{self, Bundle};
use rockpack_core::content::{Content, Pinned};
use rockpack_core::error::{Error, Result};

/// The smallest alignment of a bundle: that of the numbers in its table.
pub const ALIGNMENT: usize = 8;

#[derive(Debug)]
pub struct FatbinBundle {
    /// Offset of the bundle's magic from the start of the section.
    pub offset: u64,
    /// Bytes that the bundle takes up in the section.
    pub extent: u64,
    /// The header of a compressed bundle; `None` for a plain one.
    pub compression: Option<ccob::CcobHeader>,
    pub bundle: Bundle,
    /// The guard that keeps decoded bytes in memory: while it lives, a compressed bundle is not decoded again.
    pub pinned: Pinned,
}

/// Reads all bundles of `section`, in order, without keeping their decoded bytes.
pub fn parse(section: &Content) -> Result<Vec<FatbinBundle>> {
    let bundles = Bundles::new(section);
    bundles.map(|next| Ok(FatbinBundle { pinned: Pinned::default(), ..next? })).collect()
}

/// Iterates over the bundles of a section, and ends after the first error.
#[derive(Debug)]
pub struct Bundles<'a> {
    section: &'a Content,
    position: u64,
}

impl<'a> Bundles<'a> {
    pub fn new(section: &'a Content) -> Self {
        Self { section, position: 0 }
    }
}

impl Iterator for Bundles<'_> {
    type Item = Result<FatbinBundle>;

    fn next(&mut self) -> Option<Self::Item> {
        let end = self.section.len();
        let start = self.section.first_other_byte(self.position..end, &[0]).transpose()?;
        let found = start.and_then(|offset| bundle_at(self.section, offset));
        self.position = found.as_ref().map_or(end, |found| found.offset + found.extent);
        Some(found)
    }
}

/// Whether `content` starts with the magic of a bundle, plain or compressed, or of an offload binary.
pub fn starts_bundle(content: &Content) -> Result<bool> {
    let mut head = [0; offload_bundle::MAGIC.len()];
    let len = usize::try_from(content.len()).map_or(head.len(), |len| len.min(head.len()));
    content.read_at(0, &mut head[..len])?;
    let magics: [&[u8]; 3] = [offload_bundle::MAGIC, ccob::MAGIC, offload_binary::MAGIC];
    Ok(magics.iter().any(|magic| head.starts_with(magic)))
}

fn bundle_at(section: &Content, offset: u64) -> Result<FatbinBundle> {
    let rest = section.slice(offset..section.len())?;
    let is_binary = rest.starts_with(offload_binary::MAGIC)?;
    let is_aligned = is_binary || offset.is_multiple_of(ALIGNMENT as u64);
    if !is_aligned || !starts_bundle(&rest)? {
        let message = "neither zero padding nor the start of an aligned offload bundle";
        return Err(Error::malformed(message).structure(".hip_fatbin").at(&section.place(offset)));
    }
    if rest.starts_with(ccob::MAGIC)? {
        return compressed(&rest, offset);
    }
    let parse = if is_binary { offload_binary::parse } else { offload_bundle::parse };
    let bundle = parse(&rest)?;
    let (extent, pinned) = (bundle.len, Pinned::default());
    Ok(FatbinBundle { offset, extent, compression: None, bundle, pinned })
}

fn compressed(rest: &Content, offset: u64) -> Result<FatbinBundle> {
    let opened = ccob::open(rest)?;
    let bundle = offload_bundle::parse(&opened.content)?;
    let trailing = bundle.len..opened.content.len();
    if opened.content.first_other_byte(trailing, &[0])?.is_some() {
        let message = "bytes follow the bundle in its compressed stream";
        return Err(Error::malformed(message).structure("offload bundle").at(&rest.place(0)));
    }
    let ccob::OpenedBundle { header, extent, pinned, .. } = opened;
    Ok(FatbinBundle { offset, extent, compression: Some(header), bundle, pinned })
}

#[cfg(test)]
#[path = "fatbin_tests.rs"]
mod tests;
