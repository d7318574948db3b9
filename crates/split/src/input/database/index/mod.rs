//! The content of an index: the archs, operations and files that it names.
//!
//! An index is one MessagePack value, of up to gigabytes, whose shape differs between libraries and versions.
//! The walk over it keeps only the names. Newer libraries compress it (`.dat.zlib`, one zlib stream). The
//! known shapes, from the readers in Tensile, TensileLite and hipBLASLt
//! (`Serialization/PlaceholderLibrary.hpp`, `MasterSolutionLibrary.hpp`, `hipblaslt-ext-op.cpp`), and from
//! Debian's rocBLAS 5.5:
//!
//! | what | shape |
//! |---|---|
//! | library | `{solutions: [solution, …], library: node}` |
//! | library, `format_version` 2 | `{solutions_index: [number, offset, length, …], solutions_blob: bytes, library: node}`: a solution lies at each offset of the bytes |
//! | solution | `{name, problemType: {operationIdentifier, …}, …}` |
//! | node, lazily loaded | `{type: "Placeholder", value: S}`: the library is `S.dat` next to it |
//! | mapping | `{"0": S, "17": S, …}`: from that solution on, up to the next, `S.dat` |
//! | extension operations | `{arch: {operation: [{func_name, co_path, …}]}}` |
//!
//! Any string in it, key or value, may name archs.
//!
//! A `format_version` of 0 or 1, or its absence, means the first shape. The reader refuses what libraries
//! refuse: another version, a solution outside of the bytes, a solution number that occurs twice, and bytes
//! after the value or the zlib stream. It also refuses overlapping solutions, which no writer produces.

mod walk;

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;

use flate2::bufread::ZlibDecoder;
use rockpack_core::content::{Content, ContentReader, WINDOW};
use rockpack_core::error::{Error, Result};
use rockpack_core::gfx::BaseArch;
use rockpack_core::run::{Budget, interrupt};
use rockpack_elf::message_pack_stream::{Skip, Token, TokenReader, fault};
use serde::{Deserialize, Serialize};

use walk::Walk;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexDescription {
    /// The archs in its strings.
    pub archs: BTreeSet<BaseArch>,
    /// The operations: identifiers of contractions (`Contraction_l_Ailk_Bjlk_Cijk_Dijk`) and names of
    /// extension operations (`LayerNorm`).
    pub operations: BTreeSet<String>,
    /// The number of solutions, which are kernels with the problems that they solve.
    pub solutions: u64,
    /// The file names of code objects as written, e.g. `extop_gfx1100.co`.
    pub code_object_files: BTreeSet<String>,
    /// Further libraries that are loaded when needed, without suffix: each is an index `<name>.dat` next to
    /// this one, with its own code objects.
    pub libraries: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Index {
    Described(IndexDescription),
    /// The reason why the file is not a known index.
    Unreadable(String),
}

/// Describes an index; fails if the file is not a known index.
pub fn describe_index(content: &Content) -> Result<IndexDescription> {
    match read_index(content)? {
        Index::Described(description) => Ok(description),
        Index::Unreadable(reason) => {
            let message = format!("is not a MessagePack index: {reason}");
            Err(Error::malformed(message).structure("kernel index").at(&content.place(0)))
        }
    }
}

/// Reads an index. Fails if the content cannot be read at all.
pub fn read_index(content: &Content) -> Result<Index> {
    match described(content) {
        Ok(description) => Ok(Index::Described(description)),
        // The failure may be a read error of the file rather than a fault of its format.
        Err(fault) => match Error::from_io(fault) {
            Ok(error) => Err(error.at(&content.place(0))),
            Err(fault) => Ok(Index::Unreadable(fault.to_string())),
        },
    }
}

/// The bytes of an index, inflated if it is compressed.
pub fn index_bytes(content: &Content) -> Result<impl Read> {
    Source::open(content).map_err(|fault| Error::io_without_path("read the index", fault))
}

/// Walks the index, and a second time if the solutions precede the list of their offsets.
fn described(content: &Content) -> io::Result<IndexDescription> {
    let mut solutions = None;
    for _ in 0..2 {
        let (description, ahead) = Walk::new(content, solutions).whole(Source::open(content)?)?;
        if ahead.is_none() {
            return Ok(description);
        }
        solutions = ahead;
    }
    Err(fault("its content differs between two reads"))
}

/// Deepest nesting that is walked. Real indexes nest a few dozen levels; the walk uses the stack.
pub(super) const DEPTH_LIMIT: usize = 256;

/// Limit on bytes of an inflated index. The longest MessagePack values have less, and the largest known index has
/// a tenth of it.
const INFLATED_LIMIT: u64 = 4 << 30;

enum Source {
    Plain(BufReader<ContentReader>),
    Inflated(BufReader<Inflated>),
}

impl Source {
    fn open(content: &Content) -> io::Result<Self> {
        let reader = BufReader::with_capacity(WINDOW, content.reader());
        Ok(if is_zlib(content)? {
            let inflated = Inflated { decoder: ZlibDecoder::new(reader) };
            Self::Inflated(BufReader::with_capacity(WINDOW, inflated))
        } else {
            Self::Plain(reader)
        })
    }

    /// Fails unless everything was read.
    fn end(self) -> io::Result<()> {
        match self {
            Self::Plain(mut reader) => refuse_more(&mut reader, "its value"),
            Self::Inflated(mut reader) => {
                refuse_more(&mut reader, "its value")?;
                // Libraries refuse such a file.
                refuse_more(&mut reader.into_inner().decoder.into_inner(), "its zlib stream")
            }
        }
    }
}

fn refuse_more(reader: &mut impl BufRead, what: &str) -> io::Result<()> {
    if reader.fill_buf()?.is_empty() { Ok(()) } else { Err(fault(format!("bytes follow {what}"))) }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(reader) => reader.read(buffer),
            Self::Inflated(reader) => reader.read(buffer),
        }
    }

    // Millions of numbers and texts are read: a reader with a buffer copies them in one step.
    fn read_exact(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Plain(reader) => reader.read_exact(buffer),
            Self::Inflated(reader) => reader.read_exact(buffer),
        }
    }
}

impl Skip for Source {
    fn skip(&mut self, len: u64) -> io::Result<()> {
        match self {
            Self::Plain(reader) => reader.skip(len),
            Self::Inflated(reader) => match io::copy(&mut reader.take(len), &mut io::sink())? {
                copied if copied == len => Ok(()),
                _ => Err(io::ErrorKind::UnexpectedEof.into()),
            },
        }
    }
}

struct Inflated {
    decoder: ZlibDecoder<BufReader<ContentReader>>,
}

impl Read for Inflated {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // A few bytes of a file may inflate to very many.
        interrupt::check()?;
        let len = self.decoder.read(buffer)?;
        if self.decoder.total_out() > INFLATED_LIMIT {
            return Err(fault(format!("it inflates to more than {INFLATED_LIMIT} bytes")));
        }
        Ok(len)
    }
}

/// Whether the content starts with the header of a zlib stream. As MessagePack, its first byte would be
/// a single number.
pub fn is_zlib(content: &Content) -> Result<bool> {
    if content.len() < 2 {
        return Ok(false);
    }
    let header: [u8; 2] = content.read_array(0)?;
    Ok(header[0] == 0x78 && u16::from_be_bytes(header).is_multiple_of(31))
}

/// The places of the solutions of a library, the value of `solutions_index`, in the order of the list.
#[derive(Debug, Default)]
struct LocatedSolutions(Vec<LocatedSolution>);

/// The place of one solution. Its bounds have 32 bits, because all solutions are within one MessagePack
/// value.
#[derive(Debug, Clone, Copy)]
struct LocatedSolution {
    number: u32,
    offset: u32,
    len: u32,
}

impl LocatedSolution {
    fn range(&self) -> Range<u64> {
        u64::from(self.offset)..u64::from(self.offset) + u64::from(self.len)
    }
}

impl LocatedSolutions {
    /// Reads an array of `len` integers: number, offset and length of each solution.
    fn read(tokens: &mut TokenReader<impl Skip>, len: u32, budget: &Budget) -> io::Result<Self> {
        if !len.is_multiple_of(3) {
            return Err(fault(format!("solutions_index has {len} values, not a multiple of 3")));
        }
        let mut places = Vec::new();
        for at in 0..len / 3 {
            let [number, offset, len] = [integer(tokens)?, integer(tokens)?, integer(tokens)?];
            let known = i32::try_from(number).ok().and_then(|number| u32::try_from(number).ok());
            let (Some(number), Ok(offset), Ok(len)) =
                (known, u32::try_from(offset), u32::try_from(len))
            else {
                return Err(fault(format!(
                    "entry {at} of solutions_index, solution {number} of {len} bytes at {offset}, \
                     has a value out of bounds"
                )));
            };
            if places.len() == places.capacity() {
                grow(&mut places, budget)?;
            }
            places.push(LocatedSolution { number, offset, len });
        }
        Ok(Self(places))
    }

    /// The places in the order of their offsets in `len` bytes, deduplicated. Refuses, as libraries do, a place that
    /// ends outside of these, and a number that occurs twice.
    fn sorted_ranges(mut self, len: u32) -> io::Result<impl Iterator<Item = Range<u64>>> {
        if let Some(place) = self.0.iter().find(|place| place.range().end > len.into()) {
            let LocatedSolution { number, offset, len: own } = place;
            return Err(fault(format!(
                "solution {number}, of {own} bytes at {offset}, ends outside of the {len} bytes of \
                 solutions_blob"
            )));
        }
        self.0.sort_unstable_by_key(|place| place.number);
        if let Some(pair) = self.0.windows(2).find(|pair| pair[0].number == pair[1].number) {
            return Err(fault(format!("solutions_index has solution {} twice", pair[0].number)));
        }
        self.0.sort_unstable_by_key(|place| (place.offset, place.len));
        self.0.dedup_by_key(|place| (place.offset, place.len));
        match self.0.windows(2).find(|pair| pair[1].range().start < pair[0].range().end) {
            None => Ok(self.0.into_iter().map(|place| place.range())),
            Some(pair) => Err(fault(format!(
                "the solutions at {} and {} of solutions_blob share bytes",
                pair[0].offset, pair[1].offset
            ))),
        }
    }
}

fn integer(tokens: &mut TokenReader<impl Skip>) -> io::Result<i128> {
    match tokens.token()? {
        Token::Integer(number) => Ok(number),
        _ => Err(fault("solutions_index has values other than integers")),
    }
}

/// Doubles the room, if the memory of the run allows it.
fn grow(places: &mut Vec<LocatedSolution>, budget: &Budget) -> io::Result<()> {
    let more = places.len().max(1 << 10);
    // While the list grows, old and new memory exist at once.
    let bytes = (places.len() + more) * size_of::<LocatedSolution>() * 2;
    budget.check_structure(bytes as u64, "the solutions_index of a kernel index")?;
    places.try_reserve_exact(more).map_err(|_| io::ErrorKind::OutOfMemory)?;
    Ok(())
}

#[cfg(test)]
mod tests;
