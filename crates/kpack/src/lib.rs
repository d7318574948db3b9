//! The parts of kernel archives that a GPU runtime needs: targets, markers, and the archives themselves.
//!
//! ```text
//! host binary ─ marker ─► kernel_name, search paths ─┐
//! device      ─ target ─► compatible targets ────────┴─► archive: row ─► place of the code object
//! ```
//!
//! The packer and the runtime share it, so each name, number and rule is defined once. It owns bytes ↔
//! values and no policy: it opens no file, reads no environment, decompresses nothing, and knows nothing of
//! packages. A size in a file is checked against the file's length before memory is reserved for it.
//! Reservations can fail and return errors. No input makes it panic.
//!
//! Readers here are as lenient as AMD's loader, because a program that runs must go on running. The packer
//! does its stricter checks itself.

#![forbid(unsafe_code)]

pub mod archive;
pub mod marker;
pub mod message_pack;
mod names;
mod result_code;
pub mod target;

pub use names::Names;
pub use result_code::{Code, OutOfMemory};

/// Bytes that can be read at any position: a file, a mapping, a buffer.
pub trait ReadAt {
    /// The error of a failed read.
    type Error;

    /// Number of bytes. It does not change, and readers ask for nothing behind it.
    fn len(&self) -> u64;

    /// Tells whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buffer` from `offset` on.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Self::Error>;
}

/// The error of a range outside a buffer. Readers of this crate never ask for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outside;

impl ReadAt for [u8] {
    type Error = Outside;

    fn len(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Outside> {
        let start = usize::try_from(offset).map_err(|_| Outside)?;
        let end = start.checked_add(buffer.len()).ok_or(Outside)?;
        buffer.copy_from_slice(self.get(start..end).ok_or(Outside)?);
        Ok(())
    }
}
