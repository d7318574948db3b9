//! JSON in one zstd frame with a checksum of its content.
//!
//! ```text
//! magic | descriptor (bit 0x04: checksum) | … | blocks | lower four bytes of the content's XXH64
//! ```
//!
//! Source: RFC 8878, section 3.1.1. A decoder compares the checksum only if the descriptor announces it, and damage
//! may take that bit away.
//!
//! Refused: a frame without a checksum, other content than the checksum's, a truncated frame, and bytes or frames
//! after it.

use std::io::{BufReader, BufWriter, Read};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::compression::{Decoder, Method, decoder_fault};
use crate::error::{Error, Result};
use crate::zstd_stream::FRAME_MAGIC;

/// Maximum size in bytes of the JSON, a bound for damaged files.
const TEXT_MAX: u64 = 4 << 30;

/// The level of zstd. Higher ones take longer and save next to nothing: most of a state are digests.
const LEVEL: i32 = 1;

/// Reserved for the frame, so that it does not move as it grows: enough for 30,000 packages. Pages that are never
/// written take no memory.
const ROOM: usize = 32 << 20;

pub fn write(value: &impl Serialize) -> Result<Vec<u8>> {
    let unwritable = |error: std::io::Error| Error::bug("JSON cannot be written").cause(error);
    let mut encoder = zstd::Encoder::new(Vec::with_capacity(ROOM), LEVEL).map_err(unwritable)?;
    encoder.include_checksum(true).map_err(unwritable)?;
    let mut sink = BufWriter::with_capacity(1 << 16, encoder);
    serde_json::to_writer(&mut sink, value).map_err(|error| unwritable(error.into()))?;
    let encoder = sink.into_inner().map_err(|error| unwritable(error.into_error()))?;
    encoder.finish().map_err(unwritable)
}

/// Reads a value.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let mut decoder = Decoder::new(bytes, Method::Zstd)?;
    // Streamed: the decoded text would take several times the memory of the frame.
    let text = BufReader::new((&mut decoder).take(TEXT_MAX));
    let value = serde_json::from_reader(text).map_err(|error| {
        if error.is_io() {
            decoder_fault(error.into())
        } else {
            Error::malformed("is not JSON of the expected form").cause(error)
        }
    })?;
    decoder.finish()?;
    let descriptor = bytes.get(FRAME_MAGIC.len());
    if descriptor.is_some_and(|descriptor| descriptor & 4 != 0) {
        return Ok(value);
    }
    Err(Error::malformed("has no checksum, although its writer made one"))
}
