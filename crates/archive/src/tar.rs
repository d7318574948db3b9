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
//! A member of type `L` or `K` (GNU) holds the name or link name of the next one, with a NUL. A member of
//! type `x` (POSIX.1-2001, "pax") holds records `<length> <key>=<value>\n` about the next one, and one of
//! type `g` about all that follow. Sizes from 8 GiB on are big-endian with the top bit set, or a pax record.
//! Source: POSIX pax(1), GNU tar's manual, and the output of GNU tar and Python.
//!
//! Every header's checksum is verified. In archives of artifacts, all padding and the end of the archive are
//! verified too; packages may have irregularities there that dpkg ignores ([`Dialect`]). The pax records
//! `path`, `linkpath` and `size` count, and those of capabilities are noted; times and owners are ignored.
//! Refused: names that are not UTF-8, records of type `g` that state any of these for all members, sparse
//! members. A volume label (type `V`, whose header has no magic) is skipped, as in GNU tar. The caller
//! decides about other types. The `tar` crate's header and record types are used. Its reader accepts
//! archives without end blocks, checks no padding, and keeps extended headers of any length in memory.

use std::io::Read;

pub use crate::tar_header::TarMember;
pub use tar::EntryType;
use tar::{Header, PaxExtensions};

use crate::member::{self, MemberSource, PADDING};
pub use crate::tar_header::Dialect;
use crate::tar_header::{
    ARCHIVE, BLOCK, SIZE, SIZE_MAX, check, fault, is_label, name_in, until_nul,
};
use rockpack_core::error::{Error, Result};

/// Linux's PATH_MAX, a bound for hostile input.
pub(super) const LONG_NAME_MAX: u64 = 4096;

/// Longest extended header, in bytes. Two paths and the attributes that a file system stores with a file (64
/// KiB on Linux) fit several times.
const PAX_MAX: u64 = 256 << 10;

const TWICE: &str = "names or sizes a member twice";

/// The pax records for file capabilities of GNU tar and star, and of bsdtar.
const CAPABILITIES: [&[u8]; 2] =
    [b"SCHILY.xattr.security.capability", b"LIBARCHIVE.xattr.security.capability"];

/// The names and records that earlier members give to the next one.
#[derive(Default)]
struct Extended {
    /// Offset of the first such member.
    start: Option<u64>,
    name: Option<String>,
    target: Option<String>,
    /// The pax header, which overrides the GNU members.
    pax: Option<PaxHeader>,
}

#[derive(Default)]
struct PaxHeader {
    name: Option<String>,
    target: Option<String>,
    size: Option<u64>,
    has_capabilities: bool,
}

impl Extended {
    fn is_empty(&self) -> bool {
        self.pax.is_none() && self.name.is_none() && self.target.is_none()
    }

    /// Whether a GNU member and a pax header both give the name or the link name.
    fn has_duplicates(&self) -> bool {
        self.pax.as_ref().is_some_and(|pax| {
            (self.name.is_some() && pax.name.is_some())
                || (self.target.is_some() && pax.target.is_some())
        })
    }
}

/// Reads an archive member by member; reads return the content of the current one.
pub struct TarMembers<R: Read> {
    source: MemberSource<R>,
    dialect: Dialect,
}

impl<R: Read> TarMembers<R> {
    /// A reader that starts at the first member.
    pub fn new(source: R, dialect: Dialect) -> Self {
        Self { source: MemberSource::new(source, ARCHIVE), dialect }
    }

    /// Skips the rest of the current member, and returns the next one, or `None` at the end of the archive.
    pub fn next_member(&mut self) -> Result<Option<TarMember>> {
        self.source.drain()?;
        self.align()?;
        let mut extended = Extended::default();
        loop {
            let start = self.source.at;
            let Some(header) = self.header()? else { return self.end(&extended, start) };
            let block = header.as_bytes();
            let size = match check(block, start, self.dialect) {
                _ if *block == [0; BLOCK] => return self.end(&extended, start),
                // A block without a name ends the archive for dpkg.
                Err(_) if block[0] == 0 && self.dialect == Dialect::Dpkg => {
                    return self.end(&extended, start);
                }
                checked => checked?,
            };
            self.check_header(&header, start)?;
            if !self.read_extension(&header, size, &mut extended)? {
                return self.member(header, size, extended, start).map(Some);
            }
            if !extended.is_empty() {
                extended.start.get_or_insert(start);
            }
        }
    }

    fn check_header(&self, header: &Header, start: u64) -> Result<()> {
        // GNU tar leaves magic and size of a label blank.
        if is_label(header) {
            return Ok(());
        }
        if header.as_gnu().is_none() && header.as_ustar().is_none() {
            self.odd(start, "is neither GNU nor ustar")?;
        }
        let size = header.as_bytes().get(SIZE).unwrap_or_default();
        if !size.iter().any(|byte| !matches!(byte, 0 | b' ')) {
            self.odd(start, "has no size")?;
        }
        Ok(())
    }

    /// Refuses an irregularity that dpkg accepts, if the archive is read strictly.
    fn odd(&self, at: u64, message: &str) -> Result<()> {
        if self.dialect == Dialect::Strict { Err(fault(at, message)) } else { Ok(()) }
    }

    fn align(&mut self) -> Result<()> {
        let start = self.source.at;
        if self.source.skip_padding(BLOCK)? { Ok(()) } else { self.odd(start, PADDING) }
    }

    /// Whether the header belongs to a member about other members, which is then read.
    fn read_extension(
        &mut self,
        header: &Header,
        size: u64,
        extended: &mut Extended,
    ) -> Result<bool> {
        let pax = self.dialect != Dialect::Dpkg;
        let lenient = self.dialect != Dialect::Strict;
        match header.entry_type() {
            EntryType::GNULongName if extended.name.is_none() || lenient => {
                extended.name = Some(self.text(size)?);
            }
            EntryType::GNULongLink if extended.target.is_none() || lenient => {
                extended.target = Some(self.text(size)?);
            }
            kind if self.is_pax(kind) && (extended.pax.is_none() || lenient) => {
                extended.pax = Some(self.pax(size)?);
            }
            EntryType::XGlobalHeader if pax => {
                let start = self.source.at;
                if !lenient && !extended.is_empty() {
                    let message = "has a header for all members between those of one member";
                    return Err(fault(start, message));
                }
                let all = self.pax(size)?;
                if all.name.is_some() || all.target.is_some() || all.size.is_some() {
                    return Err(fault(start, "names or sizes all members at once"));
                }
                if all.has_capabilities {
                    return Err(fault(start, "gives all members capabilities at once"));
                }
            }
            _ if is_label(header) && pax && extended.is_empty() => {
                self.source.left = size;
                self.source.drain()?;
                self.align()?;
            }
            _ => return Ok(false),
        }
        if !lenient && extended.has_duplicates() {
            return Err(fault(self.source.at, TWICE));
        }
        Ok(true)
    }

    /// Whether a member of this type is a pax header of the next one. GNU tar accepts those of Solaris too.
    fn is_pax(&self, kind: EntryType) -> bool {
        match kind {
            EntryType::XHeader => self.dialect != Dialect::Dpkg,
            kind => self.dialect == Dialect::Control && kind.as_byte() == b'X',
        }
    }

    fn member(
        &mut self,
        header: Box<Header>,
        size: u64,
        extended: Extended,
        start: u64,
    ) -> Result<TarMember> {
        let first_header = extended.start.unwrap_or(start);
        let pax = extended.pax.unwrap_or_default();
        let name =
            pax.name.or(extended.name).map_or_else(|| self.utf8(name_in(&header), start), Ok)?;
        let target = pax
            .target
            .or(extended.target)
            .map_or_else(|| self.utf8(until_nul(&header.as_old().linkname).to_vec(), start), Ok)?;
        let mut kind = header.entry_type();
        if kind == EntryType::Regular && name.ends_with('/') && self.dialect == Dialect::Control {
            kind = EntryType::Directory;
        }
        let size = pax.size.unwrap_or(size);
        let member = TarMember {
            name,
            target,
            kind,
            size,
            has_capabilities: pax.has_capabilities,
            has_size_record: pax.size.is_some(),
            header,
            start,
            first_header,
        };
        let is_dpkg = self.dialect == Dialect::Dpkg;
        if kind == EntryType::GNUSparse && !is_dpkg {
            return Err(sparse(start).context(format!("reading the member {}", member.name)));
        }
        // dpkg reads only the content of files, even if other members announce some.
        let has_content = !is_dpkg || kind == EntryType::Regular;
        self.source.left = if has_content { size } else { 0 };
        Ok(member)
    }

    fn utf8(&self, bytes: Vec<u8>, start: u64) -> Result<String> {
        let message = "has a name that is not UTF-8";
        String::from_utf8(bytes).map_err(|_| match self.dialect {
            // dpkg accepts it, rockpack does not.
            Dialect::Dpkg => {
                Error::unsupported(message).structure(member::structure(ARCHIVE, start))
            }
            Dialect::Control | Dialect::Strict => fault(start, message),
        })
    }

    fn text(&mut self, size: u64) -> Result<String> {
        let start = self.source.at;
        let mut bytes = self.bytes(size, LONG_NAME_MAX, "has a name beyond PATH_MAX")?;
        if bytes.iter().position(|byte| *byte == 0) != bytes.len().checked_sub(1) {
            self.odd(start, "has a name that does not end with a NUL")?;
        }
        bytes.truncate(until_nul(&bytes).len());
        self.utf8(bytes, start)
    }

    fn pax(&mut self, size: u64) -> Result<PaxHeader> {
        let start = self.source.at;
        let bytes = self.bytes(size, PAX_MAX, "has an extended header of too many bytes")?;
        let mut found = PaxHeader::default();
        for record in PaxExtensions::new(&bytes) {
            let record = record.map_err(|e| fault(start, "has a wrong pax record").cause(e))?;
            let key = record.key_bytes();
            if key.starts_with(b"GNU.sparse.") {
                return Err(sparse(start));
            }
            found.has_capabilities |= CAPABILITIES.contains(&key);
            if ![&b"path"[..], b"linkpath", b"size"].contains(&key) {
                continue;
            }
            let value = self.utf8(record.value_bytes().to_vec(), start)?;
            let twice = match key {
                b"path" => found.name.replace(value).is_some(),
                b"linkpath" => found.target.replace(value).is_some(),
                _ => found.size.replace(pax_size(&value, start)?).is_some(),
            };
            if twice && self.dialect == Dialect::Strict {
                return Err(fault(start, TWICE));
            }
        }
        Ok(found)
    }

    /// Reads the content of a member about other members.
    fn bytes(&mut self, size: u64, limit: u64, beyond: &str) -> Result<Vec<u8>> {
        let start = self.source.at;
        let len = usize::try_from(size).ok().filter(|_| size <= limit);
        let mut bytes = vec![0; len.ok_or_else(|| fault(start, beyond))?];
        self.source.fill(&mut bytes)?;
        self.align()?;
        Ok(bytes)
    }

    /// Reads the end of the archive: two blocks of zeros, and only zeros after them. dpkg and GNU tar accept
    /// one block, or the end of the bytes, and ignore the rest.
    fn end(&mut self, extended: &Extended, start: u64) -> Result<Option<TarMember>> {
        if !extended.is_empty() {
            self.odd(start, "a long name is not followed by a member")?;
        }
        if self.dialect == Dialect::Strict
            && self.header()?.is_none_or(|block| *block.as_bytes() != [0; BLOCK])
        {
            return Err(fault(self.source.at, "has a lone block of zeros"));
        }
        while let Some(is_zero) = self.source.rest()? {
            if !is_zero {
                self.odd(self.source.at, "has data after its end")?;
            }
        }
        Ok(None)
    }

    /// Reads the next block; `None` at the end of the archive, where the dialect allows that.
    fn header(&mut self) -> Result<Option<Box<Header>>> {
        let mut header = Box::new(Header::new_old());
        if self.dialect == Dialect::Strict {
            return self.source.fill(header.as_mut_bytes()).map(|()| Some(header));
        }
        Ok(self.source.fill_unless_ended(header.as_mut_bytes())?.then_some(header))
    }

    /// Returns the source, after the end of the archive.
    pub fn into_inner(self) -> R {
        self.source.into_inner().0
    }
}

impl<R: Read> Read for TarMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.source.read(buffer)
    }
}

fn pax_size(value: &str, start: u64) -> Result<u64> {
    let size = value.parse().map_err(|_| fault(start, "has no size"))?;
    if size <= SIZE_MAX { Ok(size) } else { Err(fault(start, "has a size beyond any file")) }
}

fn sparse(start: u64) -> Error {
    Error::unsupported("a sparse member is not read")
        .structure(member::structure(ARCHIVE, start))
        .hint("pack the archive again without --sparse")
}
