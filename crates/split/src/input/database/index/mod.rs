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
//! | node, lazily loaded | `{type: "Placeholder", value: S}`: the library is `S.dat` beside it |
//! | mapping | `{"0": S, "17": S, …}`: from that solution on, up to the next, `S.dat` |
//! | extension operations | `{arch: {operation: [{func_name, co_path, …}]}}` |
//!
//! Any string in it, key or value, may name archs.
//!
//! A `format_version` of 0 or 1, or its absence, means the first shape. The reader refuses what libraries
//! refuse: another version, a solution outside of the bytes, a solution number that occurs twice, and bytes
//! behind the value or the zlib stream. It also refuses overlapping solutions, which no writer makes.

mod solutions;
mod source;
mod walk;

use std::collections::BTreeSet;
use std::io::{self, Read};

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};
use rockpack_core::gfx::BaseArch;
use rockpack_elf::message_pack_stream::fault;
use serde::{Deserialize, Serialize};

use source::Source;
pub use source::is_zlib;
use walk::Walk;

/// A summary of an index.
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
    /// Further libraries that are loaded when needed, without suffix: each is an index `<name>.dat` beside
    /// this one, with its own code objects.
    pub libraries: BTreeSet<String>,
}

/// The result of reading an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Index {
    /// The description of a known index.
    Described(IndexDescription),
    /// The reason why the file is no known index.
    Unreadable(String),
}

/// Describes an index; fails if the file is no known index.
pub fn describe_index(content: &Content) -> Result<IndexDescription> {
    match read_index(content)? {
        Index::Described(description) => Ok(description),
        Index::Unreadable(reason) => {
            let message = format!("is no MessagePack index: {reason}");
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
    Source::open(content).map_err(|fault| Error::io_unplaced("read the index", fault))
}

/// Walks the index; a second time if the solutions precede the list of their places.
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
