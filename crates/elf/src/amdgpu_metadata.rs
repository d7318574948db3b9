//! Metadata in the notes of a code object: its kernels, and the resources that they need.
//!
//! ```text
//! PT_NOTE   per note: u32 name size | u32 descriptor size | u32 type | name | descriptor
//!           name and descriptor each padded with zeros to a multiple of 4
//! type 32   NT_AMDGPU_METADATA, name "AMDGPU\0": the descriptor is a MessagePack map
//!           { "amdhsa.version": [major, minor], "amdhsa.target": str,
//!             "amdhsa.kernels": [ { ".name": str, ".symbol": str, ".kernarg_segment_size": n,
//!               ".group_segment_fixed_size": n, ".private_segment_fixed_size": n,
//!               ".wavefront_size": n, ".sgpr_count": n, ".vgpr_count": n, ".agpr_count": n,
//!               ".max_flat_workgroup_size": n, … } ] }
//! ```
//!
//! Source: LLVM's AMDGPU guide ("Code Object V3 Metadata" and later); code objects of LLVM 17 and 19. The map
//! is walked, and only one kernel is decoded at a time: most of the 30 MB of a large kernel database are the
//! arguments of kernels. Code objects of version 2 have YAML in another note, which is not read, so they have
//! no metadata here.
//!
//! A code object linked from several objects has one note of each: Debian's kernel databases of rocBLAS have
//! thousands.
//!
//! Refused: notes that extend beyond their segment, fields of other types, note segments that overlap
//! (a segment that is listed twice is read once), and notes for more than a few targets.

use std::io::{self, BufReader};

use object::elf;
use rmpv::Value;
use serde::Serialize;

use rockpack_core::content::{Content, ContentReader, WINDOW};
use rockpack_core::error::{Error, Kind, Place, Result};

use crate::message_pack::{self, MapFields};
use crate::message_pack_stream::{Token, TokenReader};
use crate::{ElfFile, FileHeader, ProgramHeader};

const METADATA: u32 = 32;

/// The name of the notes of code objects from version 3 on, with its NUL.
const OWNER: &[u8] = b"AMDGPU\0";

/// Longest metadata that is read, in bytes: ten times the longest known, which Debian's rocBLAS has.
const METADATA_LIMIT: u64 = 512 << 20;

/// Longest kernel that is read, in bytes; thousands of arguments fit. Bounds the memory of decoded values.
const VALUE_LIMIT: u64 = 1 << 20;

/// Maximum number of versions and targets in the notes of one file: real ones have one.
const TARGETS_LIMIT: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CodeObjectMetadata {
    /// Version of the metadata, e.g. 1 and 2.
    pub version: Vec<u64>,
    /// Triple and target, e.g. `amdgcn-amd-amdhsa--gfx1100`; absent before version 1.1.
    pub target: Option<String>,
    pub kernels: Vec<KernelMetadata>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KernelMetadata {
    /// The name in the source language.
    pub name: String,
    /// The symbol of the kernel's descriptor, `<name>.kd`.
    pub symbol: String,
    pub kernarg_segment_size: u64,
    /// Bytes of memory that a work-group shares (LDS).
    pub group_segment_fixed_size: u64,
    /// Bytes of memory of each work-item (scratch).
    pub private_segment_fixed_size: u64,
    /// Work-items in a wavefront: 32 or 64.
    pub wavefront_size: u64,
    pub sgpr_count: u64,
    pub vgpr_count: u64,
    /// Number of accumulation registers, on processors that have them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agpr_count: Option<u64>,
    pub max_flat_workgroup_size: u64,
}

/// Reads the metadata of a code object, in the order of its notes. Notes that differ only in their kernels
/// are merged. Empty if no note holds metadata.
pub fn read(content: &Content) -> Result<Vec<CodeObjectMetadata>> {
    let header = FileHeader::read(content)?.ok_or_else(|| {
        Error::malformed("is not an ELF64 file").structure("code object").at(&content.place(0))
    })?;
    let file = ElfFile::with_header(content, header)?;
    let mut found = Vec::new();
    for segment in note_segments(&file)? {
        let end = segment
            .p_offset
            .checked_add(segment.p_filesz)
            .filter(|end| *end <= content.len())
            .ok_or_else(|| {
                let message = "the note segment ends outside of the file";
                file.refuse(Kind::Truncated, "program header", segment.p_offset, message)
            })?;
        let notes = content.slice(segment.p_offset..end)?;
        let mut position = 0;
        while position < notes.len() {
            let note = Note::at(&notes, position)?;
            position = note.end;
            if note.kind == METADATA && note.is_owned(&notes)? {
                let place = notes.place(note.descriptor.start);
                let metadata = decode(&notes.slice(note.descriptor)?)?;
                add(metadata, &mut found).map_err(|e| e.at(&place))?;
            }
        }
    }
    Ok(found)
}

/// The note segments in table order, each range of bytes once.
fn note_segments(file: &ElfFile) -> Result<Vec<&ProgramHeader>> {
    let headers = file.program_headers.iter().enumerate();
    let mut notes: Vec<_> = headers
        .filter(|(_, header)| header.p_type == elf::PT_NOTE && header.p_filesz > 0)
        .collect();
    notes.sort_by_key(|(index, header)| (header.p_offset, header.p_filesz, *index));
    notes.dedup_by_key(|(_, header)| (header.p_offset, header.p_filesz));
    let mut pairs = notes.windows(2);
    if let Some(pair) = pairs.find(|pair| pair[1].1.p_offset < pair[0].1.file_end()) {
        let message = format!("shares notes from {:#x} on with another", pair[1].1.p_offset);
        let error = file.refuse_segment(Kind::Malformed, pair[1].0, message);
        return Err(error.hint("the file is damaged: build it or copy it again"));
    }
    notes.sort_by_key(|(index, _)| *index);
    Ok(notes.into_iter().map(|(_, header)| header).collect())
}

const STRUCTURE: &str = "AMDGPU metadata note";

fn add(metadata: CodeObjectMetadata, found: &mut Vec<CodeObjectMetadata>) -> Result<()> {
    let known = found
        .iter()
        .position(|other| other.version == metadata.version && other.target == metadata.target);
    match known {
        Some(index) => found[index].kernels.extend(metadata.kernels),
        None if found.len() == TARGETS_LIMIT => {
            let message = format!(
                "has notes for more than {TARGETS_LIMIT} combinations of version and target"
            );
            let error = Error::new(Kind::Limit, message).structure(STRUCTURE);
            return Err(error.hint("a code object is for one target: build it again"));
        }
        None => found.push(metadata),
    }
    Ok(())
}

/// The parts of a note, as ranges within its segment.
struct Note {
    kind: u32,
    name: std::ops::Range<u64>,
    descriptor: std::ops::Range<u64>,
    end: u64,
}

impl Note {
    fn at(notes: &Content, position: u64) -> Result<Self> {
        let [n0, n1, n2, n3, d0, d1, d2, d3, t0, t1, t2, t3]: [u8; 12] =
            notes.read_array(position).map_err(in_note)?;
        let start = position + 12;
        let name = start..start + size_field([n0, n1, n2, n3]);
        let start = name.end.next_multiple_of(4);
        let descriptor = start..start + size_field([d0, d1, d2, d3]);
        if descriptor.end > notes.len() {
            let message = format!("ends {} bytes after its segment", descriptor.end - notes.len());
            return Err(in_note(Error::truncated(message).at(&notes.place(position))));
        }
        let end = descriptor.end.next_multiple_of(4);
        Ok(Self { kind: u32::from_le_bytes([t0, t1, t2, t3]), name, descriptor, end })
    }

    fn is_owned(&self, notes: &Content) -> Result<bool> {
        let len = self.name.end - self.name.start;
        Ok(len == OWNER.len() as u64 && notes.read_array::<7>(self.name.start)? == *OWNER)
    }
}

fn in_note(error: Error) -> Error {
    error.structure("ELF note")
}

fn size_field(bytes: [u8; 4]) -> u64 {
    u64::from(u32::from_le_bytes(bytes))
}

fn decode(descriptor: &Content) -> Result<CodeObjectMetadata> {
    if descriptor.len() > METADATA_LIMIT {
        let message = format!("{} bytes exceed the limit of {METADATA_LIMIT}", descriptor.len());
        return Err(in_descriptor(descriptor, Error::new(Kind::Limit, message)));
    }
    let window = usize::try_from(descriptor.len()).unwrap_or(WINDOW).min(WINDOW);
    let tokens = TokenReader::new(BufReader::with_capacity(window, descriptor.reader()));
    let mut values = ValueReader { descriptor, tokens };
    let decoded = values.metadata();
    let metadata = decoded.map_err(|error| in_descriptor(descriptor, error))?;
    if values.tokens.position() < descriptor.len() {
        return Err(in_descriptor(descriptor, Error::malformed("bytes follow its map")));
    }
    Ok(metadata)
}

/// Walks the values of a descriptor, and decodes only the ones that are needed.
struct ValueReader<'a> {
    descriptor: &'a Content,
    tokens: TokenReader<BufReader<ContentReader>>,
}

impl ValueReader<'_> {
    fn metadata(&mut self) -> Result<CodeObjectMetadata> {
        let Token::Map(len) = self.tokens.token().map_err(in_token)? else {
            return Err(Error::malformed("is not a map"));
        };
        let (mut known, mut kernels) = (Vec::new(), Vec::new());
        for _ in 0..len {
            let key = self.value()?;
            let value = match key.as_str() {
                Some("amdhsa.kernels") => {
                    kernels = self.kernels()?;
                    Value::Nil
                }
                Some("amdhsa.version" | "amdhsa.target") => self.value()?,
                _ => {
                    self.tokens.skip_value().map_err(in_token)?;
                    continue;
                }
            };
            known.push((key, value));
        }
        let known = Value::Map(known);
        let fields = MapFields::of(&known, STRUCTURE, &self.descriptor.place(0))?;
        let version: Option<Vec<u64>> =
            fields.list("amdhsa.version")?.iter().map(Value::as_u64).collect();
        let version =
            version.ok_or_else(|| fields.fault("its version is not a list of numbers"))?;
        let target = fields.optional("amdhsa.target").map(|_| fields.text("amdhsa.target"));
        Ok(CodeObjectMetadata { version, target: target.transpose()?.map(str::to_owned), kernels })
    }

    fn kernels(&mut self) -> Result<Vec<KernelMetadata>> {
        let Token::Array(len) = self.tokens.token().map_err(in_token)? else {
            return Err(Error::malformed("its field `amdhsa.kernels` is not a list"));
        };
        let place = self.descriptor.place(0);
        (0..len).map(|_| KernelMetadata::of_value(&self.value()?, &place)).collect()
    }

    fn value(&mut self) -> Result<Value> {
        let start = self.tokens.position();
        self.tokens.skip_value().map_err(in_token)?;
        let bytes = self.descriptor.slice(start..self.tokens.position())?;
        message_pack::decode(&bytes, VALUE_LIMIT, STRUCTURE)
    }
}

fn in_token(cause: io::Error) -> Error {
    Error::from_io(cause).unwrap_or_else(|cause| Error::malformed("is damaged").cause(cause))
}

impl KernelMetadata {
    fn of_value(value: &Value, place: &Place) -> Result<Self> {
        let fields = MapFields::of(value, STRUCTURE, place)?;
        let agpr_count = fields.optional(".agpr_count").map(|_| fields.number(".agpr_count"));
        Ok(Self {
            name: fields.text(".name")?.to_owned(),
            symbol: fields.text(".symbol")?.to_owned(),
            kernarg_segment_size: fields.number(".kernarg_segment_size")?,
            group_segment_fixed_size: fields.number(".group_segment_fixed_size")?,
            private_segment_fixed_size: fields.number(".private_segment_fixed_size")?,
            wavefront_size: fields.number(".wavefront_size")?,
            sgpr_count: fields.number(".sgpr_count")?,
            vgpr_count: fields.number(".vgpr_count")?,
            agpr_count: agpr_count.transpose()?,
            max_flat_workgroup_size: fields.number(".max_flat_workgroup_size")?,
        })
    }
}

fn in_descriptor(descriptor: &Content, error: Error) -> Error {
    error.structure(STRUCTURE).at(&descriptor.place(0))
}

#[cfg(test)]
#[path = "amdgpu_metadata_tests.rs"]
mod tests;
