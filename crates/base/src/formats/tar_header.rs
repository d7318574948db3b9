//! The headers of tar archives; their byte table is in [`super::tar`].

use std::ops::{Range, RangeInclusive};

use tar::{EntryType, Header};

use super::member;
use super::tar_number::number;
use crate::error::{Error, Result};

/// Unit of headers and padding, in bytes.
pub(super) const BLOCK: usize = 512;

/// The most bytes that a member may announce: sums of sizes stay in range.
pub(super) const SIZE_MAX: u64 = (1 << 56) - 1;

/// How an archive is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// As dpkg reads the data of a package: GNU's long names, and no other member about members.
    Dpkg,
    /// As GNU tar reads the control files of a package, for dpkg: also pax records, of which the last one
    /// counts and more than a long name, and volume labels.
    Control,
    /// As archives of artifacts are read: the same members, and nothing that a writer of archives
    /// would not make.
    Strict,
}

/// The numbers of a header that are checked: their places, and what they can be.
const NUMBERS: [(&str, Range<usize>, RangeInclusive<i128>); 4] = [
    ("user", USER, 0..=U32_MAX),
    ("group", GROUP, 0..=U32_MAX),
    ("size", SIZE, 0..=SIZE_MAX as i128),
    ("time", TIME, I64_MIN..=I64_MAX),
];

const MODE: Range<usize> = 100..108;
const USER: Range<usize> = 108..116;
const GROUP: Range<usize> = 116..124;
pub(super) const SIZE: Range<usize> = 124..136;
const TIME: Range<usize> = 136..148;

const U32_MAX: i128 = u32::MAX as i128;
const I64_MIN: i128 = i64::MIN as i128;
const I64_MAX: i128 = i64::MAX as i128;

/// The type of a volume label (`tar --label`).
const VOLUME_LABEL: u8 = b'V';

/// What the archive is called in messages.
pub(super) const ARCHIVE: &str = "tar archive";

/// A member, without its content.
#[derive(Debug)]
pub struct TarMember {
    /// As stored, from whichever place.
    pub name: String,
    /// The name that a link leads to; empty for other members.
    pub target: String,
    /// Its type.
    pub kind: EntryType,
    /// Bytes of content.
    pub size: u64,
    /// Whether a pax record gives it file capabilities.
    pub has_capabilities: bool,
    /// Its header, in which name, link name and size do not count.
    pub header: Box<Header>,
    /// Where its header starts in the archive, in bytes.
    pub start: u64,
}

impl TarMember {
    /// The permission bits, with the three special ones.
    pub fn mode(&self) -> Result<u32> {
        let mode = self.header.mode().map_err(|_| self.fault("has no mode"))?;
        Ok(mode & 0o7777)
    }

    /// The permission bits as dpkg sees them: the last ones of the number, or none where that is none.
    pub fn lenient_mode(&self) -> u32 {
        let mode = number(self.field(MODE)).unwrap_or_default();
        u32::try_from(mode & 0o7777).unwrap_or_default()
    }

    /// Whether the number of its mode has nothing but permission bits.
    pub fn has_plain_mode(&self) -> bool {
        number(self.field(MODE)) == Some(self.lenient_mode().into())
    }

    /// The modification time, in seconds since 1970; 0 for times before.
    pub fn time(&self) -> u64 {
        let time = number(self.field(TIME)).unwrap_or_default();
        u64::try_from(time).unwrap_or_default()
    }

    /// The user and the group: `root`, the name of another one, or a number, with a name that
    /// contradicts it in front.
    pub fn owners(&self) -> [String; 2] {
        [(USER, 265..297), (GROUP, 297..329)].map(|(id, name)| {
            let id = number(self.field(id)).unwrap_or_default();
            let name = String::from_utf8_lossy(&cut(self.field(name))).into_owned();
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

    /// An error about its header.
    pub fn fault(&self, message: &str) -> Error {
        member::fault(ARCHIVE, self.start, message)
    }

    /// Whether it is a volume label.
    pub fn is_label(&self) -> bool {
        is_label(&self.header)
    }

    /// Refuses its type.
    pub fn unsupported(&self, message: impl Into<String>) -> Error {
        Error::unsupported(message).structure(member::structure(ARCHIVE, self.start))
    }
}

/// Whether the header is that of a volume label, and of no file.
pub(super) fn is_label(header: &Header) -> bool {
    header.entry_type().as_byte() == VOLUME_LABEL
}

/// The header and the size in a block, with its sum and numbers checked. GNU tar passes over modes, owners
/// and times that are no numbers, unless they are blank, and takes sums of signed bytes.
pub(super) fn check(block: &[u8; BLOCK], start: u64, dialect: Dialect) -> Result<(Header, u64)> {
    let field = |place: Range<usize>| number(block.get(place).unwrap_or_default());
    let stated = field(148..156).ok_or_else(|| fault(start, "has no checksum"))?;
    let outside = |index: &usize| !(148..156).contains(index);
    let summed = |value: fn(u8) -> i128| -> i128 {
        let bytes = (0..BLOCK).filter(outside).map(|i| value(block[i]));
        bytes.sum::<i128>() + 8 * i128::from(b' ')
    };
    let is_lenient = dialect == Dialect::Control;
    let is_signed = || is_lenient && stated == summed(|byte| byte.cast_signed().into());
    if stated != summed(i128::from) && !is_signed() {
        return Err(fault(start, "has a wrong checksum"));
    }
    if is_lenient && is_blank(&block[MODE]) {
        return Err(fault(start, "has no mode"));
    }
    for (name, place, possible) in NUMBERS {
        let is_blank = || is_blank(block.get(place.clone()).unwrap_or_default());
        let is_passed_over = is_lenient && place != SIZE && !is_blank();
        let is_possible = field(place).is_some_and(|number| possible.contains(&number));
        if !is_passed_over && !is_possible {
            return Err(fault(start, &format!("has a {name} that no system has")));
        }
    }
    let size = field(SIZE).and_then(|size| u64::try_from(size).ok());
    let mut header = Header::new_old();
    header.as_mut_bytes().copy_from_slice(block);
    Ok((header, size.ok_or_else(|| fault(start, "has no size"))?))
}

/// Whether GNU tar sees nothing in a field for a number, and fails: blanks, also behind a NUL.
fn is_blank(field: &[u8]) -> bool {
    field.strip_prefix(&[0]).unwrap_or(field).iter().all(|byte| *byte == b' ')
}

/// The name in a header, with the prefix that ustar has.
pub(super) fn name_in(header: &Header) -> Vec<u8> {
    let bytes = header.as_bytes();
    let name = cut(&header.as_old().name);
    let is_ustar = bytes.get(257..263) == Some(b"ustar\0");
    let prefix = cut(bytes.get(345..500).unwrap_or_default());
    if is_ustar && !prefix.is_empty() { [&prefix, &b"/"[..], &name].concat() } else { name }
}

/// The bytes in front of the first NUL.
pub(super) fn cut(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().copied().take_while(|byte| *byte != 0).collect()
}

/// An error about what stands at a byte of the archive.
pub(super) fn fault(at: u64, message: &str) -> Error {
    member::fault(ARCHIVE, at, message)
}
