//! RPM's package format 4.
//!
//! ```text
//! lead       96 bytes, magic ed ab ee db; of historical interest
//! signature  a header (below) with digests and sizes, padded to 8 bytes; reserved space in it
//!            takes a later OpenPGP signature without moving what follows
//! header     8e ad e8 01, 4 zeros, u32 entries, u32 bytes of data, 16 bytes per entry, the data
//! payload    a compressed cpio archive
//! ```
//!
//! Source: rpm's format descriptions and rpmbuild 4.18's output, compared tag by tag. The `rpm` crate's lead,
//! header and tag types are used. Its builder is not, because it holds a whole compressed payload in memory
//! and reads every file twice. rockpack writes in one pass: every digest has a fixed length, so the sizes of
//! header and signature are known before the content is read. Both are written again when all digests are
//! known.

mod cpio;
mod dependencies;
mod files;
mod front;
mod header;
mod reader;
mod signature;
mod specification;
mod structure;
mod writer;

pub use files::differing_paths;
pub use front::{RpmFront, missing_digest};
pub use reader::RpmReader;
pub use rockpack_core::package_format::MissingDigest;
pub use signature::{HeaderSignature, HeaderSigner, SignatureTag, signed};
pub(super) use specification::fault as header_fault;
pub use specification::{RpmChange, RpmControl, RpmSpecification, Scriptlet, ScriptletPhase};
pub(super) use structure::SIGNATURES;
pub use writer::{RpmWriter, framing};

use rpm::DependencyFlags as Flags;

use crate::payload::PayloadEntry;
use rockpack_core::error::{Error, Kind};

/// The first bytes of a package.
pub const LEAD_MAGIC: [u8; 4] = [0xed, 0xab, 0xee, 0xdb];

const LEAD_SIZE: usize = 96;

/// The first bytes of a header.
const HEADER_MAGIC: [u8; 8] = [0x8e, 0xad, 0xe8, 0x01, 0, 0, 0, 0];

const MODE_DIRECTORY: u32 = 0o040_000;
const MODE_FILE: u32 = 0o100_000;
const MODE_LINK: u32 = 0o120_000;

/// SHA-256 in rpm's numbering of digests.
const SHA256_ALGORITHM: u32 = 8;

/// Installed size in bytes, as stated in the header: files and the texts of links.
pub fn installed_size(entries: &[PayloadEntry]) -> u64 {
    entries.iter().map(PayloadEntry::stored_size).sum()
}

/// The sign of a dependency with these flags, as `rpm -q --requires` shows it; empty if it compares nothing.
pub fn sign(flags: Flags) -> String {
    let signs = [(Flags::LESS, '<'), (Flags::GREATER, '>'), (Flags::EQUAL, '=')];
    signs.into_iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, sign)| sign).collect()
}

fn fault(message: &str) -> Error {
    Error::malformed(message.to_owned()).structure("rpm")
}

fn mismatch(message: &str) -> Error {
    Error::new(Kind::Verify, message.to_owned()).structure("rpm")
}
