//! The names of the kernels in a code object, and a walk over all rows of an archive that loads each code object once.
//!
//! Source: the AMDGPU chapter of LLVM's user guide, "Code Object Metadata": the note `AMDGPU` of type
//! 32 is a MessagePack map, whose array `amdhsa.kernels` has a map with `.name` for each kernel.

use std::collections::TryReserveError;
use std::convert::Infallible;
use std::ffi::CStr;
use std::fmt;

use object::LittleEndian;
use object::elf::{FileHeader64, NoteType, PT_NOTE};
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader};
use rockpack_kpack::archive::{BLOB_LIMIT, Row};
use rockpack_kpack::message_pack::{Decoder, Fault, Item};
use rockpack_kpack::{Code, Names, OutOfMemory};

use crate::archive::{OpenArchive, RowName};
use crate::report;

type Elf = FileHeader64<LittleEndian>;

/// The type of the note, which LLVM calls `NT_AMDGPU_METADATA`.
const METADATA: NoteType = NoteType(32);

/// The alignment in bytes of the parts of a note.
const ALIGNMENT: u64 = 4;

/// A fault for which the notes of a code object cannot be read.
enum Damage {
    OutOfMemory,
    /// The fault in words.
    Because(&'static str),
}

impl From<OutOfMemory> for Damage {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl From<Fault<Infallible>> for Damage {
    fn from(fault: Fault<Infallible>) -> Self {
        match fault {
            Fault::OutOfMemory => Self::OutOfMemory,
            _ => Self::Because("a note AMDGPU is no MessagePack map of kernels"),
        }
    }
}

/// The names of the kernels in `code_object`; empty if it is no ELF file or has no such note. `what` names it
/// in texts.
pub fn names(code_object: &[u8], what: &dyn fmt::Display) -> Result<Names, Code> {
    let mut names = Names::default();
    let Ok(header) = Elf::parse(code_object) else { return Ok(names) };
    match append_all(header, code_object, &mut names) {
        Ok(()) => Ok(names),
        Err(Damage::OutOfMemory) => Err(report::refused("the names of kernels")),
        Err(Damage::Because(why)) => {
            let why = format_args!("{what}: the code object is damaged: {why}");
            Err(report::fail_with_hint(Code::InvalidMetadata, why, "; install it again"))
        }
    }
}

/// Appends the names in all notes: a code object linked from several objects has a note of each.
fn append_all(header: &Elf, code_object: &[u8], names: &mut Names) -> Result<(), Damage> {
    for (start, end) in note_segments(header, code_object)? {
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        let bytes = range
            .and_then(|(start, end)| code_object.get(start..end))
            .ok_or(Damage::Because("a segment of notes leaves it"))?;
        let notes = NoteIterator::<Elf>::new(LittleEndian, ALIGNMENT, bytes);
        for note in notes.map_err(note_leaves)? {
            let note = note.map_err(note_leaves)?;
            if note.name() == b"AMDGPU" && note.n_type(LittleEndian) == METADATA {
                append(note.desc(), names)?;
            }
        }
    }
    Ok(())
}

fn note_leaves(_: object::read::Error) -> Damage {
    Damage::Because("a note leaves its segment")
}

/// The ranges of the segments of notes in the file, in its order, deduplicated. Overlapping segments are
/// refused: many headers over the same notes would keep a reader busy.
fn note_segments(header: &Elf, code_object: &[u8]) -> Result<Vec<(u64, u64)>, Damage> {
    let headers = header.program_headers(LittleEndian, code_object);
    let mut segments = Vec::new();
    for segment in headers.map_err(|_| Damage::Because("its program headers leave it"))? {
        let (start, size) = segment.file_range(LittleEndian);
        if segment.p_type(LittleEndian) == PT_NOTE && size > 0 {
            segments.try_reserve(1).map_err(OutOfMemory::from)?;
            segments.push((start, start.saturating_add(size)));
        }
    }
    segments.sort_unstable();
    segments.dedup();
    if segments.windows(2).any(|pair| matches!(pair, [(_, end), (start, _)] if start < end)) {
        return Err(Damage::Because("two segments share notes"));
    }
    Ok(segments)
}

#[derive(Clone, Copy)]
struct Wanted;

/// Appends the names in the description of a note.
fn append(metadata: &[u8], names: &mut Names) -> Result<(), Fault<Infallible>> {
    let mut decoder = Decoder::new(metadata);
    let Item::Map(pairs) = decoder.item()? else { return Err(Fault::Invalid(0)) };
    for _ in 0..pairs {
        if decoder.one_of(&[("amdhsa.kernels", Wanted)])?.is_none() {
            decoder.skip()?;
            continue;
        }
        match decoder.item()? {
            Item::Array(kernels) => {
                for _ in 0..kernels {
                    kernel(&mut decoder, names)?;
                }
            }
            other => decoder.skip_rest_of(other)?,
        }
    }
    Ok(())
}

fn kernel(decoder: &mut Decoder<&[u8]>, names: &mut Names) -> Result<(), Fault<Infallible>> {
    let pairs = match decoder.item()? {
        Item::Map(pairs) => pairs,
        other => return decoder.skip_rest_of(other),
    };
    for _ in 0..pairs {
        match decoder.one_of(&[(".name", Wanted)])? {
            Some(Wanted) => _ = decoder.append_name(names)?,
            None => decoder.skip()?,
        }
    }
    Ok(())
}

/// The answers about code objects, each under one ordinal of its place.
struct Known<T> {
    /// The first ordinal with the same place, for each ordinal.
    first: Vec<u32>,
    /// The loaded size and the answer, for each ordinal.
    answers: Vec<Option<(u64, T)>>,
}

impl<T: Copy> Known<T> {
    fn new(archive: &OpenArchive) -> Result<Self, Code> {
        let count = archive.table.count();
        let (mut first, mut answers) = (Vec::new(), Vec::new());
        first.try_reserve_exact(count).map_err(no_memory_for_list)?;
        first.extend((0..).take(count));
        answers.try_reserve_exact(count).map_err(no_memory_for_list)?;
        answers.resize(count, None);
        let mut known = Self { first, answers };
        known.join(archive)?;
        Ok(known)
    }

    /// Makes ordinals of one place share an answer. Overlapping places, and more than a blob may have in all,
    /// are refused: a small or sparse file could have many large code objects.
    fn join(&mut self, archive: &OpenArchive) -> Result<(), Code> {
        let mut places = Vec::new();
        places.try_reserve_exact(self.first.len()).map_err(no_memory_for_list)?;
        places.extend(self.first.iter().filter_map(|ordinal| {
            let place = archive.table.stored(*ordinal).ok().filter(|place| place.size > 0)?;
            Some((place.offset, place.size, *ordinal))
        }));
        places.sort_unstable();
        let mut last: Option<(u64, u64, u32)> = None;
        let mut total = 0_u64;
        for (offset, size, ordinal) in places {
            match last {
                Some((before, len, first)) if (before, len) == (offset, size) => {
                    let index = usize::try_from(ordinal).unwrap_or(usize::MAX);
                    self.first.get_mut(index).into_iter().for_each(|slot| *slot = first);
                }
                Some((before, len, other)) if offset < before.saturating_add(len) => {
                    let path = archive.file.path();
                    let why = format_args!("{path}: code objects {other} and {ordinal} overlap");
                    let hint = "; install it again";
                    return Err(report::fail_with_hint(Code::InvalidFormat, why, hint));
                }
                _ => (last, total) = (Some((offset, size, ordinal)), total.saturating_add(size)),
            }
        }
        if total > BLOB_LIMIT {
            let path = archive.file.path();
            let why = format_args!("{path}: its code objects have {total} bytes, above 4 GiB");
            return Err(report::fail(Code::InvalidFormat, why));
        }
        Ok(())
    }

    fn answer(&mut self, ordinal: u32) -> Option<&mut Option<(u64, T)>> {
        let first = *self.first.get(usize::try_from(ordinal).ok()?)?;
        self.answers.get_mut(usize::try_from(first).ok()?)
    }
}

fn no_memory_for_list(_: TryReserveError) -> Code {
    report::refused("a list of code objects")
}

/// Passes each row to `visit`, with the answer of `look` about its code object, until `visit` returns false.
/// Rows of one code object share the answer. Fails at the first row that cannot be loaded.
pub fn each_row<T: Copy>(
    archive: &OpenArchive,
    look: impl Fn(&[u8], &RowName<'_>) -> Result<T, Code>,
    mut visit: impl FnMut(&CStr, &CStr, T) -> bool,
) -> Result<(), Code> {
    let mut known = Known::new(archive)?;
    let keys = archive.table.keys();
    for index in 0..keys.len() {
        let Some((key, shown)) = keys.get(index).zip(keys.get_c(index)) else { continue };
        for (target, row) in archive.table.rows_of(key) {
            let name = RowName { key, target: target.to_bytes() };
            let answer = one(archive, row, &name, &mut known, &look)?;
            if !visit(shown, target, answer) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The answer of `look` about a row's code object, from now or from before.
fn one<T: Copy>(
    archive: &OpenArchive,
    row: Row,
    name: &RowName<'_>,
    known: &mut Known<T>,
    look: impl Fn(&[u8], &RowName<'_>) -> Result<T, Code>,
) -> Result<T, Code> {
    let size = archive.size_of(row, name)?;
    let slot = known.answer(row.ordinal);
    if let Some(Some((known, answer))) = slot.as_deref()
        && *known == size
    {
        return Ok(*answer);
    }
    let answer = look(archive.load_of(row, name)?.bytes(), name)?;
    if let Some(slot) = slot {
        *slot = Some((size, answer));
    }
    Ok(answer)
}
