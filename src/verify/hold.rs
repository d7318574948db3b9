//! Keeps a payload file at hand: in memory if it is small, in a nameless file if not.

use std::io::Read;

use crate::content::{Content, Spool, WINDOW};
use crate::error::{Error, Result};

/// Longest file that is kept in memory, in bytes.
const MEMORY_LIMIT: u64 = 64 << 20;

/// The `size` bytes of `reader`.
pub(super) fn hold(reader: &mut dyn Read, size: u64) -> Result<Content> {
    if size <= MEMORY_LIMIT {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).map_err(fault)?;
        return Ok(Content::of_bytes(bytes));
    }
    let spool = Spool::create(&std::env::temp_dir())?;
    let mut parts = Vec::new();
    let mut window = vec![0; WINDOW];
    loop {
        match reader.read(&mut window).map_err(fault)? {
            0 => return Ok(Content::concat(&parts)),
            len => parts.push(spool.append(&window[..len])?),
        }
    }
}

/// The error of a read from a payload.
pub(super) fn fault(source: std::io::Error) -> Error {
    crate::formats::compression::decoder_fault(source)
}
