//! The keys of entries.

use rockpack_core::compression::LIBLZMA_SYS;
use rockpack_core::content::{Content, hex};
use rockpack_core::error::Result;

/// The digest by which the cache knows content: its BLAKE3.
pub type ContentDigest = blake3::Hash;

pub fn content_digest(content: &Content) -> Result<ContentDigest> {
    let mut hasher = blake3::Hasher::new();
    content.each_window(|bytes| {
        hasher.update(bytes);
    })?;
    Ok(hasher.finalize())
}

/// A digest of everything that the bytes of an entry depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

impl Key {
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The names of the entry's folder and file. Entries are spread over folders.
    pub(super) fn place(&self) -> [String; 2] {
        let name = hex(&self.0);
        let (folder, name) = name.split_at(2);
        [folder.to_owned(), name.to_owned()]
    }
}

/// Hashes the parts of a [`Key`], each with its length, so that different lists of parts give different input.
pub struct KeyBuilder(blake3::Hasher);

impl KeyBuilder {
    /// A key of this `kind`, for this version of the program and of its compressors.
    pub fn new(kind: &str) -> Self {
        let mut maker = Self(blake3::Hasher::new());
        maker.text(kind).text(env!("CARGO_PKG_VERSION"));
        maker.text(zstd::zstd_safe::version_string()).text(LIBLZMA_SYS);
        maker
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    pub fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    pub fn number(&mut self, number: u64) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    pub fn finish(self) -> Key {
        Key(self.0.finalize().into())
    }
}
