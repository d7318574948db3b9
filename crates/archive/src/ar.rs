//! The `ar` framing of a `.deb`.
//!
//! ```text
//! 8 bytes  magic "!<arch>\n"
//! per member, at an even offset:
//!   16  name, padded with blanks        6  owner, decimal
//!   12  mtime, decimal seconds          6  group, decimal
//!   10  size, decimal (after the mode)  8  mode, octal
//!    2  "`\n"
//!   then the bytes of the member, and one "\n" if their number is odd
//! ```
//!
//! Source: deb(5), and what `dpkg-deb` writes. The order is name, mtime, owner, group, mode, size. This is
//! not the `ar` crate, which writes a broken header for an eleven-digit size without an error. Refused: long names
//! (`//`, `#1/`), which no `.deb` has, and fields that apt 2.6 and 3.3 cannot read as numbers.

use std::ops::Range;
use std::str::FromStr;

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};

/// The first bytes of an archive.
pub const MAGIC: &[u8; 8] = b"!<arch>\n";

/// Bytes of a member header.
pub const HEADER_SIZE: usize = 60;

/// The largest size that fits into ten decimal digits.
pub const SIZE_MAX: u64 = 9_999_999_999;

/// Limit on the number of members, against hostile input: more than any `.deb` has, even with many signatures.
const MEMBERS_MAX: usize = 1024;

/// The numeric fields, other than the size, that apt reads: name, bytes in the header, radix.
const NUMBERS: [(&str, Range<usize>, u32); 4] =
    [("time", 16..28, 10), ("owner", 28..34, 10), ("group", 34..40, 10), ("mode", 40..48, 8)];

/// The header of a member owned by root with mode 0644.
pub fn header(name: &str, mtime: u64, size: u64) -> Result<[u8; HEADER_SIZE]> {
    if size > SIZE_MAX {
        let message =
            format!("{name} of {size} bytes exceeds the {SIZE_MAX} bytes of an ar member");
        return Err(Error::new(Kind::Limit, message)
            .structure("ar header")
            .hint("a .deb cannot be larger; split the component into several packages"));
    }
    let text = format!("{name:<16}{mtime:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, "100644");
    text.into_bytes()
        .try_into()
        .map_err(|_| Error::bug(format!("ar header of {name} has a field that is too long")))
}

/// A member and the range of its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArMember {
    /// Member name, without padding.
    pub name: String,
    /// The bytes of the member, as a range of the archive.
    pub range: Range<u64>,
}

/// Reads all members of the archive, which must end with the last of them.
pub fn members(archive: &Content) -> Result<Vec<ArMember>> {
    let mut magic = [0; MAGIC.len()];
    archive.read_at(0, &mut magic)?;
    if &magic != MAGIC {
        return Err(fault(archive, 0, "does not begin with !<arch>"));
    }
    let mut found = Vec::new();
    let mut at = MAGIC.len() as u64;
    while at < archive.len() {
        if found.len() == MEMBERS_MAX {
            return Err(fault(archive, at, "has more members than any package"));
        }
        let member = member(archive, at)?;
        at = skip_padding(archive, member.range.end)?;
        found.push(member);
    }
    Ok(found)
}

fn member(archive: &Content, at: u64) -> Result<ArMember> {
    let header: [u8; HEADER_SIZE] = archive.read_array(at).map_err(|e| e.structure("ar header"))?;
    let text = std::str::from_utf8(&header)
        .ok()
        .filter(|text| text.is_ascii() && text.ends_with("`\n"))
        .ok_or_else(|| fault(archive, at, "is not a member header"))?;
    let name = text[..16].trim_end_matches(' ').trim_end_matches('/');
    if name.is_empty() || name.starts_with('#') || name.contains('/') {
        return Err(fault(archive, at, "has a name that is not supported"));
    }
    for (part, range, radix) in NUMBERS {
        let field = &text[range];
        if !is_number(field, radix) {
            let shown = field.trim().escape_debug();
            let message = format!("member {name} has the {part} `{shown}`, which is not a number");
            let hint = "apt cannot read the package: build it again";
            return Err(fault(archive, at, &message).hint(hint));
        }
    }
    let size = plain_number(text[48..58].trim_end_matches(' '))
        .ok_or_else(|| fault(archive, at, "has no decimal size"))?;
    let start = at + HEADER_SIZE as u64;
    let end = start.checked_add(size).filter(|end| *end <= archive.len()).ok_or_else(|| {
        let left = archive.len() - start;
        let message = format!("member {name} of {size} bytes is cut off after {left}");
        Error::truncated(message).structure("ar header").at(&archive.place(at))
    })?;
    Ok(ArMember { name: name.to_owned(), range: start..end })
}

/// Whether apt can read this field as a number: it reads blanks as zero, and ignores everything after the digits.
fn is_number(field: &str, radix: u32) -> bool {
    let text = field.trim_start_matches(' ');
    let unsigned = text.trim_start();
    let unsigned = unsigned.strip_prefix('+').unwrap_or(unsigned);
    text.is_empty() || text.starts_with('\0') || unsigned.starts_with(|c: char| c.is_digit(radix))
}

/// Parses digits and nothing else.
pub(super) fn plain_number<T: FromStr>(digits: &str) -> Option<T> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

/// Skips the padding after a member that ends at `end`; returns the offset of the next member or the archive's end.
fn skip_padding(archive: &Content, end: u64) -> Result<u64> {
    if end.is_multiple_of(2) {
        return Ok(end);
    }
    if archive.read_array(end).map_err(|e| e.structure("ar padding"))? != *b"\n" {
        return Err(fault(archive, end, "has padding that is not a line feed"));
    }
    Ok(end + 1)
}

fn fault(archive: &Content, at: u64, message: &str) -> Error {
    Error::malformed(message).structure("ar header").at(&archive.place(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive() -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for (name, body) in [("debian-binary", "2.0\n"), ("odd", "abc")] {
            bytes.extend(header(name, 7, body.len() as u64).unwrap());
            bytes.extend(body.bytes());
        }
        bytes.push(b'\n');
        bytes
    }

    #[test]
    fn members_are_found_and_truncated_archives_are_refused() {
        let bytes = archive();
        let found = members(&Content::of_bytes(bytes.clone())).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found[1].name.as_str(), found[1].range.end - found[1].range.start), ("odd", 3));
        let whole_after = [8, 8 + 60 + 4];
        for len in (0..bytes.len()).filter(|len| !whole_after.contains(len)) {
            assert!(members(&Content::of_bytes(&bytes[..len])).is_err(), "{len}");
        }
    }

    #[test]
    fn a_size_of_eleven_digits_is_refused() {
        assert!(header("data.tar.zst", 0, SIZE_MAX).is_ok());
        let error = header("data.tar.zst", 0, SIZE_MAX + 1).unwrap_err();
        assert_eq!(error.kind(), Kind::Limit);
    }

    #[test]
    fn numbers_are_read_as_apt_reads_them() {
        for (range, fields) in [
            (16..28, [("", true), ("x", false), ("-1", false), (" 1", true), ("1x", true)]),
            (28..34, [("", true), ("root", false), ("+", false), ("\t1", true), ("\0", true)]),
            (34..40, [("+1", true), ("--1", false), (".", false), ("08", true), ("0x1", true)]),
            (40..48, [("", true), ("8", false), ("9", false), ("08", true), ("a", false)]),
        ] {
            for (field, is_read) in fields {
                let mut bytes = archive();
                let padded = format!("{field:<width$}", width = range.len());
                bytes[8 + range.start..8 + range.end].copy_from_slice(padded.as_bytes());
                let read = members(&Content::of_bytes(bytes));
                assert_eq!(read.is_ok(), is_read, "{range:?} {field:?}");
            }
        }
    }

    #[test]
    fn signs_and_blanks_in_a_size_are_refused() {
        for size in ["+4        ", " 4        ", "4 4       ", "          ", "-1        "] {
            let mut bytes = archive();
            bytes[8 + 48..8 + 58].copy_from_slice(size.as_bytes());
            assert!(members(&Content::of_bytes(bytes)).is_err(), "{size:?}");
        }
    }
}
