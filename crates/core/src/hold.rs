//! Stores a stream for later reads: in memory if it is short, in an anonymous temporary file otherwise.

use std::io::Read;

pub use crate::compression::decoder_fault as fault;
use crate::content::{Content, Spool, WINDOW};
use crate::error::{Error, Result};

/// Longest stream that is kept in memory, in bytes. Every thread may hold one, beside a decoder's window of
/// up to 128 MiB.
const MEMORY_LIMIT: u64 = 64 << 20;

/// Reads all bytes of `reader`, which must be exactly `size`.
pub fn hold(reader: &mut dyn Read, size: u64) -> Result<Content> {
    // One byte beyond the announced size is enough to refuse it.
    let mut limited = reader.take(size.saturating_add(1));
    let content = if size <= MEMORY_LIMIT {
        let mut bytes = Vec::new();
        limited.read_to_end(&mut bytes).map_err(fault)?;
        Content::of_bytes(bytes)
    } else {
        spooled(&mut limited)?
    };
    if content.len() == size {
        return Ok(content);
    }
    let more = if content.len() > size { " or more" } else { "" };
    Err(Error::malformed(format!("holds {} bytes{more}, announced are {size}", content.len())))
}

fn spooled(reader: &mut dyn Read) -> Result<Content> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_to_be_as_long_as_announced() {
        assert_eq!(hold(&mut &b"abc"[..], 3).unwrap().len(), 3);
        for size in [0, 2, 4, MEMORY_LIMIT, MEMORY_LIMIT + 1] {
            assert!(hold(&mut &b"abc"[..], size).is_err(), "{size}");
        }
    }

    #[test]
    fn a_long_stream_is_kept_outside_of_memory() {
        let size = MEMORY_LIMIT + 5;
        let content = hold(&mut std::io::repeat(7).take(size), size).unwrap();
        assert_eq!(content.read_array::<2>(size - 2).unwrap(), [7, 7]);
    }
}
