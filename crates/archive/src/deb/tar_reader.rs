//! A reader of the data of a `.deb` with dpkg's rules; the byte table is in [`crate::tar`].
//!
//! Everything that dpkg installs is read: files, directories, symbolic and hard links, named pipes, and
//! devices, in any spelling of their names. Everything that dpkg refuses is refused: other types, names with
//! line breaks, links to nothing, and members that cannot be at their path ([`Paths`]). Refused too: names
//! with `..`, which dpkg follows out of the root.

use std::io::Read;

use tar::EntryType;

use super::tar_paths::{Paths, name_fault};
use crate::payload::{Marking, PayloadEntry, PayloadEntryKind, ReadEntry, SpecialKind};
use crate::tar::{Dialect, TarMember, TarMembers};
use crate::tar_header::fault;
use rockpack_core::error::{Error, Result};

/// The hint for a member that dpkg does not install.
const HINT: &str = "dpkg refuses the package, or installs it elsewhere: build it again by dpkg-deb";

/// Reads an archive member by member.
pub(super) struct DebMembers<R: Read> {
    members: TarMembers<R>,
    paths: Paths,
    /// Offset of the current member's header, in bytes.
    start: u64,
    /// The reason why dpkg refuses the current member after the earlier ones.
    refusal: Option<String>,
}

impl<R: Read> DebMembers<R> {
    /// A reader that starts at the first member.
    pub fn new(source: R) -> Self {
        Self {
            members: TarMembers::new(source, Dialect::Dpkg),
            paths: Paths::default(),
            start: 0,
            refusal: None,
        }
    }

    /// Skips the rest of the current member, and returns the next one, or `None` at the end of the archive.
    pub fn next(&mut self) -> Result<Option<ReadEntry>> {
        self.members.next_member()?.map(|member| self.read_entry(&member)).transpose()
    }

    /// Makes an error about the current member.
    pub fn fault(&self, message: &str) -> Error {
        fault(self.start, message)
    }

    /// The reason why dpkg refuses the current member after the earlier ones, as the rest of a sentence.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Returns the decompressor, after the end of the archive.
    pub fn into_inner(self) -> R {
        self.members.into_inner()
    }

    fn read_entry(&mut self, member: &TarMember) -> Result<ReadEntry> {
        self.start = member.start;
        let path = plain_path(member, &member.name)?;
        let kind = self.kind(member)?;
        let is_folder = kind == PayloadEntryKind::Directory;
        if path.is_empty() && !is_folder {
            return Err(refused(member, "is the root, and no directory"));
        }
        if let Some(why) = name_fault(&member.name, &path, &kind) {
            return Err(refused(member, why));
        }
        self.refusal = self.paths.add(&member.name, &path, &kind).err();
        let [user, group] = member.owners();
        let size = if kind == PayloadEntryKind::File { member.size } else { 0 };
        let mode = member.lenient_mode();
        let entry = PayloadEntry { path, kind, mode, size, marking: Marking::Plain };
        Ok(ReadEntry { entry, user, group, mtime: member.time(), declared: None })
    }

    fn kind(&self, member: &TarMember) -> Result<PayloadEntryKind> {
        let special = match member.kind {
            EntryType::Regular => return Ok(PayloadEntryKind::File),
            EntryType::Directory => return Ok(PayloadEntryKind::Directory),
            EntryType::Symlink if member.target.is_empty() => {
                return Err(refused(member, "leads nowhere"));
            }
            EntryType::Symlink => {
                return Ok(PayloadEntryKind::Link { target: member.target.clone() });
            }
            EntryType::Link => SpecialKind::HardLink { target: self.linked(member)? },
            EntryType::Fifo => SpecialKind::Pipe,
            EntryType::Char => SpecialKind::CharacterDevice,
            EntryType::Block => SpecialKind::BlockDevice,
            _ if member.is_label() => {
                return Err(refused(member, "is a volume label, and nothing that dpkg installs"));
            }
            _ => return Err(refused(member, "is nothing that dpkg installs")),
        };
        Ok(PayloadEntryKind::Special(special))
    }

    /// The path of the file that a hard link leads to.
    fn linked(&self, member: &TarMember) -> Result<String> {
        let target = plain_path(member, &member.target)?;
        if self.paths.is_linkable(&member.target) {
            return Ok(target);
        }
        let target = &member.target;
        Err(refused(member, &format!("leads to `{target}`, which is no file in front of it")))
    }
}

impl<R: Read> Read for DebMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.members.read(buffer)
    }
}

/// Converts a name to the path below the root that dpkg uses.
fn plain_path(member: &TarMember, name: &str) -> Result<String> {
    if name.is_empty() {
        return Err(refused(member, "has an empty name"));
    }
    if name.contains('\n') {
        return Err(refused(member, "has a line break in its name"));
    }
    let parts: Vec<&str> = name.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.contains(&"..") {
        return Err(refused(member, "leads through `..`, out of the folder that it names"));
    }
    Ok(parts.join("/"))
}

/// Makes an error that refuses a member, with its name and type.
fn refused(member: &TarMember, why: &str) -> Error {
    let kind = char::from(member.kind.as_byte()).escape_default();
    member.fault(&format!("the member `{}` of type `{kind}` {why}", member.name)).hint(HINT)
}
