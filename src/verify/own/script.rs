//! The first line of a script and the digest of the rest.

use std::io::{BufRead, BufReader, Read};

use rockpack_base::content::Content;
use rockpack_base::error::Result;
use rockpack_base::formats::hold::fault;

use super::digest::{Sha, hash};

/// The bytes that start a script.
pub(in crate::verify) const MAGIC: &[u8] = b"#!";

/// Bytes of the first line that are kept.
const LINE_MAX: u64 = 4096;

/// A script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::verify) struct Script {
    /// The first line without its line feed, as far as anything reads it.
    pub(in crate::verify) line: Vec<u8>,
    /// The digest of everything behind the first line.
    pub(in crate::verify) body: Sha,
}

/// Reads `content`; none if it is no script.
pub(in crate::verify) fn read(content: &Content) -> Result<Option<Script>> {
    let len = content.len().min(MAGIC.len() as u64);
    if content.read_vec(0..len, len, "first line")? != MAGIC {
        return Ok(None);
    }
    let mut reader = BufReader::new(content.reader());
    let first = reader.skip_until(b'\n').map_err(fault)? as u64;
    let body = hash(&mut reader as &mut dyn Read)?;
    let first_line = content.read_vec(0..first.min(LINE_MAX), LINE_MAX, "first line")?;
    let line = first_line.strip_suffix(b"\n").unwrap_or(&first_line).to_vec();
    Ok(Some(Script { line, body }))
}
