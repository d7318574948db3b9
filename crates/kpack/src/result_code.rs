//! The results of the C interface.

use std::collections::TryReserveError;
use std::fmt;

/// The result codes of AMD's C interface: the numbers of `kpack_error_t`.
///
/// Source: `rocm_kpack/kpack_types.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i32)]
pub enum Code {
    /// A pointer is NULL, or an index is too high.
    InvalidArgument = 1,
    /// No file has this name.
    FileNotFound = 2,
    /// The file is no archive, by its header, the size of its table or its frames.
    InvalidFormat = 3,
    /// The archive has a later version.
    UnsupportedVersion = 4,
    /// The row does not exist, or refers to no code object.
    KernelNotFound = 5,
    /// A frame is damaged, or differs in length from its row.
    DecompressionFailed = 6,
    /// Memory was refused.
    OutOfMemory = 7,
    /// The use of archives is switched off.
    NotImplemented = 8,
    /// The file cannot be read, or ends too early.
    Io = 9,
    /// The table of contents is no MessagePack map, or has a value of the wrong type for a number.
    MsgpackParseFailed = 10,
    /// No file is mapped at an address.
    PathDiscoveryFailed = 11,
    /// The marker of a binary is invalid.
    InvalidMetadata = 12,
    /// No archive in a marker can be opened.
    ArchiveNotFound = 13,
    /// No archive has code for the device.
    ArchNotFound = 14,
}

impl Code {
    /// The number of the code.
    pub const fn number(self) -> i32 {
        // The discriminants are the definition.
        self as i32
    }
}

/// The error of a refused reservation of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory;

impl From<TryReserveError> for OutOfMemory {
    fn from(_: TryReserveError) -> Self {
        Self
    }
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("memory was refused")
    }
}

impl std::error::Error for OutOfMemory {}

/// Appends `item`. Fails if memory is refused.
pub(crate) fn push<T>(list: &mut Vec<T>, item: T) -> Result<(), OutOfMemory> {
    list.try_reserve(1)?;
    list.push(item);
    Ok(())
}
