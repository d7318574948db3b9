//! Compressed forms of indexes. Their bytes depend on nothing but their content.

use std::io::{self, Write};
use std::sync::Arc;

use flate2::GzBuilder;
use rockpack_core::compression::{Compression, Encoder, Method, Workers};
use rockpack_core::error::{Error, Result};

/// Levels at which thousands of packages take a fraction of a second.
const GZIP_LEVEL: u32 = 6;
const ZSTD: Compression = Compression::Zstd { level: 9, window_log: 23, long: false };

/// `bytes`, compressed.
pub(super) fn compress(bytes: &[u8], method: Method) -> Result<Arc<[u8]>> {
    let compression = match method {
        Method::Stored => return Ok(bytes.into()),
        Method::Gzip => {
            let level = flate2::Compression::new(GZIP_LEVEL);
            let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), level);
            encoder.write_all(bytes).map_err(not_compressed)?;
            return encoder.finish().map(Arc::from).map_err(not_compressed);
        }
        Method::Zstd => ZSTD,
        Method::Xz | Method::Lzma => {
            return Err(Error::bug("indexes are not written as xz or lzma"));
        }
    };
    let mut encoder = Encoder::new(Vec::new(), compression, &Workers::new(1), bytes.len() as u64)?;
    encoder.write_all(bytes).map_err(not_compressed)?;
    encoder.finish().map(Arc::from).map_err(not_compressed)
}

fn not_compressed(error: io::Error) -> Error {
    Error::io_unplaced("compress an index", error)
}

/// The ending of a file name.
pub(super) fn ending(method: Method) -> &'static str {
    match method {
        Method::Stored => "",
        Method::Gzip => ".gz",
        Method::Zstd => ".zst",
        // Not written.
        Method::Xz | Method::Lzma => "",
    }
}
