//! Independent readers of packages, artifacts and prefixes.
//!
//! Verify must not trust the code that wrote them. So it has second implementations for host ELF files, offload bundles
//! and compressed bundles, which use other structures of the files than the split and the transform, and it searches
//! for archs in kernel indexes as text. Shared with the writers are: the readers of finished formats (packages, kernel
//! archives, manifests, markers, headers of code objects), which tests compare with other programs; the search for
//! device code in host binaries; the rules of kernel databases and the reader of references in indexes; and the
//! spellings of targets, including those in the ids of bundle entries.

pub(super) mod archive;
pub(super) mod compressed_bundle;
pub(super) mod elf_file;
pub(super) mod facts;
pub(super) mod fat_binary;
pub(super) mod host_elf;
pub(super) mod host_form;
pub(super) mod index;
pub(super) mod installed;
pub(super) mod package;
pub(super) mod shim_form;
pub(super) mod wheel;

use std::io::{self, Read};

use sha2::{Digest, Sha256};

pub(crate) type Sha = [u8; 32];

/// Bytes that each of two digests processes at a time.
const BLOCK: usize = 64;

/// Updates a second digest.
type SecondDigest<'a> = &'a mut dyn FnMut(&[u8]);

/// Computes the SHA-256, and optionally a second digest, of everything that is read through it.
pub(crate) struct HashingReader<'a> {
    source: &'a mut dyn Read,
    sha256: Sha256,
    second: Option<SecondDigest<'a>>,
}

impl<'a> HashingReader<'a> {
    pub(crate) fn new(source: &'a mut dyn Read, second: Option<SecondDigest<'a>>) -> Self {
        Self { source, sha256: Sha256::new(), second }
    }

    /// The SHA-256 of the bytes read so far.
    pub(crate) fn sha256(&self) -> Sha {
        self.sha256.clone().finalize().into()
    }
}

impl Read for HashingReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.source.read(buffer)?;
        let bytes = buffer.get(..len).unwrap_or_default();
        match &mut self.second {
            None => self.sha256.update(bytes),
            // Interleaves the digests block by block, so that the CPU overlaps their dependency chains.
            Some(second) => bytes.chunks(BLOCK).for_each(|block| {
                second(block);
                self.sha256.update(block);
            }),
        }
        Ok(len)
    }
}
