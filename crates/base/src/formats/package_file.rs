//! A package file of either format: what it takes to write one, and a reader that tells the format
//! by the first bytes.

use std::cmp::Ordering;
use std::fmt;
use std::fs::File;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::compression::Compression;
use super::payload::{Around, PayloadEntry, PayloadWriter, Ready, Visitor};
use super::{deb, rpm};
use crate::content::Content;
use crate::error::{Error, Result};

/// A package format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Debian's format 2.0.
    Deb,
    /// RPM's format 4 (header v4).
    Rpm,
}

impl Format {
    /// Both, in the order in which packages are listed.
    pub const ALL: [Self; 2] = [Self::Deb, Self::Rpm];

    /// Its name in texts, plans and receipts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deb => "deb",
            Self::Rpm => "rpm",
        }
    }

    /// The format that the name of a package file ends in, in letters of either case. `.ddeb` are
    /// packages of debug files, `.udeb` those of Debian's installer.
    pub fn of_file_name(name: &Path) -> Option<Self> {
        const ENDINGS: [(&str, Format); 4] = [
            ("deb", Format::Deb),
            ("ddeb", Format::Deb),
            ("udeb", Format::Deb),
            ("rpm", Format::Rpm),
        ];
        let ending = name.extension()?;
        let found = ENDINGS.into_iter().find(|(known, _)| ending.eq_ignore_ascii_case(known));
        found.map(|(_, format)| format)
    }

    /// Compares two full versions as the package manager of this format does.
    pub fn compare_versions(self, one: &str, other: &str) -> Ordering {
        match self {
            Self::Deb => deb::compare_versions(one, other),
            Self::Rpm => rpm::compare_versions(one, other),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Everything about a package of either format but the content of its files.
#[derive(Debug)]
pub enum PackageSpecification {
    /// Of a `.deb`.
    Deb(Box<deb::DebSpecification>),
    /// Of an `.rpm`.
    Rpm(Box<rpm::RpmSpecification>),
}

impl PackageSpecification {
    /// A writer into `file`, which is empty.
    pub fn writer(self, file: File) -> Result<Box<dyn PayloadWriter + Send>> {
        Ok(match self {
            Self::Deb(specification) => Box::new(deb::DebWriter::create(file, *specification)?),
            Self::Rpm(specification) => Box::new(rpm::RpmWriter::create(file, *specification)?),
        })
    }

    /// What is around a payload that need not be compressed again.
    pub fn around(&self, ready: &Ready<'_>) -> Result<Around> {
        match self {
            Self::Deb(specification) => deb::around(specification, ready),
            Self::Rpm(specification) => rpm::around(specification, ready),
        }
    }

    /// The entries in their order.
    pub fn entries(&self) -> &[PayloadEntry] {
        match self {
            Self::Deb(specification) => &specification.entries,
            Self::Rpm(specification) => &specification.entries,
        }
    }

    /// How the payload is compressed.
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
    /// A `.deb`.
    Deb(Box<deb::DebReader>),
    /// An `.rpm`.
    Rpm(Box<rpm::RpmReader>),
}

impl PackageReader {
    /// Opens a package by its magic bytes.
    pub fn open(content: Content) -> Result<Self> {
        let mut magic = [0; 8];
        let known = usize::try_from(content.len()).map_or(8, |len| len.min(8));
        content.read_at(0, &mut magic[..known])?;
        if &magic == super::ar::MAGIC {
            return Ok(Self::Deb(Box::new(deb::DebReader::open(content)?)));
        }
        if magic.starts_with(&rpm::LEAD_MAGIC) {
            return Ok(Self::Rpm(Box::new(rpm::RpmReader::open(content)?)));
        }
        Err(Error::unsupported("is neither a .deb nor an .rpm").at(&content.place(0)))
    }

    /// Goes once through the payload, in its order.
    pub fn visit(&self, visitor: &mut Visitor<'_>) -> Result<()> {
        match self {
            Self::Deb(reader) => reader.visit(visitor),
            Self::Rpm(reader) => reader.visit(visitor),
        }
    }
}
