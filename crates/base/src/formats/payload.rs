//! What the payloads of `.deb` and `.rpm` have in common: entries, and the way they are written
//! and read one after the other.
//!
//! Both formats carry an archive of directories, symbolic links and regular files, owned by root.
//! Nothing else is written. Hard links, pipes and devices in a `.deb` of another tool are read; they, sparse
//! files and capabilities are refused elsewhere.

use std::io::Read;
use std::ops::Range;

use super::compression::Effort;
use crate::error::Result;

/// What stands at a path of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PayloadEntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link.
    Link {
        /// Its text, as stored.
        target: String,
    },
    /// Something that only packages of other tools have.
    Special(SpecialKind),
}

/// Entries that rockpack writes in no package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpecialKind {
    /// A further name of a file.
    HardLink {
        /// The path of the file, relative to the root.
        target: String,
    },
    /// A named pipe.
    Pipe,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
}

impl SpecialKind {
    /// Its name in texts.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::HardLink { .. } => "hard link",
            Self::Pipe => "named pipe",
            Self::CharacterDevice => "character device",
            Self::BlockDevice => "block device",
        }
    }
}

/// How a package manager treats a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marking {
    /// Replaced on upgrade.
    Plain,
    /// Kept if the administrator changed it: deb conffile, rpm `%config(noreplace)`.
    Config,
    /// rpm `%doc`; nothing in deb.
    Doc,
    /// rpm `%license`; nothing in deb.
    License,
}

/// One path of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadEntry {
    /// The absolute install path without its leading slash; empty for the root directory.
    pub path: String,
    /// What stands there.
    pub kind: PayloadEntryKind,
    /// Permission bits, `0o777` at most with the three special bits above.
    pub mode: u32,
    /// Bytes of content; 0 unless it is a regular file.
    pub size: u64,
    /// How the package manager treats it.
    pub marking: Marking,
}

impl PayloadEntry {
    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.kind == PayloadEntryKind::File
    }

    /// The text of a link.
    pub fn target(&self) -> Option<&str> {
        match &self.kind {
            PayloadEntryKind::Link { target } => Some(target),
            PayloadEntryKind::Directory | PayloadEntryKind::File | PayloadEntryKind::Special(_) => {
                None
            }
        }
    }

    /// Bytes that a payload stores for it in rpm's archive: a link's text is its content.
    pub fn stored_size(&self) -> u64 {
        self.target().map_or(self.size, |target| target.len() as u64)
    }
}

/// A digest that a package states about one of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digest {
    /// Of a deb's `md5sums`.
    Md5([u8; 16]),
    /// Of an rpm's header.
    Sha256([u8; 32]),
}

/// The digests of a file's content that packages state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileDigests {
    /// For the receipt and for an rpm's header.
    pub sha256: [u8; 32],
    /// For a deb's `md5sums`; none where no `.deb` is written.
    pub md5: Option<[u8; 16]>,
    /// For an SPDX document; none where none is written.
    pub sha1: Option<[u8; 20]>,
}

/// An entry as it was read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadEntry {
    /// Path, kind, mode, size, marking.
    pub entry: PayloadEntry,
    /// Name of the owner.
    pub user: String,
    /// Name of the owning group.
    pub group: String,
    /// Modification time, seconds since 1970.
    pub mtime: u64,
    /// The digest that the package states; whoever reads the content compares it.
    pub declared: Option<Digest>,
}

/// What dpkg passes over in an archive, and no writer of archives need make.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Oddities {
    /// The first one, with its place.
    pub first: Option<String>,
    /// How many there are.
    pub count: usize,
}

impl Oddities {
    /// These, and `later` ones.
    pub(super) fn and(self, later: &Self) -> Self {
        Self { first: self.first.or_else(|| later.first.clone()), count: self.count + later.count }
    }

    /// Adds one that was met at a place.
    pub(super) fn add(&mut self, place: String, message: &str) {
        self.first.get_or_insert_with(|| format!("{place}: {message}"));
        self.count += 1;
    }
}

/// Called with every entry and, where it is a regular file, a reader of its content.
pub type Visitor<'a> = dyn FnMut(&ReadEntry, &mut dyn Read) -> Result<()> + 'a;

/// Takes the entries of a payload in the order in which they were announced.
pub trait PayloadWriter {
    /// The next entry begins, with content that is worth `effort`.
    fn begin(&mut self, effort: Effort) -> Result<()>;
    /// More content of the entry that began last.
    fn data(&mut self, bytes: &[u8]) -> Result<()>;
    /// The entry is whole; with the digests of its content if it is a regular file.
    fn end(&mut self, digests: Option<FileDigests>) -> Result<()>;
    /// All entries are whole: writes what is left and what only now is known.
    fn finish(self: Box<Self>) -> Result<Finished>;
}

/// A payload that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Where its compressed bytes lie in the package.
    pub payload: Range<u64>,
    /// What the package states about the content outside of its payload: the MD5 sum of each file
    /// in a deb; the SHA-256 of the archive and the color of each entry, as u32, in an rpm. A
    /// payload that is reused ([`Ready`]) needs it again.
    pub facts: Vec<u8>,
}

/// A payload that was compressed before.
#[derive(Debug, Clone, Copy)]
pub struct Ready<'a> {
    /// Number of its compressed bytes.
    pub len: u64,
    /// Their digest.
    pub sha256: [u8; 32],
    /// [`Finished::facts`].
    pub facts: &'a [u8],
    /// SHA-256 of the content of each entry that is a regular file.
    pub files: &'a [Option<[u8; 32]>],
}

/// The bytes of a package in front of and behind its payload.
#[derive(Debug)]
pub struct Around {
    /// Those in front.
    pub front: Vec<u8>,
    /// Those behind.
    pub back: &'static [u8],
}
