//! Lists of names in one buffer.

use std::cmp::Ordering;
use std::ffi::CStr;

use crate::result_code::{OutOfMemory, push};

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
    /// Number of names.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Tells whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the name with this index.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        self.bytes.get(self.start(index)..end)
    }

    /// Returns the name with this index as C reads it: up to its first NUL.
    pub fn get_c(&self, index: usize) -> Option<&CStr> {
        let end = *self.ends.get(index)?;
        CStr::from_bytes_until_nul(self.bytes.get(self.start(index)..=end)?).ok()
    }

    /// Iterates over all names, in order.
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

    /// Reserves memory for `count` names.
    pub(crate) fn reserve(&mut self, count: usize) -> Result<(), OutOfMemory> {
        self.bytes.try_reserve_exact(count.saturating_mul(LIKELY))?;
        Ok(self.ends.try_reserve_exact(count)?)
    }

    /// Removes the last name.
    pub(crate) fn pop(&mut self) {
        if self.ends.pop().is_some() {
            self.bytes.truncate(self.start(self.len()));
        }
    }

    /// Appends a name.
    pub(crate) fn push(&mut self, name: &[u8]) -> Result<(), OutOfMemory> {
        self.bytes.try_reserve(name.len())?;
        self.bytes.extend_from_slice(name);
        self.end()
    }

    /// Returns the buffer for a new name. Append its bytes, then call [`end`](Self::end).
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Ends the name that was appended.
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
