//! Tables of records and single words inside a file, read through small windows.

use std::marker::PhantomData;

use object::pod;

use super::record::Record;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};

/// Bytes that are read together: large enough that a table costs few system calls, small enough that a tool
/// may hold a hundred files open.
const WINDOW: u64 = 48 << 10;

/// A run of records inside a file.
#[derive(Debug, Clone)]
pub struct RecordTable<T> {
    content: Content,
    start: u64,
    records: PhantomData<T>,
}

impl<T: Record> RecordTable<T> {
    /// The table of records in the `size` bytes at `start` of `file`, which must lie inside it.
    pub fn new(file: &Content, start: u64, size: u64) -> Result<Self> {
        let end = start.checked_add(size).filter(|end| *end <= file.len());
        let Some(end) = end else {
            let message = format!(
                "{size:#x} bytes of {}s at {start:#x} end outside of the file of {:#x} bytes",
                T::NAME,
                file.len()
            );
            let place = file.place(start.min(file.len()));
            return Err(Error::truncated(message).structure(T::NAME).at(&place));
        };
        if !size.is_multiple_of(T::SIZE) {
            let message = format!("{size:#x} bytes are no multiple of {} bytes", T::SIZE);
            let place = file.place(start);
            return Err(Error::malformed(message).structure(T::NAME).at(&place));
        }
        Ok(Self { content: file.slice(start..end)?, start, records: PhantomData })
    }

    /// Number of records.
    pub fn len(&self) -> u64 {
        self.content.len() / T::SIZE
    }

    /// Whether the table has no records.
    pub fn is_empty(&self) -> bool {
        self.content.is_empty()
    }

    /// Offset of record `index` in the file.
    pub fn offset(&self, index: u64) -> u64 {
        self.start.saturating_add(index.saturating_mul(T::SIZE))
    }

    /// Iterates over the records with their offsets in the file, in order; ends after the first error.
    pub fn iter(&self) -> Records<'_, T> {
        Records { table: self, next: 0, window: Vec::new(), window_start: 0 }
    }

    /// Reads all records.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.iter().map(|item| item.map(|(_, record)| record)).collect()
    }
}

/// An iterator over a [`RecordTable`].
#[derive(Debug)]
pub struct Records<'a, T> {
    table: &'a RecordTable<T>,
    /// Position of the next record in the table, in bytes.
    next: u64,
    window: Vec<u8>,
    window_start: u64,
}

impl<T: Record> Iterator for Records<'_, T> {
    type Item = Result<(u64, T)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.table.content.len() {
            return None;
        }
        let item = self.read();
        self.next = if item.is_ok() { self.next + T::SIZE } else { u64::MAX };
        Some(item)
    }
}

impl<T: Record> Records<'_, T> {
    fn read(&mut self) -> Result<(u64, T)> {
        if self.next >= self.window_start + self.window.len() as u64 {
            let window = WINDOW - WINDOW % T::SIZE;
            let end = self.next.saturating_add(window).min(self.table.content.len());
            let range = self.next..end;
            self.window = self.table.content.read_vec(range, WINDOW, T::NAME)?;
            self.window_start = self.next;
        }
        let bytes = usize::try_from(self.next - self.window_start)
            .ok()
            .and_then(|skip| self.window.get(skip..))
            .unwrap_or_default();
        let (raw, _) = pod::from_bytes::<T::Raw>(bytes)
            .map_err(|()| Error::bug(format!("a window ends inside of a {}", T::NAME)))?;
        Ok((self.table.start + self.next, T::from_raw(raw)))
    }
}

/// Bytes that are read for a word far from the previous ones.
const SHORT_WINDOW: u64 = 256;

/// A reader of 8-byte words that is fast for words near each other. Windows grow while words follow one
/// another, so that scattered words do not cost a large window each.
#[derive(Debug)]
pub struct WordReader {
    content: Content,
    window: Vec<u8>,
    start: u64,
}

impl WordReader {
    /// A reader of the words in `content`.
    pub fn new(content: &Content) -> Self {
        Self { content: content.clone(), window: Vec::new(), start: 0 }
    }

    /// Reads the word at `offset`.
    pub fn read(&mut self, offset: u64) -> Result<u64> {
        if let Some(word) = self.cached(offset) {
            return Ok(word);
        }
        let before = self.window.len() as u64;
        let behind = self.start.saturating_add(before);
        let follows = (behind.saturating_sub(8)..behind.saturating_add(before)).contains(&offset);
        let len = if follows { (2 * before).min(WINDOW) } else { 0 };
        let end = offset.saturating_add(len.max(SHORT_WINDOW)).min(self.content.len());
        let start = offset.min(end);
        self.window = self.content.read_vec(start..end, WINDOW, "window")?;
        self.start = start;
        self.cached(offset).ok_or_else(|| {
            let place = self.content.place(offset);
            Error::new(Kind::Truncated, "the file ends inside of an 8-byte word").at(&place)
        })
    }

    fn cached(&self, offset: u64) -> Option<u64> {
        let skip = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        let bytes = self.window.get(skip..skip.checked_add(8)?)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}
