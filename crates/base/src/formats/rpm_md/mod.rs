//! The indexes of an rpm repository, as dnf, zypper and yum read them.
//!
//! ```text
//! repodata/repomd.xml                    digests, sizes and names of the other files
//! repodata/<sha256>-primary.xml.gz       per package: version, place, digest, dependencies
//! repodata/<sha256>-filelists.xml.gz     per package: every path
//! repodata/<sha256>-other.xml.gz         per package: the change log
//! ```
//!
//! The lists are compressed by gzip, or by zstd where all clients can read that (`.xml.zst`).
//!
//! Source: createrepo_c's output and its reading of headers. As there, `primary` has the paths
//! below `/etc/`, with `bin/` in them, and `/usr/lib/sendmail`; requirements on rpm itself and on
//! what the package provides are left out. Unlike there, all versions of libc's symbols stay, and
//! `time file` is the time of the build: the same packages give the same bytes.
//! Characters that XML 1.0 has no way to write are left out of texts, and refused in names.

mod header;
mod package;
mod repomd;
mod xml;

pub use package::{
    Changelog, DependencyList, DependencyLists, Evr, FileKind, IndexedDependency, RpmFile,
    RpmPackage,
};
pub use repomd::{DataFile, Repomd};
pub use xml::{RepositoryRpm, filelists, other, primary};
