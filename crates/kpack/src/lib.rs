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
//! Readers here are as lenient as AMD's loader, because a program that works must keep working. The packer
//! does its stricter checks itself.

#![forbid(unsafe_code)]

pub mod archive;
pub mod marker;
pub mod message_pack;
pub mod target;

use std::cmp::Ordering;
use std::collections::TryReserveError;
use std::ffi::CStr;

/// Bytes that can be read at any position: a file, a mapping, a buffer.
pub trait ReadAt {
    type Error;

    /// Number of bytes. It does not change, and readers request nothing beyond it.
    fn len(&self) -> u64;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Self::Error>;
}

/// The error of a range outside a buffer. Readers of this crate never ask for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfRange;

impl ReadAt for [u8] {
    type Error = OutOfRange;

    fn len(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), OutOfRange> {
        let start = usize::try_from(offset).map_err(|_| OutOfRange)?;
        let end = start.checked_add(buffer.len()).ok_or(OutOfRange)?;
        buffer.copy_from_slice(self.get(start..end).ok_or(OutOfRange)?);
        Ok(())
    }
}

/// The result codes of AMD's C interface: the numbers of `kpack_error_t`.
///
/// Source: `rocm_kpack/kpack_types.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i32)]
pub enum Code {
    /// A pointer is NULL, or an index is too high.
    InvalidArgument = 1,
    FileNotFound = 2,
    /// The file is not an archive, by its header, the size of its table or its frames.
    InvalidFormat = 3,
    UnsupportedVersion = 4,
    /// The row does not exist, or refers to no code object.
    KernelNotFound = 5,
    /// A frame is damaged, or differs in length from its row.
    DecompressionFailed = 6,
    OutOfMemory = 7,
    /// The use of archives is switched off.
    NotImplemented = 8,
    /// The file cannot be read, or ends too early.
    Io = 9,
    /// The table of contents is not a MessagePack map, or has a value of the wrong type for a number.
    MsgpackParseFailed = 10,
    /// No file is mapped at an address.
    PathDiscoveryFailed = 11,
    InvalidMetadata = 12,
    /// No archive in a marker can be opened.
    ArchiveNotFound = 13,
    ArchNotFound = 14,
}

/// The error of a refused reservation of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory;

impl From<TryReserveError> for OutOfMemory {
    fn from(_: TryReserveError) -> Self {
        Self
    }
}

/// Implements the conversions by which serde reads and writes a type as its text.
#[macro_export]
macro_rules! as_text {
    ($Type:ty) => {
        impl TryFrom<String> for $Type {
            type Error = <Self as std::str::FromStr>::Err;

            fn try_from(text: String) -> std::result::Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$Type> for String {
            fn from(value: $Type) -> Self {
                value.to_string()
            }
        }
    };
}

/// Appends `item`. Fails if memory is refused.
pub fn push<T>(list: &mut Vec<T>, item: T) -> Result<(), OutOfMemory> {
    list.try_reserve(1)?;
    list.push(item);
    Ok(())
}

/// Expected bytes of a name with its NUL.
const LIKELY: usize = 24;

/// A list of names as bytes, each followed by a NUL for C interfaces.
///
/// A name takes its bytes and 9 more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    bytes: Vec<u8>,
    /// The end of each name, where its NUL is.
    ends: Vec<usize>,
}

impl Names {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        self.bytes.get(self.start(index)..end)
    }

    /// Returns the name with this index as C reads it: up to its first NUL.
    pub fn get_c(&self, index: usize) -> Option<&CStr> {
        let end = *self.ends.get(index)?;
        CStr::from_bytes_until_nul(self.bytes.get(self.start(index)..=end)?).ok()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }

    /// Returns the index of `name` in a sorted list.
    pub(crate) fn binary_search(&self, name: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle)?.cmp(name) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Some(middle),
                Ordering::Greater => high = middle,
            }
        }
        None
    }

    pub(crate) fn reserve(&mut self, count: usize) -> Result<(), OutOfMemory> {
        self.bytes.try_reserve_exact(count.saturating_mul(LIKELY))?;
        Ok(self.ends.try_reserve_exact(count)?)
    }

    pub(crate) fn pop(&mut self) {
        if self.ends.pop().is_some() {
            self.bytes.truncate(self.start(self.len()));
        }
    }

    pub(crate) fn push(&mut self, name: &[u8]) -> Result<(), OutOfMemory> {
        self.bytes.try_reserve(name.len())?;
        self.bytes.extend_from_slice(name);
        self.end()
    }

    /// Ends the name that was appended to `bytes`.
    pub(crate) fn end(&mut self) -> Result<(), OutOfMemory> {
        let end = self.bytes.len();
        push(&mut self.bytes, 0)?;
        push(&mut self.ends, end)
    }

    fn start(&self, index: usize) -> usize {
        let before = index.checked_sub(1).and_then(|before| self.ends.get(before));
        before.map_or(0, |end| end + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_as_they_are_and_end_for_c() {
        let mut names = Names::default();
        for name in [&b"gfx90a"[..], b"", b"a\0b", b"\xff"] {
            names.push(name).unwrap();
        }
        assert_eq!(names.iter().collect::<Vec<_>>(), [&b"gfx90a"[..], b"", b"a\0b", b"\xff"]);
        let in_c: Vec<&[u8]> = (0..4).map(|n| names.get_c(n).unwrap().to_bytes()).collect();
        assert_eq!(in_c, [&b"gfx90a"[..], b"", b"a", b"\xff"]);
        assert_eq!((names.get(4), names.get_c(4)), (None, None));
    }
}
