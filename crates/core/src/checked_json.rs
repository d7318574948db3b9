//! JSON in one zstd frame with a checksum of its content.
//!
//! ```text
//! magic | descriptor (bit 0x04: checksum) | … | blocks | lower four bytes of the content's XXH64
//! ```
//!
//! Source: RFC 8878, section 3.1.1. A decoder compares the checksum only if the descriptor announces it, and damage
//! may take that bit away: without it, the caller decides by the content. Plain JSON is read, too.
//!
//! Refused: other content than the checksum's, a truncated frame, and bytes or frames behind it.

use std::io::{BufReader, BufWriter, Read};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::compression::{Decoder, Method, decoder_fault};
use crate::error::{Error, Result};
use crate::zstd_stream::FRAME_MAGIC;

/// Most bytes of the JSON, a bound for damaged files.
const TEXT_MAX: u64 = 4 << 30;

/// The level of zstd. Higher ones take longer and save next to nothing: most of a state are digests.
const LEVEL: i32 = 1;

/// Room for the frame of 30,000 packages, which then is not moved as it grows. What is not written takes no memory.
const ROOM: usize = 32 << 20;

/// Writes a value.
pub fn write(value: &impl Serialize) -> Result<Vec<u8>> {
    let unwritable = |error: std::io::Error| Error::bug("JSON cannot be written").cause(error);
    let mut encoder = zstd::Encoder::new(Vec::with_capacity(ROOM), LEVEL).map_err(unwritable)?;
    encoder.include_checksum(true).map_err(unwritable)?;
    let mut sink = BufWriter::with_capacity(1 << 16, encoder);
    serde_json::to_writer(&mut sink, value).map_err(|error| unwritable(error.into()))?;
    let encoder = sink.into_inner().map_err(|error| unwritable(error.into_error()))?;
    encoder.finish().map_err(unwritable)
}

/// Reads a value. `may_lack` tells whether the writer of its frame made no checksum.
pub fn read<T: DeserializeOwned>(bytes: &[u8], may_lack: impl FnOnce(&T) -> bool) -> Result<T> {
    let no_json = |error: serde_json::Error| {
        Error::malformed("is not JSON of the expected form").cause(error)
    };
    let Some(frame) = bytes.strip_prefix(&FRAME_MAGIC) else {
        return serde_json::from_slice(bytes).map_err(no_json);
    };
    let mut decoder = Decoder::new(bytes, Method::Zstd)?;
    // Not from the text as a whole, which would take several times the memory of the frame.
    let text = BufReader::new((&mut decoder).take(TEXT_MAX));
    let value = serde_json::from_reader(text).map_err(|error| {
        if error.is_io() { decoder_fault(error.into()) } else { no_json(error) }
    })?;
    decoder.finish()?;
    let is_checked = frame.first().is_some_and(|descriptor| descriptor & 4 != 0);
    if is_checked || may_lack(&value) {
        return Ok(value);
    }
    Err(Error::malformed("has no checksum, although its writer made one"))
}
