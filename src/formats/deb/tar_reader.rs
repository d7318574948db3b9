//! Reads GNU tar as dpkg does; the byte table is in [`super::tar`].
//!
//! Every header's checksum, every byte of padding and the end of the archive are checked. Refused:
//! PAX and sparse members, hard links, devices, names outside of `./`.

use std::io::Read;

use tar::{EntryType, Header};

use super::tar::{BLOCK, LONG_NAME_MAX};
use crate::error::{Error, Result};
use crate::formats::member::{self, Source};
use crate::formats::payload::{Entry, EntryKind, Marking, ReadEntry};

/// A size field can say more than any file has; this bound keeps sums of sizes in range.
const SIZE_MAX: u64 = 1 << 60;

/// What the archive is called in messages.
const ARCHIVE: &str = "tar archive";

/// Reads an archive member by member.
pub(super) struct Members<R: Read> {
    source: Source<R>,
}

impl<R: Read> Members<R> {
    /// Reads from the first member on.
    pub fn new(source: R) -> Self {
        Self { source: Source::new(source, ARCHIVE) }
    }

    /// The next member, or none at the end of the archive; what is left of the one before is
    /// skipped.
    pub fn next(&mut self) -> Result<Option<ReadEntry>> {
        self.source.skip(BLOCK)?;
        let (mut name, mut target) = (None, None);
        loop {
            let start = self.source.at();
            let block = self.block()?;
            if block == [0; BLOCK] {
                return match (name, target) {
                    (None, None) => self.end().map(|()| None),
                    _ => Err(fault(start, "a long name is followed by no member")),
                };
            }
            let mut header = Header::new_old();
            header.as_mut_bytes().copy_from_slice(&block);
            let size = self.check(&header, start)?;
            match header.entry_type() {
                EntryType::GNULongName if name.is_none() => name = Some(self.text(size)?),
                EntryType::GNULongLink if target.is_none() => target = Some(self.text(size)?),
                _ => return self.member(&header, size, (name, target), start).map(Some),
            }
        }
    }

    /// Checks the sum and the magic and returns the size.
    fn check(&self, header: &Header, start: u64) -> Result<u64> {
        let stated = header.cksum().map_err(|_| fault(start, "has no checksum"))?;
        let bytes = header.as_bytes();
        let outside = |index: &usize| !(148..156).contains(index);
        let sum: u32 = (0..BLOCK).filter(outside).map(|i| u32::from(bytes[i])).sum();
        if stated != sum + 8 * u32::from(b' ') {
            return Err(fault(start, "has a wrong checksum"));
        }
        if header.as_gnu().is_none() && header.as_ustar().is_none() {
            return Err(fault(start, "is neither GNU nor ustar"));
        }
        let size = header.entry_size().map_err(|_| fault(start, "has no size"))?;
        match size <= SIZE_MAX {
            true => Ok(size),
            false => Err(fault(start, "has a size beyond any file")),
        }
    }

    fn member(
        &mut self,
        header: &Header,
        size: u64,
        (name, target): (Option<String>, Option<String>),
        start: u64,
    ) -> Result<ReadEntry> {
        let text = |bytes: &[u8]| {
            String::from_utf8(bytes.to_vec())
                .map_err(|_| fault(start, "has a name that is no UTF-8"))
        };
        let name = name.map_or_else(|| text(&header.path_bytes()), Ok)?;
        let link = header.link_name_bytes().unwrap_or_default();
        let target = target.map_or_else(|| text(&link), Ok)?;
        let kind = match header.entry_type() {
            EntryType::Regular => EntryKind::File,
            EntryType::Directory => EntryKind::Directory,
            EntryType::Symlink => EntryKind::Link { target },
            other => {
                let message = format!("member {name} of type {other:?} is not supported");
                return Err(
                    Error::unsupported(message).structure(member::structure(ARCHIVE, start))
                );
            }
        };
        if size > 0 && kind != EntryKind::File {
            return Err(fault(start, "has content but is no file"));
        }
        self.source.expect(size);
        let path = entry_path(&name, &kind).ok_or_else(|| fault(start, "has no path below ./"))?;
        read_entry(header, Entry { path, kind, mode: 0, size, marking: Marking::Plain }, start)
    }

    fn text(&mut self, size: u64) -> Result<String> {
        let start = self.source.at();
        let len = usize::try_from(size).ok().filter(|_| size <= LONG_NAME_MAX);
        let mut bytes = vec![0; len.ok_or_else(|| fault(start, "has a name beyond PATH_MAX"))?];
        self.source.fill(&mut bytes)?;
        self.source.align(BLOCK)?;
        if bytes.pop() != Some(0) || bytes.contains(&0) {
            return Err(fault(start, "has a name that does not end with a NUL"));
        }
        String::from_utf8(bytes).map_err(|_| fault(start, "has a name that is no UTF-8"))
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

    /// The decompressor, after the end of the archive.
    pub fn into_inner(self) -> R {
        self.source.into_inner().0
    }
}

impl<R: Read> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.source.read(buffer)
    }
}

fn entry_path(name: &str, kind: &EntryKind) -> Option<String> {
    let path = name.strip_prefix("./")?;
    if *kind != EntryKind::Directory {
        return (!path.is_empty() && !path.ends_with('/')).then(|| path.to_owned());
    }
    Some(path.strip_suffix('/').unwrap_or(path).to_owned())
}

fn read_entry(header: &Header, mut entry: Entry, start: u64) -> Result<ReadEntry> {
    let owner = |name: std::result::Result<Option<&str>, _>, id: std::io::Result<u64>| {
        let name = name.ok().flatten().filter(|name| !name.is_empty());
        match (name, id) {
            (Some("root"), Ok(0)) => Ok("root".to_owned()),
            (Some(name), Ok(id)) if id != 0 && name != "root" => Ok(name.to_owned()),
            (None, Ok(id)) => Ok(id.to_string()),
            (Some(name), Ok(id)) => Ok(format!("{name} ({id})")),
            (_, Err(_)) => Err(fault(start, "has no owner")),
        }
    };
    let user = owner(header.username(), header.uid())?;
    let group = owner(header.groupname(), header.gid())?;
    let mtime = header.mtime().map_err(|_| fault(start, "has no mtime"))?;
    entry.mode = header.mode().map_err(|_| fault(start, "has no mode"))?;
    Ok(ReadEntry { entry, user, group, mtime, declared: None })
}

fn fault(at: u64, message: &str) -> Error {
    member::fault(ARCHIVE, at, message)
}
