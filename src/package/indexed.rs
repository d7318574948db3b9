//! A package as an index has it: what its header says, size and digests, from one read.
//!
//! Made of a package that was just written, and of one that is given to be published: both are
//! told by their first bytes, never by a name. Refused: what is neither a `.deb` nor an `.rpm`.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256, Sha512};

use crate::content::{Content, hex};
use crate::error::{Error, Kind, Result};
use crate::formats::path_digests::PathDigests;
use crate::formats::rpm::{Front, LEAD_MAGIC};
use crate::formats::{apt_index, deb, rpm, rpm_md};
use crate::package::Format;

/// What the file of a package is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Indexed {
    /// What the package says of itself.
    pub facts: Facts,
    /// Bytes of the file.
    pub size: u64,
    /// SHA-256 of the file in hex.
    pub sha256: String,
    /// SHA-512 of the file in hex.
    pub sha512: String,
}

/// What a package says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Facts {
    /// Of a `.deb`.
    Deb(apt_index::DebPackage),
    /// Of an `.rpm`.
    Rpm(Box<rpm_md::RpmPackage>),
}

/// The first bytes of an ar archive, which a `.deb` is.
const AR_MAGIC: &[u8; 8] = b"!<arch>\n";

impl Indexed {
    /// Reads a package once for its digests, and what is in front for its facts.
    pub fn read(content: &Content) -> Result<Self> {
        let _open = content.pin()?;
        let (mut sha256, mut sha512) = (Sha256::new(), Sha512::new());
        let facts = Facts::read(content)?;
        content.each_window(|bytes| {
            sha256.update(bytes);
            sha512.update(bytes);
        })?;
        let (sha256, sha512) = (hex(&sha256.finalize()), hex(&sha512.finalize()));
        Ok(Self { facts, size: content.len(), sha256, sha512 })
    }
}

impl Facts {
    fn read(content: &Content) -> Result<Self> {
        let len = content.len().min(AR_MAGIC.len() as u64);
        let head = content.read_vec(0..len, len, "first bytes")?;
        if head == AR_MAGIC {
            let front = deb::DebFront::read(content)?;
            let paths = PathDigests::of(front.paths());
            let package = apt_index::DebPackage::of_control(&front.control)?;
            let unread = front.unread;
            return Ok(Self::Deb(apt_index::DebPackage { unread, paths, ..package }));
        }
        if head.starts_with(&LEAD_MAGIC) {
            let package = rpm_md::RpmPackage::of_front(&Front::read(content)?)?;
            return Ok(Self::Rpm(Box::new(package)));
        }
        let error = Error::new(Kind::Malformed, "is neither a .deb nor an .rpm");
        Err(error.hint("remove it, or name the packages instead of their folder"))
    }

    /// The package's format.
    pub fn format(&self) -> Format {
        match self {
            Self::Deb(_) => Format::Deb,
            Self::Rpm(_) => Format::Rpm,
        }
    }

    /// The package's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Deb(package) => &package.name,
            Self::Rpm(package) => &package.name,
        }
    }

    /// The whole version.
    pub fn version(&self) -> String {
        match self {
            Self::Deb(package) => package.version.clone(),
            Self::Rpm(package) => package.evr(),
        }
    }

    /// The architecture.
    pub fn arch(&self) -> &str {
        match self {
            Self::Deb(package) => &package.architecture,
            Self::Rpm(package) => &package.arch,
        }
    }

    /// The path in the pool, which follows from the package alone.
    pub fn pool_path(&self, component: &str) -> String {
        match self {
            Self::Deb(package) => {
                let source = &package.source;
                let folder = letter(source);
                format!("pool/{component}/{folder}/{source}/{}", package.file_name())
            }
            Self::Rpm(package) => {
                format!("packages/{}/{}", letter(&package.name), package.file_name())
            }
        }
    }

    /// Which version is newer, by the rules of the format.
    pub fn compare_versions(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Deb(a), Self::Deb(b)) => deb::compare_versions(&a.version, &b.version),
            (Self::Rpm(a), Self::Rpm(b)) => rpm::compare_versions(&a.evr(), &b.evr()),
            (Self::Deb(_), Self::Rpm(_)) => Ordering::Less,
            (Self::Rpm(_), Self::Deb(_)) => Ordering::Greater,
        }
    }
}

/// Pools are cut by the first letter; libraries, of which there are many, by four.
fn letter(name: &str) -> String {
    let len = if name.starts_with("lib") { 4 } else { 1 };
    name.chars().take(len).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_package_is_refused() {
        for bytes in [&b""[..], b"!<arch>\n", b"\xed\xab\xee\xdb", b"PK\x03\x04 and more"] {
            assert!(Indexed::read(&Content::of_bytes(bytes)).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn libraries_have_folders_of_their_own() {
        assert_eq!([letter("rocm-blas"), letter("libdrm"), letter("Lib")], ["r", "libd", "l"]);
    }
}
