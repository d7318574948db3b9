//! GNU tar as dpkg reads it.
//!
//! ```text
//! per member: 512 bytes of header (name 100, mode 8, uid 8, gid 8, size 12, mtime 12, checksum 8,
//!             type 1, link name 100, magic "ustar " + " \0", user 32, group 32), then the content,
//!             padded with zeros to 512 bytes
//! at the end: two blocks of zeros, then nothing but zeros
//! ```
//!
//! Names and link names of more than 100 bytes come in a member of type `L` or `K` before their
//! own (content: the name and a NUL); sizes from 8 GiB on are big-endian with the top bit set.
//! Written: `./` before every path, `/` behind every directory, owner root:root. dpkg refuses PAX
//! (`x`, `g`) and sparse (`S`) members, so they are neither written nor read; hard links and
//! devices are not read either, because no package of this project has them.
//! The `tar` crate's header type is used; its path helpers strip `./` and may write what dpkg
//! refuses, and its reader holds long names of any length.

use std::io::{Read, Write};

use tar::{EntryType, Header};

use crate::error::{Error, Kind, Result};
use crate::formats::compression::decoder_fault;
use crate::formats::payload::{Entry, EntryKind, Marking, ReadEntry};

const BLOCK: usize = 512;

/// Bytes that a header has for a name and for a link name.
const NAME_SIZE: usize = 100;

/// Linux's PATH_MAX; a bound for hostile input.
const LONG_NAME_MAX: u64 = 4096;

/// The largest size that the twelve bytes of a size field can say is above u64; this bound keeps
/// sums of sizes in range.
const SIZE_MAX: u64 = 1 << 60;

/// Writes an archive into a sink.
pub(super) struct Archive<W: Write> {
    sink: W,
    mtime: u64,
    /// Bytes of the current member that are still to come.
    left: u64,
    /// Zeros that follow the current member.
    padding: usize,
}

impl<W: Write> Archive<W> {
    /// An archive whose members all carry `mtime`.
    pub fn new(sink: W, mtime: u64) -> Self {
        Self {
            sink,
            mtime,
            left: 0,
            padding: 0,
        }
    }

    /// Begins a member; its content follows, as much as it announces.
    pub fn begin(&mut self, entry: &Entry) -> Result<()> {
        if self.left > 0 {
            return Err(Error::bug(format!(
                "{} begins inside another member",
                entry.path
            )));
        }
        let name = member_name(entry);
        let target = entry.target().unwrap_or_default();
        self.long_name(EntryType::GNULongLink, target)?;
        self.long_name(EntryType::GNULongName, &name)?;
        let mut header = self.header(entry, name.as_bytes(), target.as_bytes())?;
        header.set_cksum();
        self.put(header.as_bytes())?;
        self.left = entry.size;
        self.padding = padding(entry.size);
        Ok(())
    }

    fn header(&self, entry: &Entry, name: &[u8], target: &[u8]) -> Result<Header> {
        let kind = match &entry.kind {
            EntryKind::Directory => EntryType::Directory,
            EntryKind::File => EntryType::Regular,
            EntryKind::Link { .. } => EntryType::Symlink,
        };
        let mut header = blank_header(kind, entry.mode, self.mtime, entry.size)?;
        let gnu = header
            .as_gnu_mut()
            .ok_or_else(|| Error::bug("header is not GNU"))?;
        copy_cut(&mut gnu.name, name);
        copy_cut(&mut gnu.linkname, target);
        Ok(header)
    }

    fn long_name(&mut self, kind: EntryType, name: &str) -> Result<()> {
        if name.len() <= NAME_SIZE {
            return Ok(());
        }
        if name.len() as u64 >= LONG_NAME_MAX {
            let message = format!(
                "path of {} bytes is longer than {LONG_NAME_MAX}",
                name.len()
            );
            return Err(Error::new(Kind::Limit, message).structure("tar header"));
        }
        let size = name.len() as u64 + 1;
        let mut header = blank_header(kind, 0o644, 0, size)?;
        let gnu = header
            .as_gnu_mut()
            .ok_or_else(|| Error::bug("header is not GNU"))?;
        copy_cut(&mut gnu.name, b"././@LongLink");
        header.set_cksum();
        self.put(header.as_bytes())?;
        self.put(name.as_bytes())?;
        let zeros = [0; BLOCK];
        self.put(&zeros[..1 + padding(size)])
    }

    /// More content of the current member.
    pub fn data(&mut self, bytes: &[u8]) -> Result<()> {
        let left = self.left.checked_sub(bytes.len() as u64);
        self.left = left.ok_or_else(|| Error::bug("a member has more content than announced"))?;
        self.put(bytes)
    }

    /// Ends the current member.
    pub fn end(&mut self) -> Result<()> {
        if self.left > 0 {
            let message = format!("a member has {} bytes less than announced", self.left);
            return Err(Error::bug(message));
        }
        let zeros = [0; BLOCK];
        let len = std::mem::take(&mut self.padding);
        self.put(&zeros[..len])
    }

    /// Writes the end of the archive and gives the sink back.
    pub fn finish(mut self) -> Result<W> {
        self.put(&[0; 2 * BLOCK])?;
        Ok(self.sink)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.sink
            .write_all(bytes)
            .map_err(|e| Error::io("", "write the tar archive", e))
    }
}

fn blank_header(kind: EntryType, mode: u32, mtime: u64, size: u64) -> Result<Header> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_mtime(mtime);
    header.set_size(size);
    for owner in [0, 0] {
        header.set_uid(owner);
        header.set_gid(owner);
    }
    header
        .set_username("root")
        .and_then(|()| header.set_groupname("root"))
        .map_err(|e| Error::io("", "make a tar header", e))?;
    Ok(header)
}

/// As much of `text` as fits; the rest is in the long name member before.
fn copy_cut(field: &mut [u8; NAME_SIZE], text: &[u8]) {
    let len = text.len().min(NAME_SIZE);
    field[..len].copy_from_slice(&text[..len]);
}

fn member_name(entry: &Entry) -> String {
    match (&entry.kind, entry.path.is_empty()) {
        (_, true) => "./".to_owned(),
        (EntryKind::Directory, false) => format!("./{}/", entry.path),
        _ => format!("./{}", entry.path),
    }
}

/// Zeros that follow `size` bytes.
fn padding(size: u64) -> usize {
    let over = usize::try_from(size % BLOCK as u64).unwrap_or_default();
    (BLOCK - over) % BLOCK
}

/// Reads an archive member by member.
pub(super) struct Members<R: Read> {
    source: R,
    /// Bytes read so far, for messages.
    at: u64,
    left: u64,
    padding: usize,
}

impl<R: Read> Members<R> {
    /// Reads from the first member on.
    pub fn new(source: R) -> Self {
        Self {
            source,
            at: 0,
            left: 0,
            padding: 0,
        }
    }

    /// The next member, or none at the end of the archive; what is left of the one before is
    /// skipped.
    pub fn next(&mut self) -> Result<Option<ReadEntry>> {
        self.skip()?;
        let (mut name, mut target) = (None, None);
        loop {
            let start = self.at;
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
        let stated = header
            .cksum()
            .map_err(|_| fault(start, "has no checksum"))?;
        let bytes = header.as_bytes();
        let outside = |index: &usize| !(148..156).contains(index);
        let sum: u32 = (0..BLOCK)
            .filter(outside)
            .map(|i| u32::from(bytes[i]))
            .sum();
        if stated != sum + 8 * u32::from(b' ') {
            return Err(fault(start, "has a wrong checksum"));
        }
        if header.as_gnu().is_none() && header.as_ustar().is_none() {
            return Err(fault(start, "is neither GNU nor ustar"));
        }
        let size = header
            .entry_size()
            .map_err(|_| fault(start, "has no size"))?;
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
                return Err(Error::unsupported(message)
                    .structure("tar header")
                    .offset(start));
            }
        };
        if size > 0 && kind != EntryKind::File {
            return Err(fault(start, "has content but is no file"));
        }
        (self.left, self.padding) = (size, padding(size));
        let path = entry_path(&name, &kind).ok_or_else(|| fault(start, "has no path below ./"))?;
        read_entry(
            header,
            Entry {
                path,
                kind,
                mode: 0,
                size,
                marking: Marking::Plain,
            },
            start,
        )
    }

    fn text(&mut self, size: u64) -> Result<String> {
        let start = self.at;
        let len = usize::try_from(size).ok().filter(|_| size <= LONG_NAME_MAX);
        let mut bytes = vec![0; len.ok_or_else(|| fault(start, "has a name beyond PATH_MAX"))?];
        self.fill(&mut bytes)?;
        (self.left, self.padding) = (0, padding(size));
        self.skip()?;
        if bytes.pop() != Some(0) || bytes.contains(&0) {
            return Err(fault(start, "has a name that does not end with a NUL"));
        }
        String::from_utf8(bytes).map_err(|_| fault(start, "has a name that is no UTF-8"))
    }

    fn skip(&mut self) -> Result<()> {
        let mut buffer = [0; 8192];
        while self.left > 0 {
            if self.read(&mut buffer).map_err(decoder_fault)? == 0 {
                return Err(fault(self.at, "ends inside a member"));
            }
        }
        let len = std::mem::take(&mut self.padding);
        self.fill(&mut buffer[..len])?;
        match buffer[..len].iter().all(|byte| *byte == 0) {
            true => Ok(()),
            false => Err(fault(self.at, "has padding that is not zero")),
        }
    }

    /// The second block of zeros, and nothing but zeros behind it.
    fn end(&mut self) -> Result<()> {
        if self.block()? != [0; BLOCK] {
            return Err(fault(self.at, "has a lone block of zeros"));
        }
        let mut buffer = [0; 8192];
        loop {
            let len = self.source.read(&mut buffer).map_err(decoder_fault)?;
            if buffer[..len].iter().any(|byte| *byte != 0) {
                return Err(fault(self.at, "has data behind its end"));
            }
            self.at += len as u64;
            if len == 0 {
                return Ok(());
            }
        }
    }

    fn block(&mut self) -> Result<[u8; BLOCK]> {
        let mut block = [0; BLOCK];
        self.fill(&mut block)?;
        Ok(block)
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<()> {
        let at = self.at;
        self.source
            .read_exact(buffer)
            .map_err(|e| decoder_fault(e).structure("tar archive").offset(at))?;
        self.at += buffer.len() as u64;
        Ok(())
    }

    /// The decompressor, after the end of the archive.
    pub fn into_inner(self) -> R {
        self.source
    }
}

impl<R: Read> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let len = self.source.read(&mut buffer[..len])?;
        if len == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(fault(self.at, "ends inside a member").into());
        }
        self.left -= len as u64;
        self.at += len as u64;
        Ok(len)
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
    Ok(ReadEntry {
        entry,
        user,
        group,
        mtime,
        declared: None,
    })
}

fn fault(at: u64, message: &str) -> Error {
    Error::malformed(message.to_owned()).structure(format!("tar archive at its byte {at:#x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, size: u64) -> Entry {
        Entry {
            path: path.to_owned(),
            kind: EntryKind::File,
            mode: 0o644,
            size,
            marking: Marking::Plain,
        }
    }

    fn archive(entries: &[(Entry, &[u8])]) -> Vec<u8> {
        let mut archive = Archive::new(Vec::new(), 1_700_000_000);
        for (entry, content) in entries {
            archive.begin(entry).unwrap();
            archive.data(content).unwrap();
            archive.end().unwrap();
        }
        archive.finish().unwrap()
    }

    fn read_all(bytes: &[u8]) -> Result<Vec<(ReadEntry, Vec<u8>)>> {
        let mut members = Members::new(bytes);
        let mut found = Vec::new();
        while let Some(entry) = members.next()? {
            let mut content = Vec::new();
            members.read_to_end(&mut content).map_err(decoder_fault)?;
            found.push((entry, content));
        }
        Ok(found)
    }

    fn sample() -> Vec<(Entry, &'static [u8])> {
        let link = |path: String, target: String| Entry {
            kind: EntryKind::Link { target },
            mode: 0o777,
            ..file(&path, 0)
        };
        vec![
            (super::super::control::root(), b"" as &[u8]),
            (file(&"n".repeat(98), 3), b"abc"),
            (file(&"n".repeat(99), 0), b""),
            (file(&"é/".repeat(200).replace("/é/é", "/x"), 0), b""),
            (link("short".into(), "t".repeat(100)), b""),
            (link("l".repeat(300), "t".repeat(300)), b""),
        ]
    }

    #[test]
    fn members_come_back_as_they_went_in() {
        let sample: Vec<_> = sample()
            .into_iter()
            .filter(|(e, _)| !e.path.ends_with('/'))
            .collect();
        let back = read_all(&archive(&sample)).unwrap();
        assert_eq!(back.len(), sample.len());
        for ((entry, content), (read, bytes)) in sample.iter().zip(&back) {
            assert_eq!((entry, *content), (&read.entry, bytes.as_slice()));
            assert_eq!((read.user.as_str(), read.mtime), ("root", 1_700_000_000));
        }
    }

    #[test]
    fn every_cut_and_anything_behind_the_end_is_an_error() {
        let bytes = archive(&[
            (file("a", 600), &[7; 600]),
            (file(&"b".repeat(101), 1), b"x"),
        ]);
        for len in 0..bytes.len() {
            assert!(read_all(&bytes[..len]).is_err(), "cut to {len}");
        }
        assert!(read_all(&[&bytes[..], &[0; 512]].concat()).is_ok());
        assert!(read_all(&[&bytes[..], &[1; 512]].concat()).is_err());
    }

    #[test]
    fn sizes_above_8_gib_survive() {
        let mut archive = Archive::new(Vec::new(), 0);
        archive.begin(&file("big", 9 << 30)).unwrap();
        let bytes = archive.sink;
        let mut members = Members::new(&bytes[..]);
        assert_eq!(members.next().unwrap().unwrap().entry.size, 9 << 30);
    }

    #[test]
    fn sparse_pax_and_hard_links_are_refused() {
        for kind in *b"Sxg1346" {
            let mut bytes = archive(&[(file("a", 0), b"")]);
            bytes[156] = kind;
            let mut header = Header::new_old();
            header.as_mut_bytes().copy_from_slice(&bytes[..BLOCK]);
            header.set_cksum();
            bytes[..BLOCK].copy_from_slice(header.as_bytes());
            assert!(read_all(&bytes).is_err(), "type {}", char::from(kind));
        }
    }

    #[test]
    fn announced_sizes_bind() {
        let mut archive = Archive::new(Vec::new(), 0);
        archive.begin(&file("a", 2)).unwrap();
        assert!(archive.data(b"abc").is_err());
        let mut archive = Archive::new(Vec::new(), 0);
        archive.begin(&file("a", 2)).unwrap();
        archive.data(b"a").unwrap();
        assert!(archive.end().is_err());
    }
}
