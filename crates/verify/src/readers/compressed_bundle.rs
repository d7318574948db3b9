//! A second implementation of compressed offload bundles (CCOB).

use std::io::BufReader;

use flate2::bufread::ZlibDecoder;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};
use rockpack_core::hold::{fault, hold};
use rockpack_core::zstd_stream::ZstdStream;

/// Compressed bytes that are read at once.
const READ_AHEAD: usize = 64 << 10;

/// Decodes the compressed bundle at the start of `bundle`; returns it with the length of header and stream.
///
/// Version 1 does not state the length of the payload: it ends after the last frame. Source: LLVM's
/// `CompressedOffloadBundle`.
///
/// Refused: other versions and methods, streams whose length differs from the header, and bytes after the last frame
/// within the total size.
pub(crate) fn read_compressed(bundle: &Content) -> Result<(Content, u64)> {
    let [v0, v1, m0, m1] = bundle.read_array(4)?;
    let (version, method) = (u16::from_le_bytes([v0, v1]), u16::from_le_bytes([m0, m1]));
    // Lengths of the header, of header and stream if stated, and of the decoded bundle.
    let (header, total, size) = match version {
        1 => (20, None, read_u32(bundle, 8)?),
        2 => (24, Some(read_u32(bundle, 8)?), read_u32(bundle, 12)?),
        3 => (32, Some(read_u64(bundle, 8)?), read_u64(bundle, 16)?),
        _ => {
            let message = format!("CCOB version {version} is not known");
            return Err(Error::unsupported(message).at(&bundle.place(4)));
        }
    };
    let end = total.unwrap_or(bundle.len());
    if end < header {
        return Err(Error::malformed("is shorter than its header").at(&bundle.place(0)));
    }
    let payload = bundle.slice(header..end)?;
    let decoded = decode(method, size, &payload);
    let (decoded, used) = decoded.map_err(|error| error.at(&bundle.place(0)))?;
    if total.is_some() && used < payload.len() {
        let message = "has bytes after its compressed stream";
        return Err(Error::malformed(message).at(&bundle.place(0)));
    }
    Ok((decoded, header.saturating_add(used)))
}

/// The `size` decoded bytes of `payload`, and the number of compressed bytes.
fn decode(method: u16, size: u64, payload: &Content) -> Result<(Content, u64)> {
    let budget = payload.budget();
    let mut input = BufReader::with_capacity(READ_AHEAD, payload.reader());
    let (decoded, unused) = match method {
        0 => (hold(&mut ZlibDecoder::new(&mut input), size, budget)?, 0),
        1 => {
            let mut frames = ZstdStream::new(&mut input).map_err(fault)?;
            (hold(&mut frames, size, budget)?, frames.unused())
        }
        _ => return Err(Error::unsupported(format!("CCOB method {method} is not known"))),
    };
    let ahead = input.buffer().len() as u64 + unused;
    Ok((decoded, input.get_ref().position().saturating_sub(ahead)))
}

fn read_u32(bundle: &Content, at: u64) -> Result<u64> {
    bundle.read_array(at).map(|bytes| u64::from(u32::from_le_bytes(bytes)))
}

pub(super) fn read_u64(bundle: &Content, at: u64) -> Result<u64> {
    bundle.read_array(at).map(u64::from_le_bytes)
}
