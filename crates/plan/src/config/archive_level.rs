//! Levels of kernel archives (`archive_level`).

use std::fmt;
use std::str::FromStr;

use rockpack_core::error::{Error, Kind, Result};
use rockpack_elf::kpack::Scheme;
use rockpack_package::Format;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveLevel {
    Stored,
    Zstd(i32),
}

impl ArchiveLevel {
    pub fn scheme(self) -> Scheme {
        match self {
            Self::Stored => Scheme::None,
            Self::Zstd(_) => Scheme::ZstdPerKernel,
        }
    }
}

impl FromStr for ArchiveLevel {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        // Readers need the same memory at every level.
        match text.parse() {
            Ok(level @ 1..=22) => Ok(Self::Zstd(level)),
            _ if text == Scheme::None.as_str() => Ok(Self::Stored),
            _ => {
                let message = format!("`{}` is not a valid level", text.escape_debug());
                Err(Error::new(Kind::Usage, message).hint("levels are 1 to 22, and `none`"))
            }
        }
    }
}

impl fmt::Display for ArchiveLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stored => f.write_str(Scheme::None.as_str()),
            Self::Zstd(level) => level.fmt(f),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveLevels {
    pub deb: ArchiveLevel,
    pub rpm: ArchiveLevel,
}

impl ArchiveLevels {
    pub fn of(self, format: Format) -> ArchiveLevel {
        format.select(self.deb, self.rpm)
    }
}
