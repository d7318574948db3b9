//! What packages, artifacts and prefixes hold, read with eyes of verify's own.
//!
//! What wrote them is what is in question. So host ELF files, offload bundles, compressed bundles and
//! databases are told and taken apart a second way, by other structures of the file than the split and
//! the transform go by. The readers of the finished formats (packages, kernel archives, manifests,
//! markers, headers of code objects) are those of the writers; other programs judge them in the tests.
//! A test holds which formats may be asked.

pub(super) mod archive;
pub(super) mod digest;
pub(super) mod elf_file;
pub(super) mod embedded;
pub(super) mod facts;
pub(super) mod host_elf;
pub(super) mod index;
pub(super) mod installed;
pub(super) mod linked;
pub(super) mod originals;
pub(super) mod package;
pub(super) mod relocated;
