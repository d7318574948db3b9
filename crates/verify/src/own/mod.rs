//! The content of packages, artifacts and prefixes, read by verify's own code.
//!
//! Verify must not trust the code that wrote them. So it reads host ELF files, offload bundles and compressed
//! bundles a second way, by other structures of the file than the split and the transform use, and
//! searches the archs in an index of kernels as text. It shares with the writers the readers
//! of finished formats (packages, kernel archives, manifests, markers, headers of code objects), which
//! other programs judge in the tests, the rules of kernel databases and the reader that finds the files of an
//! index, and the spellings of targets, including those in the ids of bundle
//! entries. A test keeps the list of formats.

pub(super) mod archive;
pub(super) mod compressed;
pub(super) mod digest;
pub(super) mod elf_file;
pub(super) mod embedded;
pub(super) mod facts;
pub(super) mod host_elf;
pub(super) mod host_form;
pub(super) mod index;
pub(super) mod installed;
pub(super) mod linked;
pub(super) mod originals;
pub(super) mod package;
mod rpm_header;
pub(super) mod wheel;
