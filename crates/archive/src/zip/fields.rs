//! Numbers in headers, and errors about them.

use rockpack_core::content::Content;
use rockpack_core::error::Error;

/// A reader of consecutive numbers; zero behind the last byte.
pub(super) struct Fields<'a> {
    pub(super) bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.bytes.split_at_checked(len)?;
        self.bytes = left;
        Some(taken)
    }

    pub fn skip(&mut self, len: usize) {
        self.take(len);
    }

    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        self.take(N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }
}

/// The message for a comment that [`has_records`].
pub(super) const IN_COMMENT: &str = "has a comment that readers may take for a part of the archive";

/// Whether a comment has the signature of a record in it. Some readers search for these.
pub(super) fn has_records(comment: &[u8]) -> bool {
    comment.windows(3).any(|start| matches!(start, [b'P', b'K', 0..=8]))
}

pub(super) fn several_disks(archive: &Content, at: u64) -> Error {
    let error = Error::unsupported("is one of several disks of an archive");
    error.structure("end record").at(&archive.place(at))
}

pub(super) fn fault(
    archive: &Content,
    structure: &str,
    at: u64,
    message: impl Into<String>,
) -> Error {
    Error::malformed(message).structure(structure).at(&archive.place(at))
}
