//! `librocm_kpack.so.0`: finds and loads code objects in kernel archives, for the HIP runtime.
//!
//! ```text
//! abi      C functions: checks arguments, stops panics, hands out memory      (unsafe)
//! memory   memory by malloc, lists without locks, pointers of callers, signals (unsafe)
//! cache    marker, targets in order, the code object that fits; plans of binaries
//! lookup   candidate files: which there are, and which of them open
//! archives archives that stay open, by slots that are emptied while nobody reads
//! archive  one open file: its table, reads that notice changes, decompression
//! rows     a walk over all rows of an archive
//! kernels  names of the kernels in a code object
//! maps     the file that is mapped at an address
//! missing  lines for users of devices without kernels
//! report   the text of the last error in a thread, debug lines, lines for users
//! ```
//!
//! Formats stand in `rockpack-kpack`, which the packer shares. No function waits for a lock that a `fork`
//! in another thread could leave locked for ever: shared lists are written by atomic exchange, and
//! the locks of slots and of the pool of decoders are only tried. What input asks for is reserved
//! fallibly.

#![deny(unsafe_code)]

mod abi;
mod archive;
mod archives;
mod cache;
mod candidates;
mod decoders;
mod environment;
mod file;
mod kernels;
mod lookup;
mod maps;
mod memory;
mod missing;
mod report;
mod rows;
mod slot;

pub use abi::*;
