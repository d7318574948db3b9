//! Writes `.rpm` files in one pass: reserves room for the header, writes the payload, fills in the header.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};

use sha2::{Digest as _, Sha256};

use super::cpio::{CpioForm, CpioWriter, MemberHeader, archive_size};
use super::header::{self, PayloadFacts};
use super::signature::front;
use super::specification::RpmSpecification;
use crate::payload::{
    CompressedPayload, FileDigests, Finished, PayloadEntry, PayloadFraming, PayloadWriter,
    write_fault,
};
use rockpack_core::compression::{Effort, Encoder};
use rockpack_core::content::DigestingWriter;
use rockpack_core::error::{Error, Result};

/// The payload's digest, over the compressor, over the archive's digest.
type PayloadStream = DigestingWriter<Encoder<DigestingWriter<BufWriter<File>, Sha256>>, Sha256>;

pub struct RpmWriter {
    specification: RpmSpecification,
    archive: CpioWriter<PayloadStream>,
    facts: PayloadFacts,
    next: usize,
    started: bool,
    /// Bytes in front of the payload.
    front: usize,
}

impl RpmWriter {
    /// Reserves room for everything in front of the payload in the empty `file`.
    pub fn create(file: File, specification: RpmSpecification) -> Result<Self> {
        specification.check()?;
        let (form, archive_size) = archive_of(&specification);
        let facts = PayloadFacts::blank(&specification.entries, archive_size);
        let room = front(&specification, &facts, None)?;
        let mut sink = BufWriter::with_capacity(1 << 18, file);
        sink.write_all(&room).map_err(write_fault)?;
        let RpmSpecification { compression, ref workers, .. } = specification;
        let encoder = Encoder::new(DigestingWriter::new(sink), compression, workers, archive_size)?;
        let archive = CpioWriter::new(DigestingWriter::new(encoder), form);
        let front = room.len();
        Ok(Self { specification, archive, facts, next: 0, started: false, front })
    }
}

impl PayloadWriter for RpmWriter {
    fn begin(&mut self, effort: Effort) -> Result<()> {
        self.archive.members.inner.sink.set_effort(effort).map_err(write_fault)?;
        let entry = self.specification.entries.get(self.next);
        let entry = entry.ok_or_else(|| Error::bug("more entries than announced"))?;
        let index = u32::try_from(self.next).map_err(|_| Error::bug("entry index"))?;
        (self.next, self.started) = (self.next + 1, false);
        let name = format!("./{}", entry.path);
        self.archive.begin(MemberHeader {
            index,
            name: &name,
            mode: header::mode(entry),
            mtime: self.specification.mtime,
            size: entry.stored_size(),
        })?;
        match entry.target() {
            Some(target) => self.archive.members.data(target.as_bytes()),
            None => Ok(()),
        }
    }

    fn data(&mut self, bytes: &[u8]) -> Result<()> {
        if !self.started && !bytes.is_empty() {
            self.started = true;
            let color = self.facts.colors.get_mut(self.next.wrapping_sub(1));
            let color = color.ok_or_else(|| Error::bug("content before the first entry"))?;
            *color = match bytes {
                [0x7f, b'E', b'L', b'F', 1, ..] => 1,
                [0x7f, b'E', b'L', b'F', 2, ..] => 2,
                _ => 0,
            };
        }
        self.archive.members.data(bytes)
    }

    fn end(&mut self, digests: Option<FileDigests>) -> Result<()> {
        let sha256 = digests.map(|digests| digests.sha256);
        let index = self.next.wrapping_sub(1);
        let is_file = self.specification.entries.get(index).is_some_and(PayloadEntry::is_file);
        match self.facts.files.get_mut(index) {
            Some(slot) if is_file == sha256.is_some() => *slot = sha256,
            _ => return Err(Error::bug("a file without a digest, or a digest without a file")),
        }
        self.archive.members.end()
    }

    fn finish(self: Box<Self>) -> Result<Finished> {
        if self.next != self.specification.entries.len() {
            return Err(Error::bug("fewer entries than announced"));
        }
        let Self { specification, archive, mut facts, front: room, .. } = *self;
        let (archive, written) = archive.finish()?;
        if written != facts.archive_size {
            let message = format!("archive of {written} bytes, {} announced", facts.archive_size);
            return Err(Error::bug(message));
        }
        let payload = archive.sink.finish().map_err(write_fault)?;
        facts.archive = archive.digest.finalize().into();
        facts.payload = payload.digest.finalize().into();
        facts.payload_size = payload.len;
        let bytes = front(&specification, &facts, specification.signer.as_ref())?;
        if bytes.len() != room {
            let message = format!("header of {} bytes, {room} reserved", bytes.len());
            return Err(Error::bug(message));
        }
        let mut sink = payload.sink;
        sink.seek(SeekFrom::Start(0)).map_err(write_fault)?;
        sink.write_all(&bytes).map_err(write_fault)?;
        sink.flush().map_err(write_fault)?;
        let start = room as u64;
        // What a reused payload needs of the facts.
        let colors = facts.colors.iter().flat_map(|color| color.to_le_bytes());
        let kept = facts.archive.into_iter().chain(facts.payload).chain(colors).collect();
        Ok(Finished { payload: start..start + payload.len, facts: kept })
    }
}

/// The bytes around a payload that was compressed earlier and is reused.
pub fn framing(
    specification: &RpmSpecification,
    ready: &CompressedPayload<'_>,
) -> Result<PayloadFraming> {
    specification.check()?;
    let entries = &specification.entries;
    let archive = ready.facts.split_first_chunk::<32>();
    let payload = archive.and_then(|(archive, rest)| Some((archive, rest.split_first_chunk()?)));
    let (archive, (payload, colors)) =
        payload.ok_or_else(|| Error::bug("facts without digests"))?;
    let (colors, rest) = colors.as_chunks::<4>();
    if !rest.is_empty() || colors.len() != entries.len() || ready.files.len() != entries.len() {
        return Err(Error::bug("the facts are not those of the entries"));
    }
    let facts = PayloadFacts {
        files: ready.files.to_vec(),
        colors: colors.iter().map(|color| u32::from_le_bytes(*color)).collect(),
        payload: *payload,
        archive: *archive,
        payload_size: ready.len,
        archive_size: archive_of(specification).1,
    };
    let front = front(specification, &facts, specification.signer.as_ref())?;
    Ok(PayloadFraming { front, back: b"" })
}

/// The form of a package's archive, and its size in bytes.
fn archive_of(specification: &RpmSpecification) -> (CpioForm, u64) {
    let form = if specification.has_large_files() { CpioForm::Stripped } else { CpioForm::Newc };
    let lengths = specification.entries.iter().map(|e| (e.path.len() as u64 + 2, e.stored_size()));
    (form, archive_size(form, lengths))
}
