//! Debian's binary package format 2.0.
//!
//! ```text
//! ar archive of three members, in this order (other tools may add more, see `framing`):
//!   debian-binary       "2.0\n"
//!   control.tar.gz      ./control ./md5sums ./conffiles ./triggers and maintainer scripts
//!   data.tar.<zst|xz>   the files, as GNU tar
//! ```
//!
//! Source: deb(5), deb-control(5), deb-triggers(5), deb-conffiles(5), and dpkg 1.21's refusals. The writer reserves
//! space for the control archive, writes the data archive, and then the control archive with the MD5 sums. The
//! control archive is gzip without compression, so its length is known in advance. If the sums are a large part of
//! the package, the writer compresses the control archive and moves the data archive up to it.

mod control;
mod fields;
mod framing;
mod lists;
mod reader;
mod relations;
mod tar;
mod tar_reader;

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;

pub use control::{Control, ControlField, is_compressed as is_control_compressed};
pub use fields::{
    ControlFields, check_relations, parse as parse_fields, parse_control, parse_stanza,
};
pub(super) use fields::{excerpt, fault};
pub(super) use reader::FIELDS_MAX;
pub use reader::{DebFront, DebReader, control_texts, each_owned_path, unreadable_reason};
pub use relations::{DebRelation, relations};
pub use rockpack_core::package_format::compare_deb_versions as compare_versions;

use self::tar::{TarWriter, archive_size};
use crate::ar;
use crate::payload::{
    CompressedPayload, FileDigests, Finished, PayloadEntry, PayloadEntryKind, PayloadFraming,
    PayloadWriter, write_fault,
};
use rockpack_core::compression::{Compression, Effort, Encoder, Workers};
use rockpack_core::content::WINDOW;
use rockpack_core::error::{Error, Result};

/// A `.deb` without the content of its files.
#[derive(Debug, Clone)]
pub struct DebSpecification {
    pub control: Control,
    /// The entries in path order, every directory before its content.
    pub entries: Vec<PayloadEntry>,
    /// Modification time of every entry, seconds since 1970.
    pub mtime: u64,
    /// Time in the ar headers and in the control archive, seconds since 1970.
    pub stamp: u64,
    pub compression: Compression,
    pub workers: Workers,
}

pub struct DebWriter {
    specification: DebSpecification,
    archive: TarWriter<Encoder<BufWriter<File>>>,
    next: usize,
    sums: Vec<[u8; 16]>,
    /// The number of bytes reserved in front of the data archive.
    reserved: u64,
}

impl DebWriter {
    /// Reserves space in the empty `file` for everything in front of the data archive.
    pub fn create(mut file: File, specification: DebSpecification) -> Result<Self> {
        specification.control.check()?;
        check_parents(&specification.entries)?;
        let DebSpecification { control, entries, stamp, .. } = &specification;
        let control = control.longest_archive(entries, *stamp)?;
        let reserved = front(&specification, &control, 0)?.len() as u64;
        file.seek(SeekFrom::Start(reserved)).map_err(write_fault)?;
        let sink = BufWriter::with_capacity(1 << 18, file);
        let root = control::root();
        let size = archive_size(std::iter::once(&root).chain(&specification.entries));
        let DebSpecification { compression, ref workers, mtime, .. } = specification;
        let mut archive = TarWriter::new(Encoder::new(sink, compression, workers, size)?, mtime);
        archive.begin(&root)?;
        Ok(Self { specification, archive, next: 0, sums: Vec::new(), reserved })
    }
}

impl PayloadWriter for DebWriter {
    fn begin(&mut self, effort: Effort) -> Result<()> {
        let entry = self.specification.entries.get(self.next);
        let entry = entry.ok_or_else(|| Error::bug("more entries than announced"))?;
        self.next += 1;
        self.archive.members.inner.set_effort(effort).map_err(write_fault)?;
        self.archive.begin(entry)
    }

    fn data(&mut self, bytes: &[u8]) -> Result<()> {
        self.archive.members.data(bytes)
    }

    fn end(&mut self, digests: Option<FileDigests>) -> Result<()> {
        let index = self.next.wrapping_sub(1);
        let is_file = self.specification.entries.get(index).is_some_and(PayloadEntry::is_file);
        match digests.and_then(|digests| digests.md5) {
            Some(md5) if is_file => self.sums.push(md5),
            None if !is_file => {}
            _ => return Err(Error::bug("a file without a digest, or a digest without a file")),
        }
        self.archive.members.end()
    }

    fn finish(self: Box<Self>) -> Result<Finished> {
        if self.next != self.specification.entries.len() {
            return Err(Error::bug("fewer entries than announced"));
        }
        let Self { specification, archive, sums, reserved, .. } = *self;
        let sink = archive.finish()?.finish().map_err(write_fault)?;
        let mut file = sink.into_inner().map_err(|error| write_fault(error.into_error()))?;
        let len = file.stream_position().map_err(write_fault)? - reserved;
        let front = filled_front(&specification, &sums, len)?;
        let data = front.len() as u64;
        if data > reserved {
            let message = format!("{data} bytes are in front of the data, {reserved} are reserved");
            return Err(Error::bug(message));
        }
        move_up(&file, reserved, data, len).map_err(write_fault)?;
        file.write_all_at(&front, 0).map_err(write_fault)?;
        file.seek(SeekFrom::Start(data + len)).map_err(write_fault)?;
        file.write_all(pad(len)).map_err(write_fault)?;
        Ok(Finished { payload: data..data + len, facts: sums.concat() })
    }
}

/// Moves the last `len` bytes of `file` from the offset `from` to the lower offset `to`.
fn move_up(file: &File, from: u64, to: u64, len: u64) -> io::Result<()> {
    if from == to {
        return Ok(());
    }
    let mut window = vec![0; usize::try_from(len).map_or(WINDOW, |len| len.min(WINDOW))];
    let mut done = 0;
    while done < len {
        let part = usize::try_from(len - done).map_or(WINDOW, |left| left.min(WINDOW));
        file.read_exact_at(&mut window[..part], from + done)?;
        file.write_all_at(&window[..part], to + done)?;
        done += part as u64;
    }
    file.set_len(to + len)
}

/// The bytes around a data archive that was compressed earlier and is reused.
pub fn framing(
    specification: &DebSpecification,
    ready: &CompressedPayload<'_>,
) -> Result<PayloadFraming> {
    let (sums, rest) = ready.facts.as_chunks::<16>();
    let files = specification.entries.iter().filter(|entry| entry.is_file()).count();
    if !rest.is_empty() || sums.len() != files {
        return Err(Error::bug("the sums are not those of the entries"));
    }
    specification.control.check()?;
    check_parents(&specification.entries)?;
    let front = filled_front(specification, sums, ready.len)?;
    Ok(PayloadFraming { front, back: pad(ready.len) })
}

/// Everything in front of a data archive of `len` bytes, with the sum of each file.
fn filled_front(specification: &DebSpecification, sums: &[[u8; 16]], len: u64) -> Result<Vec<u8>> {
    let DebSpecification { control, entries, stamp, .. } = specification;
    front(specification, &control.archive(entries, sums, *stamp, len)?, len)
}

/// Everything in front of a data archive of `len` bytes, with this control archive.
fn front(specification: &DebSpecification, control: &[u8], len: u64) -> Result<Vec<u8>> {
    let stamp = specification.stamp;
    let mut bytes = ar::MAGIC.to_vec();
    bytes.extend(ar::header("debian-binary", stamp, FORMAT_VERSION.len() as u64)?);
    bytes.extend(FORMAT_VERSION);
    bytes.extend(ar::header("control.tar.gz", stamp, control.len() as u64)?);
    bytes.extend(control);
    bytes.extend(pad(control.len() as u64));
    let name = format!("data.tar.{}", specification.compression.extension());
    bytes.extend(ar::header(&name, stamp, len)?);
    Ok(bytes)
}

fn pad(len: u64) -> &'static [u8] {
    if len.is_multiple_of(2) { b"" } else { b"\n" }
}

/// Checks that every directory comes before its content, and that no path is repeated, as dpkg requires.
fn check_parents(entries: &[PayloadEntry]) -> Result<()> {
    let mut directories = HashSet::from([""]);
    let mut paths = HashSet::new();
    let is_sorted = entries.is_sorted_by(|one, other| one.path < other.path);
    let mut faults = Vec::new();
    for entry in entries {
        let parent = entry.path.rsplit_once('/').map_or("", |(parent, _)| parent);
        if !directories.contains(parent) {
            faults.push(Error::bug(format!("/{} comes before its directory", entry.path)));
        }
        if entry.path.is_empty() || !is_sorted && !paths.insert(&entry.path) {
            faults.push(Error::bug(format!("/{} is listed twice", entry.path)));
        }
        if entry.kind == PayloadEntryKind::Directory {
            directories.insert(&entry.path);
        }
    }
    Error::gather(faults).map_or(Ok(()), Err)
}

const FORMAT_VERSION: &[u8; 4] = b"2.0\n";

/// Bytes per unit of `Installed-Size`.
pub const INSTALLED_UNIT: u64 = 1024;

/// `Installed-Size` in KiB by dpkg-gencontrol's estimate: files and links rounded up to a KiB each, a KiB per
/// directory, and one for the root directory.
pub fn installed_kib(entries: &[PayloadEntry]) -> u64 {
    let kib = entries.iter().map(|entry| match entry.kind {
        PayloadEntryKind::Directory => 1,
        _ => entry.stored_size().div_ceil(INSTALLED_UNIT),
    });
    kib.sum::<u64>() + 1
}
