//! A package as an index has it: what its header says, size and digests, from one read.
//!
//! Made of a package that was just written, and of one that is given to be published: both are
//! told by their first bytes, never by a name. Refused: what is neither a `.deb` nor an `.rpm`.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use pgp::composed::{Deserializable, DetachedSignature};
use rockpack_base::content::{Content, hex};
use rockpack_base::error::{Error, Kind, Result};
use rockpack_base::formats::path_digests::{PathDigests, path_digest};
use rockpack_base::formats::rpm::LEAD_MAGIC;
use rockpack_base::formats::{apt_index, deb, rpm, rpm_md};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256, Sha512};

use crate::package::Format;

/// Most signatures of a header that are looked at.
const SIGNATURES_MAX: usize = 16;

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
    /// Reads a package for its digests, and for its facts.
    pub fn read(content: &Content) -> Result<Self> {
        let _open = content.pin()?;
        Self::digested(content, Facts::read(content)?)
    }

    /// Reads a package that was just built, of which the paths of files and links are known.
    pub fn of_built<'a>(
        content: &Content,
        paths: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self> {
        let _open = content.pin()?;
        let facts = match Front::of(content)? {
            Front::Deb(front) => deb_facts(&front, PathDigests::of(paths), None)?,
            Front::Rpm(front) => rpm_facts(&front)?,
        };
        Self::digested(content, facts)
    }

    fn digested(content: &Content, facts: Facts) -> Result<Self> {
        let (mut sha256, mut sha512) = (Sha256::new(), Sha512::new());
        content.each_window(|bytes| {
            sha256.update(bytes);
            sha512.update(bytes);
        })?;
        let (sha256, sha512) = (hex(&sha256.finalize()), hex(&sha512.finalize()));
        Ok(Self { facts, size: content.len(), sha256, sha512 })
    }
}

/// What an index is made of.
enum Front {
    Deb(deb::DebFront),
    Rpm(Box<rpm::Front>),
}

impl Front {
    fn of(content: &Content) -> Result<Self> {
        let len = content.len().min(AR_MAGIC.len() as u64);
        let head = content.read_vec(0..len, len, "first bytes")?;
        if head == AR_MAGIC {
            return deb::DebFront::read(content).map(Self::Deb);
        }
        if head.starts_with(&LEAD_MAGIC) {
            return rpm::Front::read(content).map(|front| Self::Rpm(Box::new(front)));
        }
        let error = Error::new(Kind::Malformed, "is neither a .deb nor an .rpm");
        let error = error.of_other_kind();
        Err(error.hint("remove it, or name the packages instead of their folder"))
    }
}

fn deb_facts(front: &deb::DebFront, paths: PathDigests, unread: Option<String>) -> Result<Facts> {
    let package = apt_index::DebPackage::of_control(&front.control)?;
    Ok(Facts::Deb(apt_index::DebPackage { unread, paths, ..package }))
}

/// The first path that `is_it` holds for, of those that a `.deb` owns, without leading slash. A package
/// that cannot be read has none; that is told by whoever checks it.
pub fn deb_path(content: &Content, is_it: impl Fn(&str) -> bool) -> Option<String> {
    let mut found = None;
    let looked = deb::each_owned_path(content, |path| {
        if found.is_none() && is_it(path) {
            found = Some(path.to_owned());
        }
    });
    if looked.is_err() && found.is_none() {
        let front = deb::DebFront::read(content).ok()?;
        found = front.paths().find(|path| is_it(path)).map(str::to_owned);
    }
    found
}

fn rpm_facts(front: &rpm::Front) -> Result<Facts> {
    let package = rpm_md::RpmPackage::of_front(front)?;
    let signers = if package.signed { signers(front) } else { BTreeSet::new() };
    Ok(Facts::Rpm(Box::new(rpm_md::RpmPackage { signers, ..package })))
}

/// The ids of the keys that the signatures of a header name; what cannot be read names none.
fn signers(front: &rpm::Front) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for packets in front.metadata.raw_signatures().unwrap_or_default() {
        let Ok(packets) = DetachedSignature::from_bytes_many(&*packets) else { continue };
        for made in packets.take(SIGNATURES_MAX).flatten() {
            let issuers = made.signature.issuer_key_id();
            ids.extend(issuers.into_iter().map(|id| id.to_string().to_uppercase()));
        }
    }
    ids
}

impl Facts {
    fn read(content: &Content) -> Result<Self> {
        let front = match Front::of(content)? {
            Front::Deb(front) => front,
            Front::Rpm(front) => return rpm_facts(&front),
        };
        let mut numbers = Vec::new();
        match deb::each_owned_path(content, |path| numbers.push(path_digest(path))) {
            Ok(()) => deb_facts(&front, PathDigests::of_numbers(numbers), None),
            Err(error) => {
                let listed = PathDigests::of(front.paths());
                deb_facts(&front, listed, Some(deb::why_unread(&error)))
            }
        }
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
