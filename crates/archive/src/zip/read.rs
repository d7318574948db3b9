//! Reads members as their central headers describe them.

use std::collections::BTreeSet;
use std::io::{self, BufReader, Read};
use std::ops::Range;

use flate2::Crc;
use flate2::bufread::DeflateDecoder;

use super::directory::{Fields, directory, fault};
use super::headers::{central, locate_members};
use super::{MAGIC, Method};
use rockpack_core::content::{Content, ContentReader};
use rockpack_core::error::{Error, Kind, Place, Result};
use rockpack_core::tree::{TreePath, folders_around};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZipMember {
    /// The name; names of folders end in a slash.
    pub name: String,
    pub method: Method,
    /// CRC-32 of the uncompressed bytes.
    pub crc32: u32,
    pub size: u64,
    /// The stored bytes, as a range of the archive.
    pub stored: Range<u64>,
    /// The Unix mode with its type bits, if the archive has one. Installers use it whatever system made the archive.
    pub mode: Option<u32>,
}

impl ZipMember {
    /// The path in the wheel: the name without the slash of folders.
    pub fn path(&self) -> &str {
        self.name.strip_suffix('/').unwrap_or(&self.name)
    }
}

#[derive(Debug)]
pub struct ZipReader {
    archive: Content,
    members: Vec<ZipMember>,
}

impl ZipReader {
    /// Reads the headers of `archive`; its members are charged to the budget of the content.
    pub fn open(archive: Content) -> Result<Self> {
        let (range, count) = directory(&archive)?;
        let mut headers = BufReader::new(archive.slice(range.clone())?.reader());
        let mut at = range.start;
        let mut entries = Vec::new();
        let mut paths = BTreeSet::new();
        while at < range.end {
            let (entry, len) = central(&archive, &mut headers, at)?;
            archive.budget().charge_entry(entry.member.name.len())?;
            if !paths.insert(TreePath::new(entry.member.path())?) {
                let message = format!("has the member {} twice", entry.member.name);
                return Err(fault(&archive, "central header", at, message));
            }
            entries.push(entry);
            at += len;
        }
        if entries.len() as u64 != count {
            let message = format!("has {} members, but its end record says {count}", entries.len());
            return Err(fault(&archive, "end record", range.end, message));
        }
        let folders = folders_around(&paths);
        let mut names = entries.iter().map(|entry| entry.member.name.as_str());
        if let Some(name) = names.find(|name| folders.contains(name)) {
            let message = format!("has the file {name} and members below it");
            return Err(fault(&archive, "central header", range.start, message));
        }
        let members = locate_members(&archive, range.start, entries)?;
        Ok(Self { archive, members })
    }

    /// The members, in the order of the central headers.
    pub fn members(&self) -> &[ZipMember] {
        &self.members
    }

    pub fn stored(&self, member: &ZipMember) -> Result<Content> {
        self.archive.slice(member.stored.clone())
    }

    /// A reader of a member's bytes; at the end, it compares their number and CRC-32 with the header.
    pub fn reader(&self, member: &ZipMember) -> Result<MemberReader> {
        let source = BufReader::with_capacity(128 << 10, self.stored(member)?.reader());
        let source = match member.method {
            Method::Stored => MemberSource::Stored(source),
            Method::Deflated => MemberSource::Deflated(DeflateDecoder::new(source)),
        };
        let place = self.archive.place(member.stored.start);
        Ok(MemberReader { source, member: member.clone(), read: 0, crc: Crc::new(), place })
    }

    /// Reads all bytes of a member, at most `limit`; messages call it `what`.
    pub fn read(&self, member: &ZipMember, limit: u64, what: &str) -> Result<Vec<u8>> {
        if member.size > limit {
            let message = format!("{what} of {} bytes is longer than {limit}", member.size);
            return Err(Error::new(Kind::Limit, message).structure(member.name.clone()));
        }
        let mut bytes = Vec::new();
        self.reader(member)?.read_to_end(&mut bytes).map_err(rockpack_core::hold::fault)?;
        Ok(bytes)
    }
}

/// Decoders of the deflated members whose local headers seem to begin in the first `search_len` bytes of `archive`.
pub fn deflated(archive: &[u8], search_len: usize) -> impl Iterator<Item = DeflateDecoder<&[u8]>> {
    (0..search_len).filter_map(move |at| {
        let mut fields = Fields::new(archive.get(at..)?.strip_prefix(&MAGIC)?);
        fields.skip(4);
        let method = fields.u16();
        fields.skip(16);
        let lengths = [fields.u16(), fields.u16()].map(usize::from);
        fields.take(lengths[0] + lengths[1])?;
        (method == Method::Deflated as u16).then(|| DeflateDecoder::new(fields.bytes))
    })
}

pub struct MemberReader {
    source: MemberSource,
    member: ZipMember,
    read: u64,
    crc: Crc,
    /// The location of the first stored byte, for errors.
    place: Place,
}

enum MemberSource {
    Stored(BufReader<ContentReader>),
    Deflated(DeflateDecoder<BufReader<ContentReader>>),
}

impl MemberReader {
    fn damaged(&self, why: impl std::fmt::Display) -> io::Error {
        let hint = "the archive is damaged or was copied only in part: build it or copy it again";
        let error = Error::malformed(format!("the member {} is damaged", self.member.name));
        error.at(&self.place).cause(why).hint(hint).into()
    }

    /// Compares the read bytes with the header.
    fn check(&self) -> io::Result<()> {
        if self.read != self.member.size {
            let (has, stated) = (self.read, self.member.size);
            return Err(self.damaged(format!("it has {has} bytes, but its header says {stated}")));
        }
        if self.crc.sum() != self.member.crc32 {
            return Err(self.damaged("its CRC-32 differs from the one in its header"));
        }
        if let MemberSource::Deflated(decoder) = &self.source
            && decoder.total_in() != self.member.stored.end - self.member.stored.start
        {
            return Err(self.damaged("bytes follow the end of its compressed stream"));
        }
        Ok(())
    }
}

impl Read for MemberReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let read = match &mut self.source {
            MemberSource::Stored(source) => source.read(buffer),
            MemberSource::Deflated(decoder) => decoder.read(buffer),
        };
        let len = match read {
            Ok(len) => len,
            // Errors from reading the archive are returned unchanged.
            Err(error) if error.get_ref().is_some_and(|inner| inner.is::<Error>()) => {
                return Err(error);
            }
            Err(error) => return Err(self.damaged(error)),
        };
        self.read += len as u64;
        let size = self.member.size;
        if self.read > size {
            return Err(self.damaged(format!("it is longer than the {size} bytes in its header")));
        }
        match buffer.get(..len) {
            Some(bytes) if len > 0 => self.crc.update(bytes),
            _ => self.check()?,
        }
        Ok(len)
    }
}
