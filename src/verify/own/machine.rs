//! The machines that a file has code for, by its ELF header, or by those of the members of a static
//! archive, in one pass.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::ops::Range;

use rockpack_base::content::DigestingReader;
use rockpack_base::error::Result;
use rockpack_base::formats::hold::fault;
use sha2::Sha256;

use super::digest::Sha;
use crate::report::ElfMachine;

/// The first bytes of a static archive.
const ARCHIVE_MAGIC: &[u8] = b"!<arch>\n";
/// The first bytes of a thin static archive, which has only the headers of its members.
const THIN_MAGIC: &[u8] = b"!<thin>\n";
/// Bytes of a member's header. The size of the member is in ten digits from 48 on.
const MEMBER_HEADER: u64 = 60;
/// Bytes of an ELF header up to and including `e_machine`.
const IDENTIFICATION: u64 = 20;

/// Facts that bind an ELF file or a static archive to other machines.
#[derive(Debug, Default)]
pub(in crate::verify) struct ForeignFacts {
    /// The machines of the file or its members that packages are not for.
    pub(in crate::verify) machines: BTreeSet<ElfMachine>,
    /// Tells whether the file or a member is a thin static archive, whose objects are only on the machine that
    /// made it.
    pub(in crate::verify) is_thin: bool,
}

/// The machine of the ELF file that begins with `head`; `None` if packages are for it.
pub(in crate::verify) fn other_machine(head: &[u8]) -> Option<ElfMachine> {
    let [class, data, low, high] = [4, 5, 18, 19].map(|at| head.get(at).copied());
    let machine = ElfMachine::new(class?, data?, [low?, high?])?;
    (head.starts_with(b"\x7fELF") && !machine.is_packaged()).then_some(machine)
}

/// Whether a file that begins with `head` is a static archive.
pub(in crate::verify) fn is_library(head: &[u8]) -> bool {
    [ARCHIVE_MAGIC, THIN_MAGIC].iter().any(|magic| head.starts_with(magic))
}

/// The digest of the static archive in `reader`, and its foreign facts.
pub(in crate::verify) fn library(reader: &mut dyn Read) -> Result<(Sha, ForeignFacts)> {
    let mut digesting = DigestingReader::<_, Sha256>::new(reader);
    let foreign = match front(&mut digesting, THIN_MAGIC.len() as u64)? == THIN_MAGIC {
        true => ForeignFacts { is_thin: true, ..ForeignFacts::default() },
        false => of_members(&mut digesting)?,
    };
    io::copy(&mut digesting, &mut io::sink()).map_err(fault)?;
    Ok((sha2::Digest::finalize(digesting.digest).into(), foreign))
}

/// Reads the foreign facts of the members, up to the first bytes that are no member.
fn of_members(reader: &mut dyn Read) -> Result<ForeignFacts> {
    let mut foreign = ForeignFacts::default();
    loop {
        let header = front(reader, MEMBER_HEADER)?;
        let Some(size) = number(&header, 48..58) else { return Ok(foreign) };
        // Long names in BSD's form precede the content of the member.
        let stated = header.starts_with(b"#1/").then(|| number(&header, 3..16)).flatten();
        let name = stated.filter(|name| *name <= size).unwrap_or(0);
        skip(reader, name)?;
        let head = front(reader, IDENTIFICATION.min(size - name))?;
        foreign.machines.extend(other_machine(&head));
        foreign.is_thin |= head.starts_with(THIN_MAGIC);
        // Members are padded to even lengths.
        skip(reader, (size - name - head.len() as u64).saturating_add(size % 2))?;
    }
}

/// The number that a member's header has there.
fn number(header: &[u8], range: Range<usize>) -> Option<u64> {
    std::str::from_utf8(header.get(range)?).ok()?.trim_end().parse().ok()
}

/// The next `len` bytes, or as many as are left.
fn front(reader: &mut dyn Read, len: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(len).read_to_end(&mut bytes).map_err(fault)?;
    Ok(bytes)
}

fn skip(reader: &mut dyn Read, len: u64) -> Result<()> {
    io::copy(&mut reader.take(len), &mut io::sink()).map_err(fault).map(drop)
}
