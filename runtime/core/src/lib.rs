//! The shared code of the libraries of `runtime`: finds and loads code objects in kernel archives.
//!
//! ```text
//! memory      memory that C callers free, lists without locks, pointers of callers, signals (unsafe)
//! cache       loads the best code object of a wrapper; plans of binaries
//! lookup      one lookup of candidate files: finds and opens them
//! candidates  paths of candidate files, settings from the environment
//! archives    open archives, in slots that are emptied while no thread reads
//! archive     one open archive: its table, decompression
//! decoder     idle decoders, and the frames that they read ahead
//! file        one open file: reads that notice changes; the file that is mapped at an address
//! report      the text of the last error in a thread, debug lines, lines for users of devices without kernels
//! ```
//!
//! `rockpack-kpack`, which the packer shares, owns the formats. No function waits for a lock that a `fork` in
//! another thread could leave locked: shared lists are written by atomic exchange, and the locks of
//! slots and of the pool of decoders are only tried. Memory for input is reserved fallibly.

#![deny(unsafe_code)]

pub mod archive;
pub mod archives;
pub mod cache;
pub mod candidates;
pub mod decoder;
pub mod file;
pub mod lookup;
pub mod memory;
pub mod report;
