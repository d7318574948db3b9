//! Tables of records, single words and strings inside a file: the first two are read through small windows, the last
//! with a limit on the bytes read.
//!
//! Every reference to a name is an offset, and a file may have one long string and very many references to
//! it, whose total length is the product of the two. So the total length of all names is limited. Linkers
//! write each name once, possibly as the end of another; only the short names of local symbols recur.

use std::iter;
use std::marker::PhantomData;

use object::pod;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};

use super::file::ElfFile;
use super::record::Record;

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
            let message = format!("{size:#x} bytes are not a multiple of {} bytes", T::SIZE);
            let place = file.place(start);
            return Err(Error::malformed(message).structure(T::NAME).at(&place));
        }
        Ok(Self { content: file.slice(start..end)?, start, records: PhantomData })
    }

    pub fn len(&self) -> u64 {
        self.content.len() / T::SIZE
    }

    pub fn is_empty(&self) -> bool {
        self.content.is_empty()
    }

    /// Iterates over the records with their offsets in the file, in order; ends after the first error.
    pub fn iter(&self) -> impl Iterator<Item = Result<(u64, T)>> {
        let (mut next, mut window, mut start) = (0, Vec::new(), 0);
        iter::from_fn(move || {
            let at = Some(next).filter(|at| *at < self.content.len())?;
            let record = self.record(at, &mut window, &mut start);
            next = if record.is_ok() { at + T::SIZE } else { u64::MAX };
            Some(record)
        })
    }

    /// Reads the record at byte `at` of the table by a `window`, which begins at byte `start`.
    fn record(&self, at: u64, window: &mut Vec<u8>, start: &mut u64) -> Result<(u64, T)> {
        if at >= *start + window.len() as u64 {
            let end = at.saturating_add(WINDOW - WINDOW % T::SIZE).min(self.content.len());
            *window = self.content.read_vec(at..end, WINDOW, T::NAME)?;
            *start = at;
        }
        let skip = usize::try_from(at - *start).ok();
        let bytes = skip.and_then(|skip| window.get(skip..)).unwrap_or_default();
        let (raw, _) = pod::from_bytes::<T::Raw>(bytes)
            .map_err(|()| Error::bug(format!("a window ends inside of a {}", T::NAME)))?;
        Ok((self.start + at, T::from_raw(raw)))
    }

    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.iter().map(|item| item.map(|(_, record)| record)).collect()
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
    pub fn new(content: &Content) -> Self {
        Self { content: content.clone(), window: Vec::new(), start: 0 }
    }

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

/// Longest symbol name that is read, in bytes: ten times the longest known, which C++ templates have.
const LONGEST: usize = 256 << 10;

/// Average number of times that each byte of the table may be read, because names share bytes.
const SHARED: usize = 2;

/// Additional bytes for each reference: names that recur are short.
const RECURRING: u64 = 128;

/// A string table with a limit on the bytes read.
pub struct StringTable<'a> {
    file: &'a ElfFile,
    table: &'a [u8],
    /// Bytes that may still be read.
    left: usize,
}

impl<'a> StringTable<'a> {
    /// Limits the reading of `table`, a string table of `file` with up to `references` references.
    pub fn new(file: &'a ElfFile, table: &'a [u8], references: u64) -> Self {
        let recurring = references.saturating_mul(RECURRING);
        let recurring = usize::try_from(recurring).unwrap_or(usize::MAX);
        Self { file, table, left: table.len().saturating_mul(SHARED).saturating_add(recurring) }
    }

    /// The name at `offset` of the table; empty outside of the table. Errors name the record at `place` of
    /// the file, which refers to it.
    pub fn get(&mut self, offset: u32, place: u64) -> Result<&'a [u8]> {
        let Some(name) = string_at(self.table, offset, LONGEST) else {
            let message = format!("the name at {offset:#x} has more than {LONGEST} bytes");
            return Err(self.refuse(place, message));
        };
        let Some(left) = self.left.checked_sub(name.len()) else {
            let size = self.table.len();
            let message = format!(
                "the names together are far longer than the string table ({size:#x} bytes)"
            );
            return Err(self.refuse(place, message));
        };
        self.left = left;
        Ok(name)
    }

    pub fn text(&mut self, offset: u32, place: u64) -> Result<String> {
        self.get(offset, place).map(|name| String::from_utf8_lossy(name).into_owned())
    }

    fn refuse(&self, place: u64, message: String) -> Error {
        let error = self.file.refuse(Kind::Limit, "string table", place, message);
        error.hint("the file is damaged: build it or copy it again")
    }
}

/// The string at `offset` of a string table, without its closing zero. Empty outside of the table; `None` for
/// more than `limit` bytes.
pub fn string_at(table: &[u8], offset: u32, limit: usize) -> Option<&[u8]> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let tail = table.get(start..).unwrap_or_default();
    let (head, is_cut) = match tail.get(..=limit) {
        Some(head) => (head, true),
        None => (tail, false),
    };
    match head.iter().position(|byte| *byte == 0) {
        Some(end) => head.get(..end),
        None => (!is_cut).then_some(head),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileHeader;

    /// An ELF file that is only a header.
    fn file() -> ElfFile {
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(64, 0);
        let content = Content::of_bytes(bytes);
        let header = FileHeader::read(&content).unwrap().unwrap();
        ElfFile::with_header(&content, header).unwrap()
    }

    #[test]
    fn long_names_are_read_and_longer_ones_refused() {
        let file = file();
        let table = vec![b'x'; LONGEST];
        assert_eq!(StringTable::new(&file, &table, 1).get(0, 0).unwrap().len(), LONGEST);
        let table = vec![b'x'; LONGEST + 1];
        let error = StringTable::new(&file, &table, 1).get(0, 0).unwrap_err();
        assert_eq!(error.kind(), Kind::Limit, "{error}");
    }

    #[test]
    fn one_string_is_not_the_name_of_everything() {
        let file = file();
        let (table, count) = (vec![b'x'; 64 << 10], 1000);
        let mut names = StringTable::new(&file, &table, count);
        let read = (0..count).map(|_| names.get(0, 0)).find_map(Result::err);
        assert_eq!(read.unwrap().kind(), Kind::Limit);
        // The labels of assembler code recur in every function.
        let mut names = StringTable::new(&file, b"\0label_kernel_end\0", count);
        assert!((0..count).all(|_| names.get(1, 0).is_ok()));
    }

    #[test]
    fn strings_end_at_a_zero_or_with_the_table() {
        let table = b"\0ab\0cd";
        for (offset, expected) in [(0, ""), (1, "ab"), (2, "b"), (4, "cd"), (6, ""), (7, "")] {
            assert_eq!(string_at(table, offset, 2), Some(expected.as_bytes()), "{offset}");
        }
        assert_eq!(string_at(table, u32::MAX, 2), Some(&b""[..]));
        assert_eq!((string_at(table, 1, 1), string_at(table, 4, 1)), (None, None));
    }
}
