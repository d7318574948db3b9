//! SHA-256 of contents and streams.

use std::io::Read;

use rockpack_core::content::{Content, WINDOW};
use rockpack_core::error::Result;
use sha2::{Digest, Sha256};

pub(crate) type Sha = [u8; 32];

/// The digest of everything that `reader` still has.
pub(crate) fn hash(reader: &mut dyn Read) -> Result<Sha> {
    let mut hash = Sha256::new();
    let mut window = vec![0; WINDOW];
    loop {
        match reader.read(&mut window).map_err(rockpack_core::hold::fault)? {
            0 => return Ok(hash.finalize().into()),
            len => hash.update(&window[..len]),
        }
    }
}

/// The first `head` bytes of `content`, or all of a shorter one, and the digest of the whole: in
/// one pass, because what is compressed is expensive to read again.
pub(crate) fn digest_and_head(content: &Content, head: usize) -> Result<(Sha, Vec<u8>)> {
    let mut reader = content.reader();
    let mut front = Vec::with_capacity(head);
    let wanted = u64::try_from(head).unwrap_or(u64::MAX);
    reader.by_ref().take(wanted).read_to_end(&mut front).map_err(rockpack_core::hold::fault)?;
    let sha256 = hash(&mut front.as_slice().chain(reader))?;
    Ok((sha256, front))
}
