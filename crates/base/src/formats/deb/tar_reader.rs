//! Reads GNU tar as dpkg does; the byte table is in [`crate::formats::tar`].
//!
//! Refused beyond what no archive may have: PAX members, hard links, devices, names outside of
//! `./`.

use std::io::Read;

use tar::EntryType;

use crate::error::Result;
use crate::formats::member::is_plain;
use crate::formats::payload::{Marking, PayloadEntry, PayloadEntryKind, ReadEntry};
use crate::formats::tar::{Extensions, TarMember};

/// Reads an archive member by member.
pub(super) struct DebMembers<R: Read> {
    members: crate::formats::tar::TarMembers<R>,
}

impl<R: Read> DebMembers<R> {
    /// Reads a data archive from the first member on.
    pub fn of_data(source: R) -> Self {
        Self { members: crate::formats::tar::TarMembers::new(source, Extensions::Gnu) }
    }

    /// Reads a control archive from the first member on. dpkg has tar unpack it, which skips a
    /// volume label.
    pub fn of_control(source: R) -> Self {
        Self { members: crate::formats::tar::TarMembers::new(source, Extensions::GnuAndLabels) }
    }

    /// The next member, or none at the end of the archive; what is left of the one before is
    /// skipped.
    pub fn next(&mut self) -> Result<Option<ReadEntry>> {
        self.members.next_member()?.map(|member| read_entry(&member)).transpose()
    }

    /// The decompressor, after the end of the archive.
    pub fn into_inner(self) -> R {
        self.members.into_inner()
    }
}

impl<R: Read> Read for DebMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.members.read(buffer)
    }
}

fn read_entry(member: &TarMember) -> Result<ReadEntry> {
    let kind = match member.kind {
        EntryType::Regular => PayloadEntryKind::File,
        EntryType::Directory => PayloadEntryKind::Directory,
        EntryType::Symlink => PayloadEntryKind::Link { target: member.target.clone() },
        _ if member.is_label() => {
            let error = member.unsupported("a volume label is not supported");
            return Err(error.hint("dpkg refuses it, too: pack the archive without `--label`"));
        }
        other => {
            let message = format!("member {} of type {other:?} is not supported", member.name);
            return Err(member.unsupported(message));
        }
    };
    if member.size > 0 && kind != PayloadEntryKind::File {
        return Err(member.fault("has content but is no file"));
    }
    let path = entry_path(&member.name, &kind);
    let path = path.ok_or_else(|| member.fault("has no plain path below ./"))?;
    let (user, group) = owners(member)?;
    let mtime = member.header.mtime().map_err(|_| member.fault("has no mtime"))?;
    let mode = member.header.mode().map_err(|_| member.fault("has no mode"))?;
    let entry = PayloadEntry { path, kind, mode, size: member.size, marking: Marking::Plain };
    Ok(ReadEntry { entry, user, group, mtime, declared: None })
}

fn entry_path(name: &str, kind: &PayloadEntryKind) -> Option<String> {
    let path = name.strip_prefix("./")?;
    if *kind != PayloadEntryKind::Directory {
        return is_plain(path).then(|| path.to_owned());
    }
    let path = path.strip_suffix('/').unwrap_or(path);
    (path.is_empty() || is_plain(path)).then(|| path.to_owned())
}

fn owners(member: &TarMember) -> Result<(String, String)> {
    let owner = |name: std::result::Result<Option<&str>, _>, id: std::io::Result<u64>| {
        let name = name.ok().flatten().filter(|name| !name.is_empty());
        match (name, id) {
            (Some("root"), Ok(0)) => Ok("root".to_owned()),
            (Some(name), Ok(id)) if id != 0 && name != "root" => Ok(name.to_owned()),
            (None, Ok(id)) => Ok(id.to_string()),
            (Some(name), Ok(id)) => Ok(format!("{name} ({id})")),
            (_, Err(_)) => Err(member.fault("has no owner")),
        }
    };
    let header = &member.header;
    Ok((owner(header.username(), header.uid())?, owner(header.groupname(), header.gid())?))
}
