//! One member of a wheel.

use std::io::{self, Read};

use rockpack_base::error::Result;
use rockpack_base::formats::hold::fault;
use rockpack_base::formats::wheel::{RecordHasher, WheelArchive};
use rockpack_base::formats::zip::ZipMember;
use rockpack_base::run::Budget;

use crate::verify::own::facts;
use crate::verify::own::installed::InstalledNode;

/// A member that was read.
pub(super) struct Found {
    pub(super) node: InstalledNode,
    /// The digest, by the hash function that RECORD uses.
    pub(super) digest: Vec<u8>,
}

/// Reads a member that is installed at `path`.
pub(super) fn found(
    wheel: &WheelArchive,
    member: &ZipMember,
    path: &str,
    budget: &Budget,
) -> Result<Found> {
    let hasher = wheel.hasher(&member.name).filter(|it| !matches!(it, RecordHasher::Sha256(_)));
    let mut reader = MemberReading { source: wheel.zip.reader(member)?, hasher };
    let facts = facts::examine(path, &mut reader, member.size, budget)?;
    // At its end, the bytes are compared with the header.
    io::copy(&mut reader, &mut io::sink()).map_err(fault)?;
    let digest = match reader.hasher {
        Some(hasher) => hasher.finish(),
        None => facts.sha256.to_vec(),
    };
    // pip and uv give such modes to what has none.
    let mode = member.mode.map(|mode| mode & 0o7777).filter(|mode| *mode != 0).unwrap_or(0o644);
    Ok(Found { node: InstalledNode::File { mode, facts }, digest })
}

/// The bytes of a member while they are read.
struct MemberReading<R> {
    source: R,
    /// Digests them by what RECORD has beside SHA-256.
    hasher: Option<RecordHasher>,
}

impl<R: Read> Read for MemberReading<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.source.read(buffer)?;
        let bytes = buffer.get(..len).unwrap_or_default();
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
        Ok(len)
    }
}
