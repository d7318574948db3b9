//! Compression of a member in parallel chunks.

use flate2::{Compress, Compression, FlushCompress, Status};
use rayon::prelude::*;

use rockpack_core::error::{Error, Result};

/// Bytes that one thread compresses at a time. The archive depends on this size, not on the number of threads.
pub(super) const CHUNK: usize = 1 << 20;

/// Bytes before a chunk that its compressor may refer to.
const DICTIONARY: usize = 32 << 10;

/// The deflate level: the one of Python's `zipfile` and most writers of wheels.
const LEVEL: u32 = 6;

/// Compresses `chunks`, which follow the chunk `before`; they end the stream if `is_last`.
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
    let mut compress = Compress::new(Compression::new(LEVEL), false);
    if !dictionary.is_empty() {
        compress.set_dictionary(dictionary).map_err(deflate_failed)?;
    }
    let mut bytes = Vec::with_capacity(chunk.len() / 2 + 64);
    // A sync flush ends at a byte boundary, so that the next chunk can follow.
    let flush = if is_last { FlushCompress::Finish } else { FlushCompress::Sync };
    loop {
        let taken = usize::try_from(compress.total_in()).unwrap_or(chunk.len());
        let left = chunk.get(taken..).unwrap_or_default();
        bytes.reserve(left.len() / 2 + 1024);
        let status = compress.compress_vec(left, &mut bytes, flush).map_err(deflate_failed)?;
        let is_done = match (is_last, status) {
            (true, status) => status == Status::StreamEnd,
            // With room left in the buffer, all output has been written.
            (false, _) => {
                compress.total_in() == chunk.len() as u64 && bytes.len() < bytes.capacity()
            }
        };
        if is_done {
            return Ok(bytes);
        }
    }
}

fn deflate_failed(error: flate2::CompressError) -> Error {
    Error::bug("deflate failed").cause(error)
}
