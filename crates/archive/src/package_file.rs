//! Package files of either format: their writers, and a reader that recognises the format by the first bytes.

use std::fs::File;

use crate::deb;
use crate::payload::{CompressedPayload, PayloadEntry, PayloadFraming, PayloadWriter, Visitor};
use crate::rpm;
use rockpack_core::compression::Compression;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};
pub use rockpack_core::package_format::Format;

/// A package of either format, without the content of its files.
#[derive(Debug)]
pub enum PackageSpecification {
    Deb(Box<deb::DebSpecification>),
    Rpm(Box<rpm::RpmSpecification>),
}

impl PackageSpecification {
    /// Creates a writer into the empty `file`.
    pub fn writer(self, file: File) -> Result<Box<dyn PayloadWriter + Send>> {
        Ok(match self {
            Self::Deb(specification) => Box::new(deb::DebWriter::create(file, *specification)?),
            Self::Rpm(specification) => Box::new(rpm::RpmWriter::create(file, *specification)?),
        })
    }

    /// The bytes around a payload that was compressed earlier and is reused.
    pub fn framing(&self, ready: &CompressedPayload<'_>) -> Result<PayloadFraming> {
        match self {
            Self::Deb(specification) => deb::framing(specification, ready),
            Self::Rpm(specification) => rpm::framing(specification, ready),
        }
    }

    pub fn entries(&self) -> &[PayloadEntry] {
        match self {
            Self::Deb(specification) => &specification.entries,
            Self::Rpm(specification) => &specification.entries,
        }
    }

    pub fn compression(&self) -> Compression {
        match self {
            Self::Deb(specification) => specification.compression,
            Self::Rpm(specification) => specification.compression,
        }
    }

    /// Modification time of every entry, seconds since 1970.
    pub fn mtime(&self) -> u64 {
        match self {
            Self::Deb(specification) => specification.mtime,
            Self::Rpm(specification) => specification.mtime.into(),
        }
    }
}

/// A finished package of either format.
#[derive(Debug)]
pub enum PackageReader {
    Deb(Box<deb::DebReader>),
    Rpm(Box<rpm::RpmReader>),
}

impl PackageReader {
    /// Opens a package and recognises its format by the magic bytes.
    pub fn open(content: Content) -> Result<Self> {
        let mut magic = [0; 8];
        let known = usize::try_from(content.len()).map_or(8, |len| len.min(8));
        content.read_at(0, &mut magic[..known])?;
        if &magic == crate::ar::MAGIC {
            return Ok(Self::Deb(Box::new(deb::DebReader::open(content)?)));
        }
        if magic.starts_with(&rpm::LEAD_MAGIC) {
            return Ok(Self::Rpm(Box::new(rpm::RpmReader::open(content)?)));
        }
        Err(Error::unsupported("is neither a .deb nor an .rpm").at(&content.place(0)))
    }

    /// Visits the entries of the payload once, in order.
    pub fn visit(&self, visitor: &mut Visitor<'_>) -> Result<()> {
        match self {
            Self::Deb(reader) => reader.visit(visitor),
            Self::Rpm(reader) => reader.visit(visitor),
        }
    }
}
