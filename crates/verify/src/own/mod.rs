//! The content of packages, artifacts and prefixes, read by verify's own code.
//!
//! Verify must not trust the code that wrote them. So it reads host ELF files, offload bundles and compressed
//! bundles a second way, by other structures of the file than the split and the transform use, and
//! searches the archs in an index of kernels as text. It shares with the writers the readers
//! of finished formats (packages, kernel archives, manifests, markers, headers of code objects), which
//! other programs judge in the tests, the search for device code among other bytes of a host binary, the rules
//! of kernel databases and the reader that finds the files of an index, and the spellings of targets, including
//! those in the ids of bundle entries.

pub(super) mod archive;
pub(super) mod compressed_bundle;
pub(super) mod elf_file;
pub(super) mod facts;
pub(super) mod host_elf;
pub(super) mod host_form;
pub(super) mod index;
pub(super) mod installed;
pub(super) mod originals;
pub(super) mod package;
pub(super) mod shim_form;
pub(super) mod wheel;

use std::io::{self, Read};

use sha2::{Digest, Sha256};

pub(crate) type Sha = [u8; 32];

/// Bytes that a digest takes in one go, if there are two.
const BLOCK: usize = 64;

/// Takes the bytes for another digest.
type Also<'a> = &'a mut dyn FnMut(&[u8]);

/// Digests what is read through it, and gives it to another digest where one is wanted.
pub(crate) struct Hashing<'a> {
    source: &'a mut dyn Read,
    sha256: Sha256,
    also: Option<Also<'a>>,
}

impl<'a> Hashing<'a> {
    pub(crate) fn new(source: &'a mut dyn Read, also: Option<Also<'a>>) -> Self {
        Self { source, sha256: Sha256::new(), also }
    }

    /// The SHA-256 of what was read so far.
    pub(crate) fn sha256(&self) -> Sha {
        self.sha256.clone().finalize().into()
    }
}

impl Read for Hashing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.source.read(buffer)?;
        let bytes = buffer.get(..len).unwrap_or_default();
        match &mut self.also {
            None => self.sha256.update(bytes),
            // In turns, so that the CPU overlaps the two.
            Some(also) => bytes.chunks(BLOCK).for_each(|block| {
                also(block);
                self.sha256.update(block);
            }),
        }
        Ok(len)
    }
}
