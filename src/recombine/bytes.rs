//! Comparison and digests of content.

use std::fmt::Write;
use std::io::Read;

use sha2::{Digest, Sha256};

use crate::content::{Content, WINDOW};
use crate::error::{Error, Result};

/// Whether two contents hold the same bytes; both are read at most once.
pub(super) fn same(left: &Content, right: &Content) -> Result<bool> {
    if left.len() != right.len() {
        return Ok(false);
    }
    let (mut left, mut right) = (left.reader(), right.reader());
    let (mut one, mut other) = (vec![0; WINDOW], vec![0; WINDOW]);
    loop {
        let len = left.read_window(&mut one)?;
        if right.read_window(&mut other)? != len {
            return Err(Error::bug("contents of one length ended apart"));
        }
        if one[..len] != other[..len] {
            return Ok(false);
        }
        if len == 0 {
            return Ok(true);
        }
    }
}

/// The SHA-256 in hex.
pub(super) fn sha256(content: &Content) -> Result<String> {
    let mut reader = content.reader();
    let mut window = vec![0; WINDOW];
    let mut digest = Sha256::new();
    loop {
        let read = reader.read(&mut window);
        let len = read.map_err(|e| Error::io("device code", "read", e))?;
        if len == 0 {
            break;
        }
        digest.update(&window[..len]);
    }
    let mut text = String::with_capacity(64);
    for byte in digest.finalize() {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_compared_byte_for_byte() {
        let text = vec![7; WINDOW + 1];
        let mut other = text.clone();
        let content = Content::of_bytes(text);
        assert!(same(&content, &Content::of_bytes(other.clone())).unwrap());
        other[WINDOW] = 8;
        assert!(!same(&content, &Content::of_bytes(other)).unwrap());
        assert!(!same(&content, &Content::of_bytes([7])).unwrap());
        assert!(same(&Content::default(), &Content::default()).unwrap());
    }

    #[test]
    fn the_digest_is_fips_180s() {
        let digest = sha256(&Content::of_bytes(b"abc".to_vec())).unwrap();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest, expected);
    }
}
