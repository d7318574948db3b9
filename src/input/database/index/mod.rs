//! What an index says: the archs, operations and files that it names.
//!
//! An index is one MessagePack value, of up to gigabytes, whose shape differs between libraries and
//! versions. It is walked without being kept. Newer libraries compress it (`.dat.zlib`, one zlib
//! stream). The shapes known, from the readers in Tensile, TensileLite and hipBLASLt
//! (`Serialization/PlaceholderLibrary.hpp`, `MasterSolutionLibrary.hpp`, `hipblaslt-ext-op.cpp`),
//! and from Debian's rocBLAS 5.5:
//!
//! | what | shape |
//! |---|---|
//! | library | `{solutions: [solution, …], library: node}` |
//! | library, `format_version` 2 | `{solutions_index: [number, offset, length, …], solutions_blob: bytes, library: node}`: a solution lies at each offset of the bytes |
//! | solution | `{name, problemType: {operationIdentifier, …}, …}` |
//! | node, lazily loaded | `{type: "Placeholder", value: S}`: the library is `S.dat` beside it |
//! | mapping | `{"0": S, "17": S, …}`: from that solution on, up to the next, `S.dat` |
//! | extension operations | `{arch: {operation: [{func_name, co_path, …}]}}` |
//!
//! Any string in it, key or value, may name archs.
//!
//! A `format_version` of 0, 1 or none means the first shape. Refused is what libraries refuse: another
//! version, a solution outside of the bytes, a number of a solution that occurs twice, and what
//! follows the value or the zlib stream; also solutions that share some bytes, which no writer makes.

mod solutions;
mod source;
mod walk;

use std::collections::BTreeSet;
use std::io::{self, Read};

use rockpack_base::content::Content;
use rockpack_base::error::{Error, Result};
use rockpack_base::formats::message_pack_stream::fault;
use rockpack_base::gfx::BaseArch;
use serde::Serialize;

use source::Source;
pub(super) use source::is_zlib;
use walk::Walk;

/// Everything that an index says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct IndexDescription {
    /// The archs that its strings name.
    pub archs: BTreeSet<BaseArch>,
    /// Operations: identifiers of contractions (`Contraction_l_Ailk_Bjlk_Cijk_Dijk`) and names of
    /// extension operations (`LayerNorm`).
    pub operations: BTreeSet<String>,
    /// Number of solutions, that is of kernels with the problems that they solve.
    pub solutions: u64,
    /// File names of code objects (`extop_gfx1100.co`), as they stand in it.
    pub code_object_files: BTreeSet<String>,
    /// Further libraries that are loaded when they are needed, without suffix: each is an index
    /// `<name>.dat` beside this one, with its code objects.
    pub libraries: BTreeSet<String>,
}

/// An index that was read, or why it is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Index {
    /// A description of it.
    Described(IndexDescription),
    /// The reason why it is none that is known.
    Unreadable(String),
}

/// Describes the index; fails if it is none that is known.
pub fn describe_index(content: &Content) -> Result<IndexDescription> {
    match read_index(content)? {
        Index::Described(description) => Ok(description),
        Index::Unreadable(reason) => {
            let message = format!("is no MessagePack index: {reason}");
            Err(Error::malformed(message).structure("kernel index").at(&content.place(0)))
        }
    }
}

/// Reads an index. An error means that the content cannot be read at all.
pub fn read_index(content: &Content) -> Result<Index> {
    match described(content) {
        Ok(description) => Ok(Index::Described(description)),
        // What failed may be the reading of the file rather than its format.
        Err(fault) => match Error::from_io(fault) {
            Ok(error) => Err(error.at(&content.place(0))),
            Err(fault) => Ok(Index::Unreadable(fault.to_string())),
        },
    }
}

/// The bytes of an index, inflated where they are compressed.
pub fn index_bytes(content: &Content) -> Result<impl Read> {
    Source::open(content).map_err(|fault| Error::io_unplaced("read the index", fault))
}

/// Walks the index; a second time if its solutions came before it was known where each lies.
fn described(content: &Content) -> io::Result<IndexDescription> {
    let first = Walk::new(content, None).whole(Source::open(content)?)?;
    match first.solutions_ahead {
        None => Ok(first.description),
        Some(solutions) => {
            let second = Walk::new(content, Some(solutions)).whole(Source::open(content)?)?;
            match second.solutions_ahead {
                None => Ok(second.description),
                Some(_) => Err(fault("it reads otherwise each time")),
            }
        }
    }
}

/// Deepest nesting that is walked. Real indexes nest a few dozen levels; the walk uses the stack.
pub(super) const DEPTH_LIMIT: usize = 256;

#[cfg(test)]
mod tests;
