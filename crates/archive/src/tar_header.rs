//! Numbers in the headers of tar archives, as dpkg reads them.
//!
//! ```text
//! octal digits, with blanks in front, and blanks and NULs after; a NUL and no digit is zero, and nothing
//! but blanks is no number
//! 0x80, then the number, big-endian
//! 0xff, then the number, big-endian in two's complement, which is negative
//! ```
//!
//! Source: `lib/dpkg/tarfn.c` of dpkg 1.21. The `tar` crate drops digits that do not fit, and all after a NUL.

use std::ops::{Range, RangeInclusive};

use tar::{EntryType, Header};

use crate::member;
use rockpack_core::error::{Error, Result};

/// Unit of headers and padding, in bytes.
pub(super) const BLOCK: usize = 512;

/// The largest size that a member may announce, in bytes, so that sums of sizes stay in range.
pub(super) const SIZE_MAX: u64 = (1 << 56) - 1;

/// The rules for reading an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// dpkg's rules for the data of a package: GNU's long names, and no other members about members.
    Dpkg,
    /// GNU tar's rules for the control files of a package: also volume labels, and pax records, where a later
    /// record overrides earlier ones and long names.
    Control,
    /// The rules for archives of artifacts: the members of GNU tar, without any irregularity.
    Strict,
}

/// The checked numbers of a header: name, position and range of values.
const NUMBERS: [(&str, Range<usize>, RangeInclusive<i128>); 4] = [
    ("user", USER, 0..=u32::MAX as i128),
    ("group", GROUP, 0..=u32::MAX as i128),
    ("size", SIZE, 0..=SIZE_MAX as i128),
    ("time", TIME, i64::MIN as i128..=i64::MAX as i128),
];

const MODE: Range<usize> = 100..108;
const USER: Range<usize> = 108..116;
const GROUP: Range<usize> = 116..124;
pub(super) const SIZE: Range<usize> = 124..136;
const TIME: Range<usize> = 136..148;

/// The type of a volume label (`tar --label`).
const VOLUME_LABEL: u8 = b'V';

pub(super) const ARCHIVE: &str = "tar archive";

/// A member, without its content.
#[derive(Debug)]
pub struct TarMember {
    /// The name, from the header or an earlier member, as stored.
    pub name: String,
    /// The target of a link; empty for other members.
    pub target: String,
    pub kind: EntryType,
    /// Bytes of content.
    pub size: u64,
    /// Whether a pax record gives the member file capabilities.
    pub has_capabilities: bool,
    /// Whether a pax record gives the size, which then overrides the header's.
    pub has_size_record: bool,
    /// The header; its name, link name and size are overridden by the fields here.
    pub header: Box<Header>,
    /// Offset of the header in the archive, in bytes.
    pub start: u64,
    /// Offset of the first header that is for this member alone: an extended one, or its own.
    pub first_header: u64,
}

impl TarMember {
    /// The permission bits, with the three special ones.
    pub fn mode(&self) -> Result<u32> {
        let mode = self.header.mode().map_err(|_| self.fault("has no mode"))?;
        Ok(mode & 0o7777)
    }

    /// The permission bits as dpkg sees them: the low bits of the number, or 0 if the field is no number.
    pub fn lenient_mode(&self) -> u32 {
        let mode = number(self.field(MODE)).unwrap_or_default();
        u32::try_from(mode & 0o7777).unwrap_or_default()
    }

    /// The modification time, in seconds since 1970; 0 for earlier times.
    pub fn time(&self) -> u64 {
        let time = number(self.field(TIME)).unwrap_or_default();
        u64::try_from(time).unwrap_or_default()
    }

    /// The user and the group: a name, or a number if there is no name. If name and number disagree about
    /// `root`, both: `name (number)`.
    pub fn owners(&self) -> [String; 2] {
        [(USER, 265..297), (GROUP, 297..329)].map(|(id, name)| {
            let id = number(self.field(id)).unwrap_or_default();
            let name = String::from_utf8_lossy(until_nul(self.field(name))).into_owned();
            match (name.as_str(), id) {
                ("root", 0) => name,
                ("", id) => id.to_string(),
                (other, id) if id != 0 && other != "root" => name,
                (other, id) => format!("{other} ({id})"),
            }
        })
    }

    fn field(&self, place: Range<usize>) -> &[u8] {
        self.header.as_bytes().get(place).unwrap_or_default()
    }

    pub fn fault(&self, message: &str) -> Error {
        member::fault(ARCHIVE, self.start, message)
    }

    /// Makes an error for a member type that is refused.
    pub fn unsupported(&self, message: impl Into<String>) -> Error {
        Error::unsupported(message).structure(member::structure(ARCHIVE, self.start))
    }
}

pub(super) fn is_label(header: &Header) -> bool {
    header.entry_type().as_byte() == VOLUME_LABEL
}

/// Checks sum and numbers of the header in a block, and returns the size. Like GNU tar, it ignores invalid
/// modes, owners and times unless they are blank, and accepts sums of signed bytes.
pub(super) fn check(block: &[u8; BLOCK], start: u64, dialect: Dialect) -> Result<u64> {
    let stated = number_at(block, 148..156).ok_or_else(|| fault(start, "has no checksum"))?;
    let is_lenient = dialect == Dialect::Control;
    let is_sum = stated == sum_of(block, i32::from)
        || is_lenient && stated == sum_of(block, |byte| byte.cast_signed().into());
    if !is_sum {
        return Err(fault(start, "has a wrong checksum"));
    }
    if is_lenient && is_blank(&block[MODE]) {
        return Err(fault(start, "has no mode"));
    }
    for (name, place, possible) in NUMBERS {
        let is_passed_over =
            is_lenient && place != SIZE && !is_blank(block.get(place.clone()).unwrap_or_default());
        let is_possible = number_at(block, place).is_some_and(|number| possible.contains(&number));
        if !is_passed_over && !is_possible {
            return Err(fault(start, &format!("has an invalid {name}")));
        }
    }
    let size = number_at(block, SIZE).and_then(|size| u64::try_from(size).ok());
    size.ok_or_else(|| fault(start, "has no size"))
}

fn number_at(block: &[u8; BLOCK], place: Range<usize>) -> Option<i128> {
    number(block.get(place).unwrap_or_default())
}

/// The sum of the bytes, with blanks for the checksum.
fn sum_of(block: &[u8; BLOCK], value: impl Fn(u8) -> i32) -> i128 {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| value(*byte)).sum::<i32>();
    i128::from(sum(&block[..148]) + 8 * i32::from(b' ') + sum(&block[156..]))
}

/// Whether GNU tar fails on a number field because it is blank, also after a NUL.
fn is_blank(field: &[u8]) -> bool {
    field.strip_prefix(&[0]).unwrap_or(field).iter().all(|byte| *byte == b' ')
}

/// The name in a header, with ustar's prefix.
pub(super) fn name_in(header: &Header) -> Vec<u8> {
    let bytes = header.as_bytes();
    let name = until_nul(&header.as_old().name);
    let is_ustar = bytes.get(257..263) == Some(b"ustar\0");
    let prefix = until_nul(bytes.get(345..500).unwrap_or_default());
    if is_ustar && !prefix.is_empty() { [prefix, b"/", name].concat() } else { name.to_vec() }
}

/// The bytes in front of the first NUL.
pub(super) fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

pub(super) fn fault(at: u64, message: &str) -> Error {
    member::fault(ARCHIVE, at, message)
}

/// The number in a field of up to twelve bytes; `None` if dpkg finds no number.
fn number(field: &[u8]) -> Option<i128> {
    match field.split_first() {
        Some((0x80, rest)) => Some(big_endian(0, rest)),
        Some((0xff, rest)) => Some(big_endian(-1, rest)),
        _ => octal(field),
    }
}

fn big_endian(start: i128, bytes: &[u8]) -> i128 {
    bytes.iter().fold(start, |number, byte| (number << 8) | i128::from(*byte))
}

fn octal(field: &[u8]) -> Option<i128> {
    let start = field.iter().position(|byte| *byte != b' ')?;
    let (mut bytes, mut number) = (field[start..].iter(), 0_u64);
    for byte in bytes.by_ref() {
        match byte {
            b'0'..=b'7' => number = (number << 3) | u64::from(byte - b'0'),
            b' ' | 0 => break,
            _ => return None,
        }
    }
    bytes.all(|byte| matches!(byte, b' ' | 0)).then(|| number.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_dpkg_sees() {
        for (field, expected) in [
            (&b"0000644\0"[..], Some(0o644)),
            (b"  644 \0\0", Some(0o644)),
            (b"00000644", Some(0o644)),
            (b"77777777", Some(0o7777_7777)),
            (b"777777777777", Some(0o7777_7777_7777)),
            (b"\0\0\0\0\0\0\0\0", Some(0)),
            (b"       \0", Some(0)),
            (b"        ", None),
            (b"", None),
            (b"644 x\0\0\0", None),
            (b"644\0x\0\0\0", None),
            (b"9\0\0\0\0\0\0\0", None),
            (b"-1\0\0\0\0\0\0", None),
            (b"\x81\0\0\0\0\0\0\0", None),
            (b"\x80\0\0\0\0\0\x01\xa4", Some(0o644)),
            (b"\x80\x01\0\0\0\0\0\0", Some(1 << 48)),
            (b"\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", Some((1 << 88) - 1)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xfe", Some(-2)),
            (b"\xff\0\0\0\0\0\0\0\0\0\0\0", Some(-(1 << 88))),
        ] {
            assert_eq!(number(field), expected, "{field:?}");
        }
    }
}
