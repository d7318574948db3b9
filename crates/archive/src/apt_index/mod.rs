//! The indexes of an apt repository.
//!
//! ```text
//! dists/<suite>/InRelease         Release, clear-signed: the one file that makes all others valid
//! dists/<suite>/Release           one paragraph of fields, then the digests of every index
//! dists/<suite>/<component>/binary-<architecture>/Packages
//!                                 one paragraph per package: its control file, Filename, Size and
//!                                 digests; paragraphs are separated by an empty line
//! …/by-hash/SHA256/<digest>       the same indexes under names that never change their content
//! ```
//!
//! Source: Debian's description of the repository format, apt-secure(8), sources.list(5), and the output of
//! apt-ftparchive. rockpack writes SHA-256 and SHA-512; apt trusts neither MD5 nor SHA-1.

mod packages;
mod preferences;
mod release;

pub use packages::{DebPackage, Stanza, paragraphs};
pub use preferences::{pin, url_host};
pub use release::{IndexFile, KEYRING_KEYS, Release, format_date, parse_date};
