//! One member of a wheel.

use std::io::{self, Read};

use rockpack_base::error::Result;
use rockpack_base::formats::hold::fault;
use rockpack_base::formats::wheel::{HashName, RecordHasher};
use rockpack_base::formats::zip::{ZipMember, ZipReader};
use rockpack_base::run::Budget;

use crate::verify::own::facts;
use crate::verify::own::installed::InstalledNode;

/// The bits of a mode for the kind of entry, and their value for a link.
const KIND: (u32, u32) = (0o170_000, 0o120_000);

/// Bytes at the start of a member in which the header of a PE file begins.
const HEAD: usize = 4096;

/// A member that was read.
pub(super) struct Found {
    pub(super) node: InstalledNode,
    /// The digest, by the hash function that RECORD uses.
    pub(super) digest: Option<Vec<u8>>,
    /// Whether it is a program or library of Windows.
    pub(super) is_windows: bool,
}

/// Reads a member that is installed at `path`, with a digest by `hash`.
pub(super) fn found(
    zip: &ZipReader,
    member: &ZipMember,
    path: &str,
    hash: Option<HashName>,
    budget: &Budget,
) -> Result<Found> {
    let mode = member.mode.unwrap_or_default();
    if mode & KIND.0 == KIND.1 {
        let node = InstalledNode::Special { mode: mode & 0o7777, what: "link" };
        return Ok(Found { node, digest: None, is_windows: false });
    }
    let hasher = hash.filter(|hash| *hash != HashName::Sha256).map(HashName::hasher);
    let mut reader = MemberReading { source: zip.reader(member)?, hasher, head: Vec::new() };
    let facts = facts::examine(path, &mut reader, member.size, budget)?;
    // At its end, the bytes are compared with the header.
    io::copy(&mut reader, &mut io::sink()).map_err(fault)?;
    let is_windows = is_windows(&reader.head);
    let digest = match reader.hasher {
        Some(hasher) => hasher.finish(),
        None => facts.sha256.to_vec(),
    };
    // pip and uv give such modes to what has none.
    let mode = if mode & 0o7777 == 0 { 0o644 } else { mode & 0o7777 };
    Ok(Found { node: InstalledNode::File { mode, facts }, digest: Some(digest), is_windows })
}

/// Whether a file that begins so is a PE file, whose header it has at the offset that it says at 60.
fn is_windows(head: &[u8]) -> bool {
    let offset = head
        .get(60..64)
        .and_then(|bytes| <[u8; 4]>::try_from(bytes).ok())
        .and_then(|bytes| usize::try_from(u32::from_le_bytes(bytes)).ok());
    let header = offset.and_then(|at| head.get(at..)?.get(..4));
    head.starts_with(b"MZ") && header == Some(b"PE\0\0")
}

/// The bytes of a member while they are read.
struct MemberReading<R> {
    source: R,
    /// Digests them by what RECORD has beside SHA-256.
    hasher: Option<RecordHasher>,
    /// The first of them.
    head: Vec<u8>,
}

impl<R: Read> Read for MemberReading<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.source.read(buffer)?;
        let bytes = buffer.get(..len).unwrap_or_default();
        let wanted = HEAD.saturating_sub(self.head.len());
        self.head.extend(bytes.iter().take(wanted));
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
        Ok(len)
    }
}
