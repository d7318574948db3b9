//! Packages and their members as written.

use std::collections::BTreeMap;

use rockpack_core::content::hex;
use serde::{Serialize, Serializer};

use rockpack_package::indexed::Indexed;
use rockpack_package::{Format, MemberKind};

/// A package file that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Emitted {
    /// [`Package::id`](rockpack_package::Package::id).
    pub package: String,
    /// Format of the package.
    pub format: Format,
    /// Name of the file in the output folder.
    pub file_name: String,
    /// Bytes of the package file.
    pub size: u64,
    /// Installed size that the package states, in bytes: a deb's Installed-Size × 1024, an rpm's SIZE.
    pub installed_size: u64,
    /// SHA-256 of the package file.
    #[serde(serialize_with = "hexadecimal")]
    pub sha256: [u8; 32],
    /// Members of the package, in path order.
    pub members: Vec<EmittedMember>,
    /// The entry for the index of a repository; `None` if the package is not to be published.
    #[serde(skip)]
    pub indexed: Option<Indexed>,
}

/// One path of an emitted package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EmittedMember {
    /// The absolute install path.
    pub path: String,
    /// Directory, file or link.
    pub kind: MemberKind,
    /// Permission bits.
    pub mode: u32,
    /// Bytes of content; 0 unless it is a file.
    pub size: u64,
    /// SHA-256 of a file's content.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "hexadecimal_option")]
    pub sha256: Option<[u8; 32]>,
    /// SHA-1 of a file's content, if [`EmitOptions::sha1`](super::EmitOptions::sha1) asked for it.
    #[serde(skip)]
    pub sha1: Option<[u8; 20]>,
    /// The text of a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

fn hexadecimal<S: Serializer>(digest: &[u8; 32], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&hex(digest))
}

fn hexadecimal_option<S: Serializer>(
    digest: &Option<[u8; 32]>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    digest.map(|digest| hex(&digest)).serialize(serializer)
}

/// The SHA-256 of every file in `emitted`, by absolute install path.
pub fn file_digests(emitted: &[Emitted]) -> BTreeMap<&str, &[u8; 32]> {
    let members = emitted.iter().flat_map(|package| &package.members);
    members.filter_map(|member| Some((member.path.as_str(), member.sha256.as_ref()?))).collect()
}
