//! GNU tar as dpkg reads it; the byte table is in [`crate::tar`].
//!
//! rockpack writes `./` before every path, `/` after every directory, and owner root:root. dpkg refuses PAX
//! (`x`, `g`) and sparse (`S`) members, so they are neither written nor read. Hard links and devices are not
//! written, because no package of this project has them. The `tar` crate's header type is used. Its path
//! helpers are not: they strip `./` and may write names that dpkg refuses.

use std::io::Write;

use tar::{EntryType, Header};

use crate::member::{MemberSink, padding};
use crate::payload::{PayloadEntry, PayloadEntryKind};
use crate::tar::LONG_NAME_MAX;
use crate::tar_header::{ARCHIVE, BLOCK};
use rockpack_core::error::{Error, Kind, Result};

/// Bytes in a header for a name and for a link name each.
const NAME_SIZE: usize = 100;

pub(super) fn archive_size<'a>(entries: impl IntoIterator<Item = &'a PayloadEntry>) -> u64 {
    let members = entries.into_iter().map(|entry| {
        let names = [member_name(entry).len(), entry.target().map_or(0, str::len)];
        let long = names.into_iter().filter(|len| *len > NAME_SIZE);
        long.map(|len| member_size(len as u64 + 1)).sum::<u64>() + member_size(entry.size)
    });
    members.sum::<u64>() + 2 * BLOCK as u64
}

/// Bytes of a header and of `content` bytes with their padding.
fn member_size(content: u64) -> u64 {
    BLOCK as u64 + content + padding(content, BLOCK) as u64
}

pub(super) struct TarWriter<W: Write> {
    pub members: MemberSink<W>,
    mtime: u64,
}

impl<W: Write> TarWriter<W> {
    pub fn new(sink: W, mtime: u64) -> Self {
        Self { members: MemberSink::new(sink, ARCHIVE, BLOCK), mtime }
    }

    /// Begins a member; content of the announced size must follow.
    pub fn begin(&mut self, entry: &PayloadEntry) -> Result<()> {
        self.members.begin(entry.size)?;
        let name = member_name(entry);
        let target = entry.target().unwrap_or_default();
        self.long_name(EntryType::GNULongLink, target)?;
        self.long_name(EntryType::GNULongName, &name)?;
        let kind = match &entry.kind {
            PayloadEntryKind::Directory => EntryType::Directory,
            PayloadEntryKind::File => EntryType::Regular,
            PayloadEntryKind::Link { .. } => EntryType::Symlink,
            PayloadEntryKind::Special(special) => {
                return Err(Error::bug(format!("a {} is not written", special.as_str())));
            }
        };
        let header = header(kind, [&*name, target], entry.mode, self.mtime, entry.size)?;
        self.members.put(header.as_bytes())
    }

    fn long_name(&mut self, kind: EntryType, name: &str) -> Result<()> {
        if name.len() <= NAME_SIZE {
            return Ok(());
        }
        if name.len() as u64 >= LONG_NAME_MAX {
            let message = format!("path of {} bytes is longer than {LONG_NAME_MAX}", name.len());
            return Err(Error::new(Kind::Limit, message).structure("tar header"));
        }
        let size = name.len() as u64 + 1;
        let header = header(kind, ["././@LongLink", ""], 0o644, 0, size)?;
        self.members.put(header.as_bytes())?;
        self.members.put(name.as_bytes())?;
        self.members.put(b"\0")?;
        self.members.pad()
    }

    /// Writes the end of the archive and returns the sink.
    pub fn finish(mut self) -> Result<W> {
        self.members.put(&[0; 2 * BLOCK])?;
        Ok(self.members.inner)
    }
}

fn header(
    kind: EntryType,
    [name, target]: [&str; 2],
    mode: u32,
    mtime: u64,
    size: u64,
) -> Result<Header> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_mtime(mtime);
    header.set_size(size);
    header.set_uid(0);
    header.set_gid(0);
    header
        .set_username("root")
        .and_then(|()| header.set_groupname("root"))
        .map_err(|e| Error::io_without_path("make a tar header", e))?;
    let gnu = header.as_gnu_mut().ok_or_else(|| Error::bug("header is not GNU"))?;
    copy_cut(&mut gnu.name, name);
    copy_cut(&mut gnu.linkname, target);
    header.set_cksum();
    Ok(header)
}

/// Copies as much of `text` as fits; the long name member before has the whole.
fn copy_cut(field: &mut [u8; NAME_SIZE], text: &str) {
    let len = text.len().min(NAME_SIZE);
    field[..len].copy_from_slice(&text.as_bytes()[..len]);
}

fn member_name(entry: &PayloadEntry) -> String {
    match (&entry.kind, entry.path.is_empty()) {
        (_, true) => "./".to_owned(),
        (PayloadEntryKind::Directory, false) => format!("./{}/", entry.path),
        _ => format!("./{}", entry.path),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::super::tar_reader::DebMembers;
    use super::*;
    use crate::payload::Treatment;
    use crate::tar::TarMember;
    use rockpack_core::compression::decoder_fault;

    fn file(path: &str, size: u64) -> PayloadEntry {
        PayloadEntry {
            path: path.into(),
            kind: PayloadEntryKind::File,
            mode: 0o644,
            size,
            treatment: Treatment::Plain,
        }
    }

    fn archive(entries: &[(PayloadEntry, &[u8])]) -> Vec<u8> {
        let mut archive = TarWriter::new(Vec::new(), 1_700_000_000);
        for (entry, content) in entries {
            archive.begin(entry).unwrap();
            archive.members.data(content).unwrap();
            archive.members.end().unwrap();
        }
        archive.finish().unwrap()
    }

    /// The members of an archive, each with its content.
    type Members = Vec<(PayloadEntry, TarMember, Vec<u8>)>;

    fn read_all(bytes: &[u8]) -> Result<Members> {
        let mut members = DebMembers::new(bytes);
        let mut found = Vec::new();
        while let Some((entry, member)) = members.next()? {
            let mut content = Vec::new();
            members.read_to_end(&mut content).map_err(decoder_fault)?;
            found.push((entry, member, content));
        }
        Ok(found)
    }

    fn sample() -> Vec<(PayloadEntry, &'static [u8])> {
        vec![
            (super::super::control::root(), b"" as &[u8]),
            (file(&"n".repeat(98), 3), b"abc"),
            (file(&"n".repeat(99), 0), b""),
            (file(&"é/".repeat(200).replace("/é/é", "/x"), 0), b""),
            (link("short".into(), "t".repeat(100)), b""),
            (link("l".repeat(240), "t".repeat(300)), b""),
            (link(["l"; 150].join("/"), "t".into()), b""),
        ]
    }

    fn link(path: String, target: String) -> PayloadEntry {
        PayloadEntry { kind: PayloadEntryKind::Link { target }, mode: 0o777, ..file(&path, 0) }
    }

    #[test]
    fn members_come_back_as_they_went_in() {
        let sample: Vec<_> = sample().into_iter().filter(|(e, _)| !e.path.ends_with('/')).collect();
        let bytes = archive(&sample);
        assert_eq!(bytes.len() as u64, archive_size(sample.iter().map(|(entry, _)| entry)));
        let back = read_all(&bytes).unwrap();
        assert_eq!(back.len(), sample.len());
        for ((entry, content), (read, member, bytes)) in sample.iter().zip(&back) {
            assert_eq!((entry, *content), (read, bytes.as_slice()));
            assert_eq!((&*member.owners()[0], member.time()), ("root", 1_700_000_000));
        }
    }

    #[test]
    fn cuts_are_noticed_as_dpkg_notices_them() {
        let bytes = archive(&[(file("a", 600), &[7; 600]), (file(&"b".repeat(101), 1), b"x")]);
        for len in 0..bytes.len() {
            // dpkg accepts the end of the bytes as the end of the archive.
            assert!(
                len % BLOCK == 0 || len > bytes.len() - BLOCK || read_all(&bytes[..len]).is_err(),
                "cut to {len}"
            );
        }
        assert!(read_all(&[&bytes[..], &[1; 512]].concat()).is_ok());
    }

    #[test]
    fn sizes_above_8_gib_survive() {
        let mut archive = TarWriter::new(Vec::new(), 0);
        archive.begin(&file("big", 9 << 30)).unwrap();
        let bytes = archive.members.inner;
        let mut members = DebMembers::new(&bytes[..]);
        assert_eq!(members.next().unwrap().unwrap().0.size, 9 << 30);
    }

    /// An archive of two files, with the header of the second changed.
    fn changed(change: impl Fn(&mut [u8])) -> Vec<u8> {
        let mut bytes = archive(&[(file("a", 0), b""), (file("b", 0), b"")]);
        let mut header = Header::new_old();
        change(&mut bytes[BLOCK..2 * BLOCK]);
        header.as_mut_bytes().copy_from_slice(&bytes[BLOCK..2 * BLOCK]);
        header.set_cksum();
        bytes[BLOCK..2 * BLOCK].copy_from_slice(header.as_bytes());
        bytes
    }

    fn put(header: &mut [u8], at: usize, bytes: &[u8]) {
        header[at..at + bytes.len()].copy_from_slice(bytes);
    }

    #[test]
    fn types_are_those_that_dpkg_installs() {
        for kind in 1..=u8::MAX {
            let bytes = changed(|header| {
                header[156] = kind;
                put(header, 157, b"a");
            });
            let is_installed = b"0123456LK".contains(&kind);
            assert_eq!(read_all(&bytes).is_ok(), is_installed, "type {}", char::from(kind));
        }
    }

    #[test]
    fn names_are_those_that_dpkg_installs() {
        for (name, expected) in [
            (&b"./b"[..], Some("b")),
            (b"b", Some("b")),
            (b"//b", Some("b")),
            (b"././/x/./b", Some("x/b")),
            (b"./b/.", None),
            (b"./b\x01", Some("b\u{1}")),
            (b"./b/", Some("b")),
            (b"../b", None),
            (b"./x/../b", None),
            (b"..", None),
            (b"./b\nc", None),
            (b"./b\xff", None),
            (b".", None),
            (b"/", None),
        ] {
            let read = read_all(&changed(|header| put(header, 0, &[name, b"\0\0\0\0"].concat())));
            let path = read.as_ref().ok().map(|found| &*found[1].0.path);
            assert_eq!(path, expected, "{name:?}");
        }
    }

    #[test]
    fn a_hard_link_needs_a_file_in_front_of_it() {
        for (target, exists) in
            [("a", true), ("./a", true), ("/a", true), ("b", false), ("", false)]
        {
            let bytes = changed(|header| {
                header[156] = b'1';
                put(header, 157, target.as_bytes());
            });
            assert_eq!(read_all(&bytes).is_ok(), exists, "{target}");
        }
    }

    /// dpkg requires numbers for owners, sizes and times, but not for modes.
    #[test]
    fn numbers_are_read_as_dpkg_reads_them() {
        for (at, number, is_read) in [
            (100, &b"x"[..], true),
            (108, b"x", false),
            (108, b"7 7", false),
            (108, b"\x80\0\0\x01\0\0\0\0", false),
            (108, b"\x80\0\0\0\xff\xff\xff\xff", true),
            (116, b"-1", false),
            (124, b"\0\0\0\0\0\0\0\0\0\0\0\0", true),
            (124, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", false),
            (136, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", true),
            (136, b"x", false),
        ] {
            let bytes = changed(|header| put(header, at, number));
            assert_eq!(read_all(&bytes).is_ok(), is_read, "{at}: {number:?}");
        }
    }

    #[test]
    fn announced_sizes_bind() {
        let mut archive = TarWriter::new(Vec::new(), 0);
        archive.begin(&file("a", 2)).unwrap();
        assert!(archive.members.data(b"abc").is_err());
        let mut archive = TarWriter::new(Vec::new(), 0);
        archive.begin(&file("a", 2)).unwrap();
        archive.members.data(b"a").unwrap();
        assert!(archive.members.end().is_err());
    }
}
