//! The names of the kernels in a code object.
//!
//! Source: the AMDGPU chapter of LLVM's user guide, "Code Object Metadata": the note `AMDGPU` of type
//! 32 is a MessagePack map, whose array `amdhsa.kernels` has a map with `.name` for each kernel.

use std::convert::Infallible;

use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, ProgramHeader};
use rockpack_kpack::message_pack::{Decoder, Fault, Item};
use rockpack_kpack::{Code, Names};

use crate::report;

/// The names of the kernels in `code_object`; none where it has no note of them.
pub fn names(code_object: &[u8]) -> Result<Names, Code> {
    match metadata(code_object).map(decoded) {
        None => Ok(Names::default()),
        Some(Ok(names)) => Ok(names),
        Some(Err(Fault::OutOfMemory)) => Err(report::refused("the names of kernels")),
        Some(Err(_)) => Err(report::fail(
            Code::InvalidMetadata,
            format_args!("the note AMDGPU of the code object is no MessagePack map of kernels"),
        )),
    }
}

/// The type of the note, which LLVM calls `NT_AMDGPU_METADATA`.
const METADATA: object::elf::NoteType = object::elf::NoteType(32);

/// The description of the note.
fn metadata(code_object: &[u8]) -> Option<&[u8]> {
    let header = FileHeader64::<LittleEndian>::parse(code_object).ok()?;
    let endian = header.endian().ok()?;
    for segment in header.program_headers(endian, code_object).ok()? {
        let Ok(Some(mut notes)) = segment.notes(endian, code_object) else { continue };
        while let Ok(Some(note)) = notes.next() {
            if note.name() == b"AMDGPU" && note.n_type(endian) == METADATA {
                return Some(note.desc());
            }
        }
    }
    None
}

#[derive(Clone, Copy)]
struct Wanted;

fn decoded(metadata: &[u8]) -> Result<Names, Fault<Infallible>> {
    let mut decoder = Decoder::new(metadata);
    let mut names = Names::default();
    let Item::Map(pairs) = decoder.item()? else { return Err(Fault::Invalid(0)) };
    for _ in 0..pairs {
        if decoder.one_of(&[("amdhsa.kernels", Wanted)])?.is_none() {
            decoder.skip()?;
            continue;
        }
        match decoder.item()? {
            Item::Array(kernels) => {
                for _ in 0..kernels {
                    kernel(&mut decoder, &mut names)?;
                }
            }
            other => decoder.skip_rest_of(other)?,
        }
    }
    Ok(names)
}

fn kernel(decoder: &mut Decoder<&[u8]>, names: &mut Names) -> Result<(), Fault<Infallible>> {
    let pairs = match decoder.item()? {
        Item::Map(pairs) => pairs,
        other => return decoder.skip_rest_of(other),
    };
    for _ in 0..pairs {
        match decoder.one_of(&[(".name", Wanted)])? {
            Some(Wanted) => decoder.append_name(names)?,
            None => decoder.skip()?,
        }
    }
    Ok(())
}
