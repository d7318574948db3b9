//! ZIP archives, the container of wheels.
//!
//! ```text
//! per member   local header: 30 bytes, name, extra fields; then its bytes
//!    0  4  "PK\3\4"                          14  4  CRC-32
//!    4  2  version needed                    18  4  compressed size
//!    6  2  flags                             22  4  size
//!    8  2  method                            26  2  length of the name
//!   10  4  time and date of MS-DOS           28  2  length of the extra fields
//! per member   central header: 46 bytes, name, extra fields, comment
//!    0  4  "PK\1\2"                          28  2  length of the name
//!    4  2  version made by                   30  2  length of the extra fields
//!          (upper byte: 3 is Unix)           32  2  length of the comment
//!    6  22 bytes 4 to 26 of the local one    34  2  disk
//!                                            38  4  attributes (upper half: the mode of Unix, which
//!                                                  pip takes whatever the upper byte is)
//!                                            42  4  offset of the local header
//! ZIP64 end record ("PK\6\6", 56 bytes) and its locator ("PK\6\7", 20 bytes), where a field of the
//! end record is all ones
//! end record   22 bytes ("PK\5\6") and a comment, up to the last byte of the archive
//!    8  2  members on this disk              12  4  size of the central headers
//!   10  2  members                           16  4  offset of the central headers
//! data descriptor, after the bytes of members with flag 3: "PK\7\8" or nothing, CRC-32, compressed size
//!              and size; 8 bytes each if the local header has ZIP64 sizes
//! extra field  2 bytes id, 2 bytes length, bytes; 0x0001 has, 8 bytes each and in this order,
//!              the size, compressed size and offset whose header field is all ones
//! ```
//!
//! Numbers are little-endian. Source: PKWARE's APPNOTE 6.3.10, and the rules of pip, uv and PyPI. The `zip`
//! crate either writes sizes in data descriptors after the data or reads members into memory, and accepts
//! archives that readers interpret in two ways. So this module frames archives itself; flate2 compresses.
//!
//! The central headers are read, and everything else has to agree with them: an archive is local headers with
//! bytes and data descriptors, central headers, end records, and nothing between. Refused: encryption,
//! patches, methods other than stored and deflate, versions above 6.3, several disks, a path twice or below a
//! file, local headers, data descriptors and ZIP64 numbers that contradict others or that no field refers to,
//! members that overlap, any other bytes, comments with a signature in them, an extra field twice or with a
//! name, and names that are no plain paths of visible characters, in UTF-8 by their flag. uv 0.13, pip or PyPI
//! refuse almost all of these. Not written: data descriptors, comments, and ZIP64 fields unless a header field
//! is all ones.

mod deflate;
mod directory;
mod headers;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::{MemberReader, ZipMember, ZipReader, deflated};
pub use write::{DosTime, WrittenMember, ZipWriter};

/// The first bytes of an archive with members.
pub const MAGIC: [u8; 4] = LOCAL.to_le_bytes();

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
/// The first bytes of the locator of the ZIP64 end record.
const LOCATOR_64: u32 = 0x0706_4b50;

/// Bytes of a local header without name and extra fields.
const LOCAL_SIZE: usize = 30;
/// Bytes of a central header without name, extra fields and comment.
const CENTRAL_SIZE: usize = 46;
/// Bytes of an end record without its comment.
const END_SIZE: usize = 22;
const END_64_SIZE: usize = 56;
const LOCATOR_64_SIZE: usize = 20;

/// The extra field with ZIP64 numbers.
const EXTRA_ZIP64: u16 = 0x0001;

/// The flag of names in UTF-8.
const FLAG_UTF8: u16 = 1 << 11;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Method {
    /// Bytes stored without compression.
    Stored = 0,
    /// Bytes compressed by deflate.
    Deflated = 8,
}
