//! The position of the central headers; numbers in headers, and errors about them.

use std::ops::Range;

use super::{END, END_64, END_64_SIZE, END_SIZE, LOCATOR_64, LOCATOR_64_SIZE};
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};

/// The longest comment that an end record can have, in bytes.
const COMMENT_MAX: u64 = 0xffff;

/// The numbers of an end record: its disk, the disk of the first central header, the members on this disk and
/// on all, the bytes of the central headers, and their offset.
type Numbers = [u64; 6];

/// The values of an end record that refer to the ZIP64 end record.
const IN_ZIP64: Numbers = [0xffff, 0xffff, 0xffff, 0xffff, 0xffff_ffff, 0xffff_ffff];

/// Finds the position and the number of the central headers through the end records.
pub(super) fn directory(archive: &Content) -> Result<(Range<u64>, u64)> {
    let end = find_end(archive)?;
    let record: [u8; END_SIZE] = archive.read_array(end)?;
    let mut fields = Fields::new(&record[4..]);
    let [disk, start_disk, here, count] = [(); 4].map(|()| u64::from(fields.u16()));
    let [size, offset] = [(); 2].map(|()| u64::from(fields.u32()));
    let narrow = [disk, start_disk, here, count, size, offset];
    let locator = end.checked_sub(LOCATOR_64_SIZE as u64);
    let (end, numbers) = match locator {
        Some(at) if archive.read_array::<4>(at)? == LOCATOR_64.to_le_bytes() => {
            let (at, wide) = numbers_64(archive, at)?;
            let mut pairs = narrow.iter().zip(&wide).zip(&IN_ZIP64);
            if !pairs.all(|((own, wide), elsewhere)| own == wide || own == elsewhere) {
                return Err(fault(archive, "end record", end, "contradicts the ZIP64 end record"));
            }
            (at, wide)
        }
        _ => (end, narrow),
    };
    let [disk, start_disk, here, count, size, offset] = numbers;
    if disk != 0 || start_disk != 0 || here != count {
        return Err(several_disks(archive, end));
    }
    if offset.checked_add(size) != Some(end) {
        let message = "says that the central headers end elsewhere than in front of it";
        let error = fault(archive, "end record", end, message);
        return Err(error.hint("the archive is truncated, or has other bytes before it"));
    }
    Ok((offset..end, count))
}

/// The offset and the numbers of the ZIP64 end record whose locator is at `locator`.
fn numbers_64(archive: &Content, locator: u64) -> Result<(u64, Numbers)> {
    let found: [u8; LOCATOR_64_SIZE] = archive.read_array(locator)?;
    let mut fields = Fields::new(&found[4..]);
    let (disk, at, disks) = (fields.u32(), fields.u64(), fields.u32());
    if disk != 0 || disks > 1 {
        return Err(several_disks(archive, locator));
    }
    if at.checked_add(END_64_SIZE as u64) != Some(locator) {
        let message = "does not lead to a ZIP64 end record right in front of it";
        return Err(fault(archive, "ZIP64 locator", locator, message));
    }
    let record: [u8; END_64_SIZE] = archive.read_array(at)?;
    let mut fields = Fields::new(&record);
    let (magic, size) = (fields.u32(), fields.u64());
    if magic != END_64 || size != END_64_SIZE as u64 - 12 {
        return Err(fault(archive, "ZIP64 end record", at, "does not begin with its signature"));
    }
    fields.skip(4);
    let [disk, start_disk] = [(); 2].map(|()| u64::from(fields.u32()));
    let [here, count, size, offset] = [(); 4].map(|()| fields.u64());
    Ok((at, [disk, start_disk, here, count, size, offset]))
}

fn find_end(archive: &Content) -> Result<u64> {
    let last = archive.len().checked_sub(END_SIZE as u64).ok_or_else(|| no_end_record(archive))?;
    let first = last.saturating_sub(COMMENT_MAX);
    let tail =
        archive.read_vec(first..archive.len(), END_SIZE as u64 + COMMENT_MAX, "end record")?;
    let starts = (0..=usize::try_from(last - first).unwrap_or_default()).rev();
    let Some(found) = starts.clone().find(|at| is_end(&tail, *at)) else {
        let magic = END.to_le_bytes();
        let has_magic = |at: &usize| tail.get(*at..at + 4).is_some_and(|it| it == magic);
        let Some(at) = starts.clone().find(has_magic) else {
            return Err(no_end_record(archive));
        };
        let message = "has bytes after its end record, or a truncated comment";
        return Err(fault(archive, "end record", first + at as u64, message));
    };
    if tail.get(found + END_SIZE..).is_some_and(has_records) {
        return Err(fault(archive, "end record", first + found as u64, IN_COMMENT));
    }
    Ok(first + found as u64)
}

/// Whether an end record begins at `at`, whose comment reaches to the end.
fn is_end(tail: &[u8], at: usize) -> bool {
    let Some(record) = tail.get(at..at + END_SIZE) else { return false };
    let mut fields = Fields::new(record);
    let magic = fields.u32();
    fields.skip(16);
    magic == END && usize::from(fields.u16()) + at + END_SIZE == tail.len()
}

fn no_end_record(archive: &Content) -> Error {
    let error = Error::malformed("has no end record of a ZIP archive").structure("end record");
    error.at(&archive.place(0)).hint("it is not a ZIP archive, or the copy is incomplete")
}

/// A reader of consecutive numbers; zero after the last byte.
pub(super) struct Fields<'a> {
    pub(super) bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.bytes.split_at_checked(len)?;
        self.bytes = left;
        Some(taken)
    }

    pub fn skip(&mut self, len: usize) {
        self.take(len);
    }

    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        self.take(N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }
}

/// The message for a comment that [`has_records`].
pub(super) const IN_COMMENT: &str = "has a comment that readers may take for a part of the archive";

/// Whether a comment has the signature of a record in it. Some readers search for these.
pub(super) fn has_records(comment: &[u8]) -> bool {
    comment.windows(3).any(|start| matches!(start, [b'P', b'K', 0..=8]))
}

pub(super) fn several_disks(archive: &Content, at: u64) -> Error {
    let error = Error::unsupported("is one of several disks of an archive");
    error.structure("end record").at(&archive.place(at))
}

pub(super) fn fault(
    archive: &Content,
    structure: &str,
    at: u64,
    message: impl Into<String>,
) -> Error {
    Error::malformed(message).structure(structure).at(&archive.place(at))
}
