//! The package formats, and the order of their versions.

use std::cmp::Ordering;
use std::path::Path;

use crate::named_enum;

pub mod deb_version;

named_enum! {
    /// A package format.
    pub enum Format {
        /// Debian's format 2.0.
        Deb = "deb",
        /// RPM's format 4 (header v4).
        Rpm = "rpm",
    }
}

impl Format {
    /// Both formats, in the order of package lists.
    pub const ALL: [Self; 2] = [Self::Deb, Self::Rpm];

    /// The format of a package file by its extension, in upper or lower case. `.ddeb` files are packages of
    /// debug files, `.udeb` files those of Debian's installer.
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

    /// Compares two full versions as the format's package manager does.
    pub fn compare_versions(self, one: &str, other: &str) -> Ordering {
        match self {
            Self::Deb => deb_version::compare(one, other),
            Self::Rpm => rpm_version::Evr::parse(one).cmp(&rpm_version::Evr::parse(other)),
        }
    }
}

named_enum! {
    /// A digest without which rpm 6 refuses a package: it ignores MD5 and SHA-1. rpm 4 knows no SHA3-256.
    pub enum MissingDigest {
        /// The digest of the header, which is part of the signature.
        Header = "header",
        /// The digest of the payload, which is part of the header. The package may lack both.
        Payload = "payload",
    }
}
