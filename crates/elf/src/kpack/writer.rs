//! A writer of kernel archives: it computes sizes first, and then joins header, frames and TOC in one rope.

use std::collections::BTreeMap;

use rmpv::Value;

use rockpack_kpack::archive::{
    BLOB_LIMIT, BLOB_START, FRAME_LIMIT, Scheme, TOC_LIMIT, VERSION, field, header_bytes, split_key,
};

use super::{Toc, TocRow};
use crate::message_pack::{encode, map};
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};

/// Writes the archive of `toc` and `frames`, the stored code objects in ordinal order. `toc.scheme` decides
/// whether these are zstd frames or plain code objects.
///
/// Refused, as by loaders: more than [`FRAME_LIMIT`] frames, a blob or code object over [`BLOB_LIMIT`], a TOC
/// over [`TOC_LIMIT`]. Refused too: rows and frames that do not match.
pub fn write(toc: &Toc, frames: &[Content]) -> Result<Content> {
    check_ordinals(toc, frames)?;
    let sizes = toc.rows.values().flat_map(BTreeMap::values).map(|row| row.original_size);
    let size = sizes.chain([blob_size(toc.scheme, frames).unwrap_or(u64::MAX)]).max();
    if let Some(size) = size.filter(|size| *size > BLOB_LIMIT) {
        let message = format!(
            "its code, or one code object, takes {size} bytes; loaders refuse more than {BLOB_LIMIT}"
        );
        return Err(too_large(toc, message));
    }
    let (blob, location) = match toc.scheme {
        Scheme::ZstdPerKernel => framed_blob(frames)?,
        Scheme::None => plain_blob(frames),
    };
    let table = encode(&table(toc, location))?;
    if table.len() as u64 > TOC_LIMIT {
        let message = format!("the TOC takes {} bytes, more than {TOC_LIMIT}", table.len());
        return Err(too_large(toc, message));
    }
    let mut header = header_bytes(BLOB_START + blob.len()).to_vec();
    header.resize(64, 0);
    Ok(Content::concat([&Content::of_bytes(header), &blob, &Content::of_bytes(table)]))
}

/// Size of the blob in bytes; `None` if it exceeds 64 bits.
fn blob_size(scheme: Scheme, frames: &[Content]) -> Option<u64> {
    match scheme {
        Scheme::ZstdPerKernel => frames
            .iter()
            .try_fold(4_u64, |size, frame| size.checked_add(4)?.checked_add(frame.len())),
        Scheme::None => frames.iter().try_fold(0_u64, |size, frame| {
            size.checked_next_multiple_of(BLOB_START)?.checked_add(frame.len())
        }),
    }
}

/// The stored code objects, and the TOC fields with their positions.
type Blob = (Content, Vec<(&'static str, Value)>);

fn framed_blob(frames: &[Content]) -> Result<Blob> {
    let mut parts = vec![little_endian(frames.len() as u64)?];
    for frame in frames {
        parts.push(little_endian(frame.len())?);
        parts.push(frame.clone());
    }
    let content = Content::concat(&parts);
    let fields =
        vec![(field::ZSTD_OFFSET, BLOB_START.into()), (field::ZSTD_SIZE, content.len().into())];
    Ok((content, fields))
}

fn plain_blob(frames: &[Content]) -> Blob {
    let mut parts = Vec::new();
    let mut places = Vec::new();
    let mut offset = BLOB_START;
    for frame in frames {
        let padding = offset.next_multiple_of(BLOB_START) - offset;
        parts.push(Content::zeros(padding));
        parts.push(frame.clone());
        offset += padding;
        places.push(map([(field::OFFSET, offset.into()), (field::SIZE, frame.len().into())]));
        offset += frame.len();
    }
    (Content::concat(&parts), vec![(field::BLOBS, Value::Array(places))])
}

/// A number of the blob, as a little-endian u32.
fn little_endian(number: u64) -> Result<Content> {
    let number = u32::try_from(number)
        .map_err(|_| Error::bug("a frame size below the limit of a blob has 32 bits"))?;
    Ok(Content::of_bytes(number.to_le_bytes()))
}

fn table(toc: &Toc, location: Vec<(&'static str, Value)>) -> Value {
    let arches = toc.gfx_arches.iter().map(|arch| arch.as_str().into());
    let mut fields = vec![
        (field::FORMAT_VERSION, VERSION.into()),
        (field::GROUP_NAME, toc.group_name.as_str().into()),
        (field::GFX_ARCH_FAMILY, toc.gfx_arch_family.as_str().into()),
        (field::GFX_ARCHES, Value::Array(arches.collect())),
        (field::COMPRESSION_SCHEME, toc.scheme.as_str().into()),
    ];
    fields.extend(location);
    // Text order would put `…#10` before `…#2`.
    let mut keys: Vec<_> = toc.rows.iter().collect();
    keys.sort_by_key(|(key, _)| (split_key(key), key.as_str()));
    let rows = keys.into_iter().map(|(key, targets)| {
        let rows = targets.iter().map(|(target, row)| (target.as_str().into(), row_value(row)));
        (key.as_str().into(), Value::Map(rows.collect()))
    });
    fields.push((field::TOC, Value::Map(rows.collect())));
    map(fields)
}

fn row_value(row: &TocRow) -> Value {
    let mut fields = vec![
        (field::TYPE, row.kind.as_str().into()),
        (field::ORDINAL, row.ordinal.into()),
        (field::ORIGINAL_SIZE, row.original_size.into()),
    ];
    fields.extend(row.metadata.clone().map(|value| (field::METADATA, value)));
    map(fields)
}

fn check_ordinals(toc: &Toc, frames: &[Content]) -> Result<()> {
    let count = frames.len() as u64;
    if count > u64::from(FRAME_LIMIT) {
        let message = format!("{count} code objects; loaders refuse more than {FRAME_LIMIT}");
        return Err(too_large(toc, message));
    }
    let mut named = vec![false; frames.len()];
    for row in toc.rows.values().flat_map(BTreeMap::values) {
        let slot = usize::try_from(row.ordinal).ok();
        match slot.and_then(|slot| named.get_mut(slot)) {
            Some(named) => *named = true,
            None => return Err(Error::bug(format!("no frame has ordinal {}", row.ordinal))),
        }
    }
    match named.iter().position(|named| !named) {
        Some(ordinal) => Err(Error::bug(format!("no row names ordinal {ordinal}"))),
        None => Ok(()),
    }
}

fn too_large(toc: &Toc, message: String) -> Error {
    let archive = format!("kernel archive of {} for {}", toc.group_name, toc.gfx_arch_family);
    Error::new(Kind::Limit, message)
        .structure(archive)
        .hint("split the component, so that its kernels are spread over several archives")
}
