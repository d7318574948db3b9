//! The cpio archive inside an `.rpm`: newc and rpm's stripped form.
//!
//! ```text
//! newc      "070701", 13 fields of 8 hex digits (inode, mode, uid, gid, links, mtime, size,
//!           device major/minor, node major/minor, bytes of the name with its NUL, checksum 0),
//!           the name and a NUL, padding to 4; the content, padding to 4
//! stripped  "07070X", 8 hex digits: index of the file in the header; padding to 4; the content,
//!           padding to 4
//! end       a newc member "TRAILER!!!" of size 0, in both forms
//! ```
//!
//! Offsets for padding count from the start of the archive. A size of 4 GiB does not fit newc, so packages
//! with such a file use the stripped form throughout, as from rpmbuild; only the package's header then has
//! name, mode and size. The code is hand-written because the `rpm` crate's cpio is private, and no other
//! crate supports the stripped form. Among the hard links to a file, only the last has the content.

use std::io::{Read, Write};

use crate::member::{self, MemberSink, MemberSource};
use rockpack_core::compression::decoder_fault;
use rockpack_core::error::{Error, Result};

const NEWC_MAGIC: &[u8; 6] = b"070701";
const STRIPPED_MAGIC: &[u8; 6] = b"07070X";
const NEWC_SIZE: usize = 110;
const STRIPPED_SIZE: usize = 14;
const ARCHIVE: &str = "cpio archive";
const ALIGNMENT: usize = 4;
const TRAILER: &str = "TRAILER!!!";

/// Longest name in bytes, a bound for hostile input: Linux's PATH_MAX with `./`.
const NAME_MAX: usize = 4096 + 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemberHeader<'a> {
    pub index: u32,
    pub name: &'a str,
    pub mode: u32,
    /// Modification time, seconds since 1970.
    pub mtime: u32,
    pub size: u64,
}

/// The form of the members in an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CpioForm {
    /// Self-contained members.
    Newc,
    /// Members that refer to the package's header.
    Stripped,
}

fn padding(size: u64) -> u64 {
    member::padding(size, ALIGNMENT) as u64
}

/// Size in bytes of a whole archive of `members` (lengths of name and content).
pub(super) fn archive_size(form: CpioForm, members: impl Iterator<Item = (u64, u64)>) -> u64 {
    let sizes = members.map(|(name, content)| match form {
        CpioForm::Newc => newc_size(name, content),
        CpioForm::Stripped => STRIPPED_SIZE as u64 + 2 + content + padding(content),
    });
    sizes.sum::<u64>() + newc_size(TRAILER.len() as u64, 0)
}

fn newc_size(name: u64, content: u64) -> u64 {
    let head = NEWC_SIZE as u64 + name + 1;
    head + padding(head) + content + padding(content)
}

fn newc_header(member: MemberHeader<'_>, links: u32) -> Result<Vec<u8>> {
    let size = u32::try_from(member.size)
        .map_err(|_| Error::bug(format!("{} does not fit a newc member", member.name)))?;
    let name_size = u32::try_from(member.name.len() + 1)
        .map_err(|_| Error::bug("a name does not fit a newc member"))?;
    // rpmbuild numbers inodes from 1 and writes no devices.
    let inode = if links == 0 { 0 } else { member.index + 1 };
    let (mode, mtime) = (member.mode, member.mtime);
    let fields = [inode, mode, 0, 0, links.max(1), mtime, size, 0, 0, 0, 0, name_size, 0];
    let mut bytes = NEWC_MAGIC.to_vec();
    bytes.extend(fields.iter().flat_map(|field| format!("{field:08x}").into_bytes()));
    bytes.extend(member.name.bytes());
    bytes.push(0);
    Ok(bytes)
}

pub(super) struct CpioWriter<W: Write> {
    pub members: MemberSink<W>,
    form: CpioForm,
}

impl<W: Write> CpioWriter<W> {
    pub fn new(sink: W, form: CpioForm) -> Self {
        Self { members: MemberSink::new(sink, ARCHIVE, ALIGNMENT), form }
    }

    /// Begins a member; content of the announced size must follow.
    pub fn begin(&mut self, member: MemberHeader<'_>) -> Result<()> {
        let bytes = match self.form {
            CpioForm::Newc => newc_header(member, 1)?,
            CpioForm::Stripped => {
                let index = format!("{:08x}", member.index);
                [STRIPPED_MAGIC, index.as_bytes()].concat()
            }
        };
        self.members.put(&bytes)?;
        self.members.begin(member.size)
    }

    /// Writes the trailer, and returns the sink and the size of the archive.
    pub fn finish(mut self) -> Result<(W, u64)> {
        let trailer = MemberHeader { index: 0, name: TRAILER, mode: 0, mtime: 0, size: 0 };
        self.members.put(&newc_header(trailer, 0)?)?;
        self.members.pad()?;
        Ok((self.members.inner, self.members.at))
    }
}

/// A member as read, with fields as in [`MemberHeader`]. `links` is the number of hard links to the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CpioMember {
    Newc { name: String, mode: u32, mtime: u32, size: u64, links: u32 },
    Stripped { index: u32 },
}

pub(super) struct CpioMembers<R: Read> {
    /// The reader of the archive. Its `left` bounds the content of the current member.
    pub source: MemberSource<R>,
}

impl<R: Read> CpioMembers<R> {
    pub fn new(source: R) -> Self {
        Self { source: MemberSource::new(source, ARCHIVE) }
    }

    /// Skips the rest of the current member, and returns the next one, or `None` after the trailer. Callers must
    /// set `source.left` to the size of a stripped member before they read its content.
    pub fn next(&mut self) -> Result<Option<CpioMember>> {
        self.source.drain()?;
        self.pad()?;
        let start = self.source.at;
        let mut magic = [0; 6];
        self.source.fill(&mut magic)?;
        match &magic {
            NEWC_MAGIC => self.newc(start),
            STRIPPED_MAGIC => {
                let index = self.number()?;
                self.pad()?;
                Ok(Some(CpioMember::Stripped { index }))
            }
            _ => Err(fault(start, "is neither newc nor stripped cpio")),
        }
    }

    fn newc(&mut self, start: u64) -> Result<Option<CpioMember>> {
        let mut fields = [0; 13];
        for field in &mut fields {
            *field = self.number()?;
        }
        let [_, mode, uid, gid, links, mtime, size, .., name_size, _] = fields;
        let len = usize::try_from(name_size).ok().filter(|len| (1..=NAME_MAX).contains(len));
        let mut name = vec![0; len.ok_or_else(|| fault(start, "has a name beyond PATH_MAX"))?];
        self.source.fill(&mut name)?;
        if name.pop() != Some(0) || name.contains(&0) {
            return Err(fault(start, "has a name that does not end with a NUL"));
        }
        self.pad()?;
        let name =
            String::from_utf8(name).map_err(|_| fault(start, "has a name that is not UTF-8"))?;
        let size = u64::from(size);
        if name == TRAILER {
            return match size {
                0 => Ok(None),
                _ => Err(fault(start, "has a trailer with content")),
            };
        }
        if (uid, gid) != (0, 0) {
            return Err(Error::unsupported(format!("{name} is not owned by root"))
                .structure(member::structure(ARCHIVE, start)));
        }
        self.source.left = size;
        Ok(Some(CpioMember::Newc { name, mode, mtime, size, links }))
    }

    /// Reads the whole content of the current member. Fails if it has more than `limit` bytes.
    pub fn content(&mut self, limit: u64) -> Result<Vec<u8>> {
        if self.source.left > limit {
            return Err(fault(self.source.at, "has a link target beyond PATH_MAX"));
        }
        let mut bytes = Vec::new();
        self.source.read_to_end(&mut bytes).map_err(decoder_fault)?;
        Ok(bytes)
    }

    fn pad(&mut self) -> Result<()> {
        self.source.align(ALIGNMENT)
    }

    fn number(&mut self) -> Result<u32> {
        let at = self.source.at;
        let mut digits = [0; 8];
        self.source.fill(&mut digits)?;
        let text = std::str::from_utf8(&digits).ok();
        text.filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|text| u32::from_str_radix(text, 16).ok())
            .ok_or_else(|| fault(at, "has a field that is not hexadecimal"))
    }
}

fn fault(at: u64, message: &str) -> Error {
    member::fault(ARCHIVE, at, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(form: CpioForm) -> Vec<u8> {
        let mut archive = CpioWriter::new(Vec::new(), form);
        for (index, (name, content)) in
            [("./a", "x"), ("./some/dir", ""), ("./b", "12345")].into_iter().enumerate()
        {
            let member = MemberHeader {
                index: u32::try_from(index).unwrap(),
                name,
                mode: 0o100_644,
                mtime: 7,
                size: content.len() as u64,
            };
            archive.begin(member).unwrap();
            archive.members.data(content.as_bytes()).unwrap();
            archive.members.end().unwrap();
        }
        let (bytes, size) = archive.finish().unwrap();
        let lengths = [(3, 1), (10, 0), (3, 5)].into_iter();
        assert_eq!((size, archive_size(form, lengths)), (bytes.len() as u64, size));
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Vec<(CpioMember, Vec<u8>)>> {
        let mut members = CpioMembers::new(bytes);
        let mut found = Vec::new();
        while let Some(member) = members.next()? {
            if let CpioMember::Stripped { index } = member {
                members.source.left = [1, 0, 5][index as usize];
            }
            let content = members.content(u64::MAX)?;
            found.push((member, content));
        }
        Ok(found)
    }

    #[test]
    fn both_forms_are_read_back() {
        let newc = read(&archive(CpioForm::Newc)).unwrap();
        let (name, mode) = ("./a".into(), 0o100_644);
        let first = CpioMember::Newc { name, mode, mtime: 7, size: 1, links: 1 };
        assert_eq!(newc[0], (first, b"x".to_vec()));
        assert_eq!(newc[2].1, b"12345");
        let stripped = read(&archive(CpioForm::Stripped)).unwrap();
        assert_eq!(stripped[2], (CpioMember::Stripped { index: 2 }, b"12345".to_vec()));
    }

    #[test]
    fn truncated_archives_are_errors() {
        for form in [CpioForm::Newc, CpioForm::Stripped] {
            let bytes = archive(form);
            for len in 0..bytes.len() {
                assert!(read(&bytes[..len]).is_err(), "{form:?} cut to {len}");
            }
        }
    }
}
