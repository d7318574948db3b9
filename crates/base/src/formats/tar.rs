//! tar archives, read from the first byte to the last.
//!
//! ```text
//! per member: 512 bytes of header (name 100, mode 8, uid 8, gid 8, size 12, mtime 12, checksum 8,
//!             type 1, link name 100, magic 8, user 32, group 32, device 16, in ustar a prefix of
//!             the name 155), then the content, padded with zeros to 512 bytes
//! at the end: two blocks of zeros, then nothing but zeros, as many as there are
//! magic:      "ustar " + " \0" (GNU) or "ustar\0" + "00" (POSIX)
//! ```
//!
//! A member of type `L` or `K` (GNU) holds the name or link name of the next one, with a NUL; one
//! of type `x` (POSIX.1-2001, "pax") holds records `<length> <key>=<value>\n` about the next one,
//! of type `g` about all that follow. Sizes from 8 GiB on are big-endian with the top bit set, or
//! a pax record. Source: POSIX pax(1), GNU tar's manual, and what GNU tar and Python write.
//!
//! Every header's checksum, every byte of padding and the end of the archive are checked. Of pax
//! records, `path`, `linkpath` and `size` count, and whether there are capabilities; times and owners
//! are passed over. Refused: names that are not UTF-8, records of type `g` that would say any of this
//! of all members, sparse members,
//! headers older than ustar. A volume label (type `V`, whose header has no magic) is skipped, as
//! GNU tar does; in a data archive it is refused, as dpkg does. Which of the other types
//! may occur is the caller's to say.
//! The `tar` crate's header and record types are used. Its reader takes the end of the bytes for
//! the end of the archive, checks no padding, and holds extended headers of any length.

use std::io::Read;
use std::ops::Range;

pub use tar::EntryType;
use tar::{Header, PaxExtensions};

use super::member::{self, MemberSource};
use crate::error::{Error, Result};

/// Unit of headers and padding, in bytes.
pub(super) const BLOCK: usize = 512;

/// Linux's PATH_MAX; a bound for hostile input.
pub(super) const LONG_NAME_MAX: u64 = 4096;

/// Longest extended header. Two paths and the attributes that a file system stores with a file
/// (64 KiB on Linux) fit several times.
const PAX_MAX: u64 = 256 << 10;

/// A size field can say more than any file has; this bound keeps sums of sizes in range.
const SIZE_MAX: u64 = 1 << 60;

/// The number that may be negative: a time before 1970.
const TIME: &str = "time";

/// The first byte of a negative number in base 256.
const NEGATIVE: u8 = 0xff;

/// The numbers of a header that may be in base 256, by their places.
const NUMBERS: [(&str, Range<usize>); 4] =
    [("user", 108..116), ("group", 116..124), ("size", 124..136), (TIME, 136..148)];

/// The pax records in which GNU tar and star, and bsdtar, keep file capabilities.
const CAPABILITIES: [&[u8]; 2] =
    [b"SCHILY.xattr.security.capability", b"LIBARCHIVE.xattr.security.capability"];

/// The type of a volume label (`tar --label`).
const VOLUME_LABEL: u8 = b'V';

/// What the archive is called in messages.
const ARCHIVE: &str = "tar archive";

/// Which extensions of ustar are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extensions {
    /// GNU's long names, as dpkg does.
    Gnu,
    /// GNU's long names, with volume labels skipped.
    GnuAndLabels,
    /// The same, and pax records.
    GnuAndPax,
}

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
    /// Where its header starts in the archive.
    start: u64,
}

impl TarMember {
    /// The permission bits, with the three special ones.
    pub fn mode(&self) -> Result<u32> {
        let mode = self.header.mode().map_err(|_| self.fault("has no mode"))?;
        Ok(mode & 0o7777)
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

/// What the members before a member say about it.
#[derive(Default)]
struct Extended {
    name: Option<String>,
    target: Option<String>,
    size: Option<u64>,
    has_capabilities: bool,
    /// Whether there was a pax header, which may also say nothing of interest.
    pax: bool,
}

impl Extended {
    fn is_empty(&self) -> bool {
        !self.pax && self.name.is_none() && self.target.is_none()
    }
}

/// Reads an archive member by member; reading gives the content of the current one.
pub struct TarMembers<R: Read> {
    source: MemberSource<R>,
    extensions: Extensions,
}

impl<R: Read> TarMembers<R> {
    /// Reads from the first member on.
    pub fn new(source: R, extensions: Extensions) -> Self {
        Self { source: MemberSource::new(source, ARCHIVE), extensions }
    }

    /// The next member, or none at the end of the archive; what is left of the one before is
    /// skipped.
    pub fn next_member(&mut self) -> Result<Option<TarMember>> {
        self.source.skip(BLOCK)?;
        let mut extended = Extended::default();
        loop {
            let start = self.source.at();
            let block = self.block()?;
            if block == [0; BLOCK] {
                return if extended.is_empty() {
                    self.end().map(|()| None)
                } else {
                    Err(fault(start, "a long name is followed by no member"))
                };
            }
            let mut header = Header::new_old();
            header.as_mut_bytes().copy_from_slice(&block);
            let size = check(&header, start)?;
            if !self.extends(&header, size, &mut extended)? {
                return self.member(header, size, extended, start).map(Some);
            }
        }
    }

    /// Whether the header is that of a member about other members, which then is read.
    fn extends(&mut self, header: &Header, size: u64, extended: &mut Extended) -> Result<bool> {
        let pax = self.extensions == Extensions::GnuAndPax;
        match header.entry_type() {
            EntryType::GNULongName if extended.name.is_none() => {
                extended.name = Some(self.text(size)?);
            }
            EntryType::GNULongLink if extended.target.is_none() => {
                extended.target = Some(self.text(size)?);
            }
            EntryType::XHeader if pax && !extended.pax => self.pax(size, extended)?,
            EntryType::XGlobalHeader if pax => {
                let start = self.source.at();
                let mut all = Extended::default();
                self.pax(size, &mut all)?;
                if all.name.is_some() || all.target.is_some() || all.size.is_some() {
                    return Err(fault(start, "names or sizes all members at once"));
                }
                if all.has_capabilities {
                    return Err(fault(start, "gives all members capabilities at once"));
                }
            }
            _ if is_label(header) && self.extensions != Extensions::Gnu && extended.is_empty() => {
                self.source.expect(size);
                self.source.skip(BLOCK)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn member(
        &mut self,
        header: Header,
        size: u64,
        extended: Extended,
        start: u64,
    ) -> Result<TarMember> {
        let text = |bytes: &[u8]| {
            String::from_utf8(bytes.to_vec())
                .map_err(|_| fault(start, "has a name that is no UTF-8"))
        };
        let name = extended.name.map_or_else(|| text(&header.path_bytes()), Ok)?;
        let link = header.link_name_bytes().unwrap_or_default();
        let target = extended.target.map_or_else(|| text(&link), Ok)?;
        let kind = header.entry_type();
        let size = extended.size.unwrap_or(size);
        let Extended { has_capabilities, .. } = extended;
        let header = Box::new(header);
        let member = TarMember { name, target, kind, size, has_capabilities, header, start };
        if kind == EntryType::GNUSparse {
            return Err(sparse(start).context(format!("reading the member {}", member.name)));
        }
        self.source.expect(size);
        Ok(member)
    }

    fn text(&mut self, size: u64) -> Result<String> {
        let start = self.source.at();
        let mut bytes = self.bytes(size, LONG_NAME_MAX, "has a name beyond PATH_MAX")?;
        if bytes.pop() != Some(0) || bytes.contains(&0) {
            return Err(fault(start, "has a name that does not end with a NUL"));
        }
        String::from_utf8(bytes).map_err(|_| fault(start, "has a name that is no UTF-8"))
    }

    fn pax(&mut self, size: u64, extended: &mut Extended) -> Result<()> {
        let start = self.source.at();
        let bytes = self.bytes(size, PAX_MAX, "has an extended header of too many bytes")?;
        extended.pax = true;
        for record in PaxExtensions::new(&bytes) {
            let record = record.map_err(|e| fault(start, "has a wrong pax record").cause(e))?;
            let key = record.key_bytes();
            if key.starts_with(b"GNU.sparse.") {
                return Err(sparse(start));
            }
            extended.has_capabilities |= CAPABILITIES.contains(&key);
            if ![&b"path"[..], b"linkpath", b"size"].contains(&key) {
                continue;
            }
            let value = record.value();
            let value = value.map_err(|_| fault(start, "has a name that is no UTF-8"))?.to_owned();
            let twice = match key {
                b"path" => extended.name.replace(value).is_some(),
                b"linkpath" => extended.target.replace(value).is_some(),
                _ => extended.size.replace(pax_size(&value, start)?).is_some(),
            };
            if twice {
                return Err(fault(start, "names or sizes a member twice"));
            }
        }
        Ok(())
    }

    /// The content of a member about other members.
    fn bytes(&mut self, size: u64, limit: u64, beyond: &str) -> Result<Vec<u8>> {
        let start = self.source.at();
        let len = usize::try_from(size).ok().filter(|_| size <= limit);
        let mut bytes = vec![0; len.ok_or_else(|| fault(start, beyond))?];
        self.source.fill(&mut bytes)?;
        self.source.align(BLOCK)?;
        Ok(bytes)
    }

    /// The second block of zeros, and nothing but zeros behind it.
    fn end(&mut self) -> Result<()> {
        if self.block()? != [0; BLOCK] {
            return Err(fault(self.source.at(), "has a lone block of zeros"));
        }
        self.source.zeros_to_end()
    }

    fn block(&mut self) -> Result<[u8; BLOCK]> {
        let mut block = [0; BLOCK];
        self.source.fill(&mut block)?;
        Ok(block)
    }

    /// The source, after the end of the archive.
    pub fn into_inner(self) -> R {
        self.source.into_inner().0
    }
}

impl<R: Read> Read for TarMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.source.read(buffer)
    }
}

/// Whether the header is that of a volume label, and of no file.
fn is_label(header: &Header) -> bool {
    header.entry_type().as_byte() == VOLUME_LABEL
}

/// Checks the sum and the magic and returns the size.
fn check(header: &Header, start: u64) -> Result<u64> {
    let stated = header.cksum().map_err(|_| fault(start, "has no checksum"))?;
    let bytes = header.as_bytes();
    let outside = |index: &usize| !(148..156).contains(index);
    let sum: u32 = (0..BLOCK).filter(outside).map(|i| u32::from(bytes[i])).sum();
    if stated != sum + 8 * u32::from(b' ') {
        return Err(fault(start, "has a wrong checksum"));
    }
    // GNU tar leaves magic and size of a label blank.
    let is_label = is_label(header);
    if is_label && header.as_old().size == [0; 12] {
        return Ok(0);
    }
    if !is_label && header.as_gnu().is_none() && header.as_ustar().is_none() {
        return Err(fault(start, "is neither GNU nor ustar"));
    }
    for (name, field) in NUMBERS {
        let field = bytes.get(field).unwrap_or_default();
        if is_beyond(field) && !(name == TIME && field.first() == Some(&NEGATIVE)) {
            return Err(fault(start, &format!("has a {name} that no system has")));
        }
    }
    let size = header.entry_size().map_err(|_| fault(start, "has no size"))?;
    bounded(size, start)
}

/// Whether a number in base 256 takes more than the last seven bytes of its field, as a negative one
/// does. The `tar` crate drops what is more.
fn is_beyond(field: &[u8]) -> bool {
    let upper = field.get(..field.len().saturating_sub(7)).unwrap_or_default();
    match upper.split_first() {
        Some((0x80, rest)) => rest.iter().any(|byte| *byte != 0),
        Some((first, _)) => *first > 0x80,
        None => false,
    }
}

fn pax_size(value: &str, start: u64) -> Result<u64> {
    bounded(value.parse().map_err(|_| fault(start, "has no size"))?, start)
}

fn bounded(size: u64, start: u64) -> Result<u64> {
    if size <= SIZE_MAX { Ok(size) } else { Err(fault(start, "has a size beyond any file")) }
}

fn sparse(start: u64) -> Error {
    Error::unsupported("a sparse member is not read")
        .structure(member::structure(ARCHIVE, start))
        .hint("pack the archive again without --sparse")
}

fn fault(at: u64, message: &str) -> Error {
    member::fault(ARCHIVE, at, message)
}
