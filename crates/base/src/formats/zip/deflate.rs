//! The bytes of a member, compressed in parts.

use flate2::{Compress, Compression, FlushCompress, Status};
use rayon::prelude::*;

use crate::error::{Error, Result};

/// Bytes that one thread compresses. Bytes of the archive depend on it, and on nothing else of how the work
/// is divided.
pub(super) const CHUNK: usize = 1 << 20;

/// Bytes in front of a chunk that its compressor refers to.
const DICTIONARY: usize = 32 << 10;

/// The level of deflate: what Python's `zipfile` and most writers of wheels use.
const LEVEL: u32 = 6;

/// Compresses `chunks`, behind a chunk `before`; the stream ends with them if `is_last`.
pub(super) fn compress(before: &[u8], chunks: &[Vec<u8>], is_last: bool) -> Result<Vec<Vec<u8>>> {
    let befores = std::iter::once(before).chain(chunks.iter().map(Vec::as_slice));
    let pairs: Vec<(&[u8], &Vec<u8>)> = befores.zip(chunks).collect();
    let last = pairs.len().saturating_sub(1);
    let done = pairs.par_iter().enumerate().map(|(index, (before, chunk))| {
        let dictionary = before.get(before.len().saturating_sub(DICTIONARY)..).unwrap_or_default();
        compress_chunk(dictionary, chunk, is_last && index == last)
    });
    done.collect()
}

fn compress_chunk(dictionary: &[u8], chunk: &[u8], is_last: bool) -> Result<Vec<u8>> {
    let failed = |error: flate2::CompressError| Error::bug("deflate failed").cause(error);
    let mut compress = Compress::new(Compression::new(LEVEL), false);
    if !dictionary.is_empty() {
        compress.set_dictionary(dictionary).map_err(failed)?;
    }
    let mut bytes = Vec::with_capacity(chunk.len() / 2 + 64);
    // A block that ends at a byte, so that the next chunk's can follow.
    let flush = if is_last { FlushCompress::Finish } else { FlushCompress::Sync };
    loop {
        let taken = usize::try_from(compress.total_in()).unwrap_or(chunk.len());
        let left = chunk.get(taken..).unwrap_or_default();
        bytes.reserve(left.len() / 2 + 1024);
        let status = compress.compress_vec(left, &mut bytes, flush).map_err(failed)?;
        let is_done = match (is_last, status) {
            (true, status) => status == Status::StreamEnd,
            // All is out where room was left.
            (false, _) => {
                compress.total_in() == chunk.len() as u64 && bytes.len() < bytes.capacity()
            }
        };
        if is_done {
            return Ok(bytes);
        }
    }
}
