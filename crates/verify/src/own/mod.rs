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

use md5::Md5;
use rockpack_core::content::WINDOW;
use rockpack_core::error::Result;
use sha2::{Digest, Sha256};

pub(crate) type Sha = [u8; 32];

/// Bytes that a digest takes in one go, if there are two.
const BLOCK: usize = 64;

/// Digests what is read through it, by MD5 too where that is wanted.
pub(crate) struct Hashing<'a> {
    source: &'a mut dyn Read,
    sha256: Sha256,
    md5: Option<Md5>,
}

impl<'a> Hashing<'a> {
    pub(crate) fn new(source: &'a mut dyn Read, md5: bool) -> Self {
        Self { source, sha256: Sha256::new(), md5: md5.then(Md5::new) }
    }

    /// The SHA-256 of what was read so far.
    pub(crate) fn sha256(&self) -> Sha {
        self.sha256.clone().finalize().into()
    }

    /// The MD5 of all that was read, if it was wanted.
    pub(crate) fn md5(self) -> Option<[u8; 16]> {
        Some(self.md5?.finalize().into())
    }
}

impl Read for Hashing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.source.read(buffer)?;
        let bytes = buffer.get(..len).unwrap_or_default();
        match &mut self.md5 {
            None => self.sha256.update(bytes),
            // In turns, so that the CPU overlaps the two.
            Some(md5) => bytes.chunks(BLOCK).for_each(|block| {
                md5.update(block);
                self.sha256.update(block);
            }),
        }
        Ok(len)
    }
}

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
