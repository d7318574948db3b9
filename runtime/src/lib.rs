//! `librocm_kpack.so.0`: finds and loads code objects in kernel archives, for the HIP runtime.
//!
//! ```text
//! abi      C functions: checks arguments, stops panics, hands out memory      (unsafe)
//! memory   memory by malloc, lists without locks, pointers of callers, signals (unsafe)
//! cache    marker, targets in order, the best code object; plans of binaries
//! lookup   one lookup of candidate files, which `candidates` lists: finds and opens them
//! archives open archives, in slots that are emptied while nobody reads
//! archive  one open archive: its table, decompression
//! file     one open file: reads that notice changes; the file that is mapped at an address
//! kernels  names of the kernels in a code object; a walk over all rows of an archive
//! report   the text of the last error in a thread, debug lines, lines for users of devices without kernels
//! ```
//!
//! `rockpack-kpack`, which the packer shares, owns the formats. No function waits for a lock that a `fork` in
//! another thread could leave locked for ever: shared lists are written by atomic exchange, and the locks of
//! slots and of the pool of decoders are only tried. Memory for input is reserved fallibly.

#![deny(unsafe_code)]

mod abi;
mod archive;
mod archives;
mod cache;
mod candidates;
mod file;
mod kernels;
mod lookup;
mod memory;
mod report;

pub use abi::*;
