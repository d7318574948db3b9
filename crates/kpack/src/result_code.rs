//! Results of the C interface.

use std::collections::TryReserveError;
use std::fmt;

/// What a fault is to the callers of AMD's C interface: the numbers of `kpack_error_t`.
///
/// Source: `rocm_kpack/kpack_types.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i32)]
pub enum Code {
    /// A pointer is NULL, or an index too high.
    InvalidArgument = 1,
    /// There is no file of that name.
    FileNotFound = 2,
    /// No archive: its header, or the table of its frames.
    InvalidFormat = 3,
    /// An archive of a later version.
    UnsupportedVersion = 4,
    /// No row, or a row of a code object that is not there.
    KernelNotFound = 5,
    /// A frame is damaged, or not as long as its row says.
    DecompressionFailed = 6,
    /// Memory was refused.
    OutOfMemory = 7,
    /// Archives are switched off.
    NotImplemented = 8,
    /// The file cannot be read, or ends too early.
    Io = 9,
    /// The table of contents is no MessagePack map, or has a number that is none.
    MsgpackParseFailed = 10,
    /// No file is mapped at an address.
    PathDiscoveryFailed = 11,
    /// The marker of a binary is none.
    InvalidMetadata = 12,
    /// None of the archives that a marker names can be opened.
    ArchiveNotFound = 13,
    /// None of the archives answers for the device.
    ArchNotFound = 14,
}

impl Code {
    /// Its number.
    pub const fn number(self) -> i32 {
        // The discriminants are the definition.
        self as i32
    }
}

/// Memory was refused.
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

/// Appends `item`, if there is memory for it.
pub(crate) fn push<T>(list: &mut Vec<T>, item: T) -> Result<(), OutOfMemory> {
    list.try_reserve(1)?;
    list.push(item);
    Ok(())
}
