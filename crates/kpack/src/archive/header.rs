//! The first bytes of an archive.

use std::fmt;

/// The first four bytes.
pub const MAGIC: [u8; 4] = *b"KPAK";
/// The only version of header and TOC.
pub const VERSION: u32 = 1;
/// Bytes of magic, version and TOC offset.
pub const HEADER_LEN: usize = 16;

/// The content of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The offset of the TOC.
    pub toc_offset: u64,
}

/// A fault for which bytes are no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderFault {
    /// The file is shorter than a header.
    Truncated,
    /// The file begins with these bytes.
    Magic([u8; 4]),
    /// The header has this version.
    Version(u32),
}

impl fmt::Display for HeaderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("is shorter than a header"),
            Self::Magic(magic) => write!(f, "begins with {}, not KPAK", magic.escape_ascii()),
            Self::Version(version) => {
                write!(f, "version {version} is not known, only {VERSION} is")
            }
        }
    }
}

impl std::error::Error for HeaderFault {}

impl Header {
    /// Reads a header. The caller checks that the TOC is inside the file.
    pub fn parse(bytes: &[u8; HEADER_LEN]) -> Result<Self, HeaderFault> {
        let [m0, m1, m2, m3, v0, v1, v2, v3, toc_offset @ ..] = *bytes;
        let (magic, version) = ([m0, m1, m2, m3], u32::from_le_bytes([v0, v1, v2, v3]));
        if magic != MAGIC {
            return Err(HeaderFault::Magic(magic));
        }
        if version != VERSION {
            return Err(HeaderFault::Version(version));
        }
        Ok(Self { toc_offset: u64::from_le_bytes(toc_offset) })
    }

    /// Returns the bytes of the header.
    pub fn to_bytes(self) -> [u8; HEADER_LEN] {
        let ([m0, m1, m2, m3], [v0, v1, v2, v3]) = (MAGIC, VERSION.to_le_bytes());
        let [t0, t1, t2, t3, t4, t5, t6, t7] = self.toc_offset.to_le_bytes();
        [m0, m1, m2, m3, v0, v1, v2, v3, t0, t1, t2, t3, t4, t5, t6, t7]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_is_written() {
        let header = Header { toc_offset: 0x0123_4567_89ab_cdef };
        let bytes = header.to_bytes();
        assert_eq!(&bytes, b"KPAK\x01\0\0\0\xef\xcd\xab\x89\x67\x45\x23\x01");
        assert_eq!(Header::parse(&bytes), Ok(header));
    }
}
