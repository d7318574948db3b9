//! Names in a string table, with a limit on the bytes read.
//!
//! Every reference to a name is an offset, and a file may have one long string and very many references to
//! it: read one by one, they would cost the product of the two. So all names together are limited. Linkers
//! write each name once, and may let one be the end of another; only the short names of local symbols recur.

use super::file::ElfFile;
use super::strings::string_at;
use rockpack_core::error::{Error, Kind, Result};

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
        match self.left.checked_sub(name.len()) {
            Some(left) => self.left = left,
            None => {
                let size = self.table.len();
                let message = format!("the names in {size:#x} bytes are far longer than these");
                return Err(self.refuse(place, message));
            }
        }
        Ok(name)
    }

    /// The name at `offset` as text.
    pub fn text(&mut self, offset: u32, place: u64) -> Result<String> {
        self.get(offset, place).map(|name| String::from_utf8_lossy(name).into_owned())
    }

    fn refuse(&self, place: u64, message: String) -> Error {
        let error = self.file.refuse(Kind::Limit, "string table", place, message);
        error.hint("the file is damaged: build it or copy it again")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileHeader;
    use rockpack_core::content::Content;

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
}
