//! A writer of `.deb` files. It writes front to back in one pass, and then fills in the parts that depend on
//! the content.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};

use super::control::{self, Control};
use super::tar::{TarWriter, archive_size};
use crate::error::{Error, Result};
use crate::formats::ar;
use crate::formats::compression::{Compression, Effort, Encoder, Workers};
use crate::formats::payload::{Around, FileDigests, Finished, PayloadEntry, PayloadWriter, Ready};

/// A `.deb` without the content of its files.
#[derive(Debug, Clone)]
pub struct DebSpecification {
    /// Fields, scripts, triggers.
    pub control: Control,
    /// The entries in path order, every directory before its content.
    pub entries: Vec<PayloadEntry>,
    /// Modification time of every entry, seconds since 1970.
    pub mtime: u64,
    /// Time in the ar headers and in the control archive, seconds since 1970.
    pub stamp: u64,
    /// The compression of the data archive.
    pub compression: Compression,
    /// Compressor threads.
    pub workers: Workers,
}

/// A `.deb` that is being written.
pub struct DebWriter {
    specification: DebSpecification,
    archive: TarWriter<Encoder<BufWriter<File>>>,
    /// Index of the next entry.
    next: usize,
    sums: Vec<[u8; 16]>,
    /// Offset and length of the bytes of control.tar.gz.
    control: (u64, u64),
    /// Offset of the bytes of the data archive.
    data: u64,
}

impl DebWriter {
    /// Writes everything in front of the data archive into the empty `file`.
    pub fn create(file: File, specification: DebSpecification) -> Result<Self> {
        let blank = vec![[0; 16]; file_count(&specification.entries)];
        let DebFront { bytes, control, data } = DebFront::new(&specification, &blank, 0)?;
        let mut sink = BufWriter::with_capacity(1 << 18, file);
        sink.write_all(&bytes).map_err(fault)?;
        let root = control::root();
        let size = archive_size(std::iter::once(&root).chain(&specification.entries));
        let DebSpecification { compression, ref workers, mtime, .. } = specification;
        let mut archive = TarWriter::new(Encoder::new(sink, compression, workers, size)?, mtime);
        archive.begin(&root)?;
        Ok(Self { specification, archive, next: 0, sums: Vec::new(), control, data })
    }
}

impl PayloadWriter for DebWriter {
    fn begin(&mut self, effort: Effort) -> Result<()> {
        let entry = self
            .specification
            .entries
            .get(self.next)
            .ok_or_else(|| Error::bug("more entries than announced"))?;
        self.next += 1;
        self.archive.sink().set_effort(effort).map_err(fault)?;
        self.archive.begin(entry)
    }

    fn data(&mut self, bytes: &[u8]) -> Result<()> {
        self.archive.data(bytes)
    }

    fn end(&mut self, digests: Option<FileDigests>) -> Result<()> {
        let index = self.next.wrapping_sub(1);
        let is_file = self.specification.entries.get(index).is_some_and(PayloadEntry::is_file);
        match digests.and_then(|digests| digests.md5) {
            Some(md5) if is_file => self.sums.push(md5),
            None if !is_file => {}
            _ => return Err(Error::bug("a digest for something that is no file, or none")),
        }
        self.archive.end()
    }

    fn finish(self: Box<Self>) -> Result<Finished> {
        if self.next != self.specification.entries.len() {
            return Err(Error::bug("fewer entries than announced"));
        }
        let Self { specification, archive, sums, control, data, .. } = *self;
        let mut sink = archive.finish()?.finish().map_err(fault)?;
        let len = sink.stream_position().map_err(fault)? - data;
        sink.write_all(pad(len)).map_err(fault)?;
        let DebSpecification { control: fields, entries, stamp, .. } = &specification;
        let filled = fields.archive(entries, &sums, *stamp)?;
        sink.seek(SeekFrom::Start(control.0)).map_err(fault)?;
        control::refill(&mut sink, &filled, control.1)?;
        let header = data_header(&specification, len)?;
        sink.seek(SeekFrom::Start(data - ar::HEADER_SIZE as u64)).map_err(fault)?;
        sink.write_all(&header).map_err(fault)?;
        sink.flush().map_err(fault)?;
        Ok(Finished { payload: data..data + len, facts: sums.concat() })
    }
}

/// The bytes around a data archive that was compressed earlier and is reused.
pub fn around(specification: &DebSpecification, ready: &Ready<'_>) -> Result<Around> {
    let (sums, rest) = ready.facts.as_chunks::<16>();
    if !rest.is_empty() || sums.len() != file_count(&specification.entries) {
        return Err(Error::bug("the sums are not those of the entries"));
    }
    let front = DebFront::new(specification, sums, ready.len)?;
    Ok(Around { front: front.bytes, back: pad(ready.len) })
}

/// Everything in front of the bytes of the data archive.
struct DebFront {
    bytes: Vec<u8>,
    /// Offset and length of the bytes of control.tar.gz.
    control: (u64, u64),
    /// Offset of the data archive, which is the end of these bytes.
    data: u64,
}

impl DebFront {
    /// Makes the front with the sum of each file and the length of the data archive, or with zeros in their
    /// place.
    fn new(specification: &DebSpecification, sums: &[[u8; 16]], len: u64) -> Result<Self> {
        specification.control.check()?;
        check_parents(&specification.entries)?;
        let DebSpecification { control, entries, stamp, .. } = specification;
        let archive = control.archive(entries, sums, *stamp)?;
        let mut bytes = ar::MAGIC.to_vec();
        let version = super::FORMAT_VERSION;
        bytes.extend(ar::header("debian-binary", *stamp, version.len() as u64)?);
        bytes.extend(version);
        bytes.extend(ar::header("control.tar.gz", *stamp, archive.len() as u64)?);
        let control = (bytes.len() as u64, archive.len() as u64);
        bytes.extend(archive);
        bytes.extend(pad(control.1));
        bytes.extend(data_header(specification, len)?);
        let data = bytes.len() as u64;
        Ok(Self { bytes, control, data })
    }
}

fn file_count(entries: &[PayloadEntry]) -> usize {
    entries.iter().filter(|entry| entry.is_file()).count()
}

fn data_header(specification: &DebSpecification, len: u64) -> Result<[u8; ar::HEADER_SIZE]> {
    let name = format!("data.tar.{}", specification.compression.extension());
    ar::header(&name, specification.stamp, len)
}

/// The padding behind a member of `len` bytes.
fn pad(len: u64) -> &'static [u8] {
    if len.is_multiple_of(2) { b"" } else { b"\n" }
}

/// Checks that every directory comes before its content, and each path once, as dpkg requires.
fn check_parents(entries: &[PayloadEntry]) -> Result<()> {
    let mut directories = std::collections::HashSet::from([""]);
    let mut paths = std::collections::HashSet::new();
    let mut faults = Vec::new();
    for entry in entries {
        let parent = entry.path.rsplit_once('/').map_or("", |(parent, _)| parent);
        if !directories.contains(parent) {
            faults.push(Error::bug(format!("/{} comes before its directory", entry.path)));
        }
        if entry.path.is_empty() || !paths.insert(&entry.path) {
            faults.push(Error::bug(format!("/{} is listed twice", entry.path)));
        }
        if entry.kind == crate::formats::payload::PayloadEntryKind::Directory {
            directories.insert(&entry.path);
        }
    }
    Error::gather(faults).map_or(Ok(()), Err)
}

fn fault(source: std::io::Error) -> Error {
    Error::io_unplaced("write the package", source)
}
