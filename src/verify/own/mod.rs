//! What packages, artifacts and prefixes hold, read with eyes of verify's own.
//!
//! What wrote them is what is in question. So host ELF files, offload bundles and compressed bundles are
//! taken apart a second way, by other structures of the file than the split and the transform go by, and
//! the archs that an index of kernels names are searched as text. Shared with the writers are the readers
//! of finished formats (packages, kernel archives, manifests, markers, headers of code objects), which
//! other programs judge in the tests, of kernel databases the rules and the reader that tells to
//! which files an index refers, and the spellings of targets, also where they stand in the id of a bundle
//! entry. A test holds the list of formats.

pub(super) mod archive;
pub(super) mod compressed;
mod deb_faults;
pub(super) mod digest;
pub(super) mod elf_file;
pub(super) mod embedded;
pub(super) mod facts;
pub(super) mod host_elf;
pub(super) mod index;
pub(super) mod installed;
pub(super) mod linked;
pub(super) mod linked_versions;
pub(super) mod machine;
pub(super) mod maintainer;
pub(super) mod originals;
pub(super) mod package;
pub(super) mod relocated;
mod rpm_header;
pub(super) mod script;
pub(super) mod tables;
pub(super) mod wheel;
pub(super) mod wording;
