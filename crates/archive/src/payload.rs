//! Common parts of the payloads of `.deb` and `.rpm`: entries, and the traits and types to write and read them.
//!
//! Both formats carry an archive of directories, symbolic links and regular files, owned by root; rockpack
//! writes nothing else. Packages of other tools may have hard links, and a `.deb` also pipes and devices.
//! They are refused elsewhere, and so are sparse files and capabilities.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use rockpack_core::compression::Effort;
use rockpack_core::error::{Error, Result};
use rockpack_core::package_format::Format;
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PayloadEntryKind {
    Directory,
    File,
    Link {
        /// Link text, as stored.
        target: String,
    },
    /// A kind that only packages of other tools have.
    Special(SpecialKind),
}

/// The kinds of entries that rockpack never writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpecialKind {
    /// Another name of a file.
    HardLink {
        /// The path of the file, relative to the root.
        target: String,
    },
    Pipe,
    CharacterDevice,
    BlockDevice,
}

impl SpecialKind {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::HardLink { .. } => "hard link",
            Self::Pipe => "named pipe",
            Self::CharacterDevice => "character device",
            Self::BlockDevice => "block device",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Treatment {
    /// The file is replaced on upgrade.
    Plain,
    /// The file is kept if the administrator changed it (deb conffile, rpm `%config(noreplace)`).
    Config,
    /// The file is documentation (rpm `%doc`).
    Doc,
    /// The file is a licence text (rpm `%license`).
    License,
    /// The file is a shared library: 0644 in a `.deb` (Debian policy 8.1), 0755 in an `.rpm`, whose
    /// dependency generator looks at executable files only. The node's own mode is ignored.
    Library,
}

impl Treatment {
    /// The mode in `format` of a file whose mode in the plan is `mode`.
    pub fn mode(self, mode: u32, format: Format) -> u32 {
        match (self, format) {
            (Self::Library, Format::Deb) => 0o644,
            (Self::Library, Format::Rpm) => 0o755,
            _ => mode,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadEntry {
    /// The absolute install path without its leading slash; empty for the root directory.
    pub path: Arc<str>,
    pub kind: PayloadEntryKind,
    /// Permission bits, with the three special bits (at most `0o7777`).
    pub mode: u32,
    /// Bytes of content; 0 for other kinds than regular files.
    pub size: u64,
    pub treatment: Treatment,
}

impl PayloadEntry {
    pub fn is_file(&self) -> bool {
        self.kind == PayloadEntryKind::File
    }

    /// The text of a symbolic link; `None` for other kinds.
    pub fn target(&self) -> Option<&str> {
        match &self.kind {
            PayloadEntryKind::Link { target } => Some(target),
            _ => None,
        }
    }

    /// Bytes that rpm's archive stores for the entry, where a link's text is its content.
    pub fn stored_size(&self) -> u64 {
        self.target().map_or(self.size, |target| target.len() as u64)
    }
}

/// A digest that a package states for one of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digest {
    /// MD5, from a deb's `md5sums`.
    Md5([u8; 16]),
    /// SHA-256, from an rpm's header.
    Sha256([u8; 32]),
}

/// The digests of a file's content, as packages state them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileDigests {
    /// SHA-256, for the receipt and an rpm's header.
    pub sha256: [u8; 32],
    /// MD5, for a deb's `md5sums`; `None` if no `.deb` is written.
    pub md5: Option<[u8; 16]>,
    /// SHA-1, for an SPDX document; `None` if no document is written.
    pub sha1: Option<[u8; 20]>,
}

/// An entry read from a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadEntry {
    pub entry: PayloadEntry,
    pub user: String,
    pub group: String,
    /// Modification time, seconds since 1970.
    pub mtime: u64,
    /// The digest that the package states; the reader of the content compares it.
    pub declared: Option<Digest>,
}

/// A callback for every entry, with a reader of its content, which is empty unless it is a regular file.
pub type Visitor<'a> = dyn FnMut(&ReadEntry, &mut dyn Read) -> Result<()> + 'a;

/// Writes the entries of a payload, in the announced order.
pub trait PayloadWriter {
    /// Begins the next entry, and compresses its content with `effort`.
    fn begin(&mut self, effort: Effort) -> Result<()>;
    fn data(&mut self, bytes: &[u8]) -> Result<()>;
    /// Ends the current entry, with the digests of its content if it is a regular file.
    fn end(&mut self, digests: Option<FileDigests>) -> Result<()>;
    /// Writes the rest of the package after all entries, with values that are known only now.
    fn finish(self: Box<Self>) -> Result<Finished>;
}

pub(crate) fn write_fault(source: io::Error) -> Error {
    Error::io_without_path("write the package", source)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The compressed bytes, as a range of the package.
    pub payload: Range<u64>,
    /// Facts that the package states outside of its payload. For a deb, the MD5 sum of each file; for an rpm,
    /// the SHA-256 of the archive and of the payload, and the color of each entry, as u32. A reused payload
    /// ([`CompressedPayload`]) needs them again.
    pub facts: Vec<u8>,
}

/// A payload that was compressed earlier.
#[derive(Debug, Clone, Copy)]
pub struct CompressedPayload<'a> {
    /// Number of compressed bytes.
    pub len: u64,
    /// The facts of [`Finished::facts`].
    pub facts: &'a [u8],
    /// SHA-256 of the content of each entry; `None` for other kinds than regular files.
    pub files: &'a [Option<[u8; 32]>],
}

/// The bytes of a package in front of and after its payload.
#[derive(Debug)]
pub struct PayloadFraming {
    /// The bytes in front of the payload.
    pub front: Vec<u8>,
    /// The bytes after the payload.
    pub back: &'static [u8],
}
