//! The indexes of an rpm repository, as dnf, zypper and yum read them.
//!
//! ```text
//! repodata/repomd.xml                    digests, sizes and names of the other files
//! repodata/<sha256>-primary.xml.gz       per package: version, place, digest, dependencies
//! repodata/<sha256>-filelists.xml.gz     per package: every path
//! repodata/<sha256>-other.xml.gz         per package: the change log
//! ```
//!
//! gzip compresses the lists, or zstd if all clients can read that (`.xml.zst`).
//!
//! Source: createrepo_c's output and its reading of headers. As there, `primary` has the paths below `/etc/`,
//! those with `bin/` in them, and `/usr/lib/sendmail`, and requirements on rpm itself and on the package's
//! own provisions are left out. Unlike there, all versions of libc's symbols stay, and `time file` is the
//! build time, so that the same packages give the same bytes. Characters that XML 1.0 cannot encode are
//! dropped from texts, and refused in names.

mod header;
mod package;
mod repomd;
mod xml;

pub use header::sign;
pub use package::{
    Changelog, DependencyList, DependencyLists, Evr, FileKind, IndexedDependency, RpmFile,
    RpmPackage, is_unlisted_path,
};
pub use repomd::{DataFile, Repomd};
pub use xml::{RepositoryRpm, filelists, other, primary};
