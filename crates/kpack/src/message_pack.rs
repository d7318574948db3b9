//! MessagePack as a stream of items.
//!
//! ```text
//! 00..7f  number            c4..c6  binary, length of 1, 2, 4 bytes    cc..cf  number of 1, 2, 4, 8
//! 80..8f  map of 0..15      c7..c9  extension, length of 1, 2, 4       d0..d3  signed number
//! 90..9f  array of 0..15    ca, cb  float of 4, 8 bytes                d4..d8  extension of 1..16
//! a0..bf  text of 0..31     c0 c2 c3  nil, false, true                 d9..db  text, length of 1, 2, 4
//! e0..ff  negative number   c1  never used                             dc..df  array, map of 2, 4
//! ```
//!
//! Integers are big-endian. Source: the specification at <https://msgpack.org>. No crate is used, because a runtime
//! must decode without recursion, from memory of unknown length, and with fallible reservations. The decoder builds no
//! values: skipped ones cost no memory at any nesting depth.

use crate::{Names, OutOfMemory, ReadAt};

/// A source of the bytes of a value, read front to end.
pub trait Input {
    type Error;

    /// The most bytes that can still come.
    fn left(&self) -> u64;

    /// Fills `buffer`, which has at most [`left`](Self::left) bytes, with the next bytes.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), Self::Error>;

    /// Skips the next `count` bytes, at most [`left`](Self::left).
    fn skip(&mut self, count: u64) -> Result<(), Self::Error>;

    /// Some of the next bytes: those already in memory. Reads nothing.
    #[inline]
    fn buffered(&self) -> &[u8] {
        &[]
    }
}

/// The reason why a value cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault<E> {
    /// The value does not end within the input.
    Truncated,
    /// This byte begins no item.
    Invalid(u8),
    OutOfMemory,
    Read(E),
}

impl<E> From<OutOfMemory> for Fault<E> {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

/// The next item of a value. The bytes of a text or of binary data, or the items of an array or map, follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    Integer(i128),
    /// A text with this number of bytes, which need not be UTF-8.
    Text(u32),
    /// Binary data with this number of bytes.
    Binary(u32),
    /// An array with this number of items. A count above 15 does not exceed the bytes left in the input.
    Array(u32),
    /// A map with this number of pairs. A count above 15 does not exceed the bytes left in the input.
    Map(u32),
    /// Nil, true or false, a number with a fraction, or an extension, with this number of bytes.
    Other(u64),
}

#[derive(Debug)]
pub struct Decoder<I> {
    /// The input after the decoded bytes.
    pub input: I,
}

type Decoded<T, I> = Result<T, Fault<<I as Input>::Error>>;

impl<I: Input> Decoder<I> {
    #[inline]
    pub fn new(input: I) -> Self {
        Self { input }
    }

    /// Reads the head of the next item.
    #[inline]
    pub fn item(&mut self) -> Decoded<Item, I> {
        let [first] = self.array()?;
        Ok(match first {
            0x00..=0x7f => Item::Integer(first.into()),
            0x80..=0x8f => Item::Map((first & 0x0f).into()),
            0x90..=0x9f => Item::Array((first & 0x0f).into()),
            0xa0..=0xbf => Item::Text((first & 0x1f).into()),
            0xc0 | 0xc2 | 0xc3 => Item::Other(0),
            0xc1 => return Err(Fault::Invalid(first)),
            0xc4..=0xc6 => Item::Binary(self.length(first - 0xc4)?),
            // The byte of the type precedes the content.
            0xc7..=0xc9 => Item::Other(u64::from(self.length(first - 0xc7)?) + 1),
            0xca => Item::Other(4),
            0xcb => Item::Other(8),
            0xcc..=0xce => Item::Integer(self.length(first - 0xcc)?.into()),
            0xcf => Item::Integer(u64::from_be_bytes(self.array()?).into()),
            0xd0 => Item::Integer(i8::from_be_bytes(self.array()?).into()),
            0xd1 => Item::Integer(i16::from_be_bytes(self.array()?).into()),
            0xd2 => Item::Integer(i32::from_be_bytes(self.array()?).into()),
            0xd3 => Item::Integer(i64::from_be_bytes(self.array()?).into()),
            0xd4..=0xd8 => Item::Other((1 << (first - 0xd4)) + 1),
            0xd9..=0xdb => Item::Text(self.length(first - 0xd9)?),
            0xdc | 0xdd => Item::Array(self.count(first - 0xdb, 1)?),
            0xde | 0xdf => Item::Map(self.count(first - 0xdd, 2)?),
            0xe0..=0xff => Item::Integer(i8::from_be_bytes([first]).into()),
        })
    }

    /// Reads the next item if it is a number of at least 0. Skips any other item and returns `None`.
    pub fn number(&mut self) -> Decoded<Option<u64>, I> {
        match self.item()? {
            Item::Integer(number) => Ok(u64::try_from(number).ok()),
            other => self.skip_rest_of(other).map(|()| None),
        }
    }

    /// Reads the next item if it is one of the `known` texts. Skips any other item and returns `None`.
    pub fn one_of<'k>(&mut self, known: &[&'k str]) -> Decoded<Option<&'k str>, I> {
        let item = self.item()?;
        let Item::Text(len) = item else {
            return self.skip_rest_of(item).map(|()| None);
        };
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if let Some(text) = self.input.buffered().get(..len) {
            let found = known_text(known, text);
            return self.skip_rest_of(item).map(|()| found);
        }
        let mut buffer = [0; LONGEST_NAME];
        let Some(text) = buffer.get_mut(..len) else {
            return self.skip_rest_of(item).map(|()| None);
        };
        self.fill(text)?;
        Ok(known_text(known, text))
    }

    /// Appends the `len` bytes of a text to `bytes`. Reserves memory as the bytes come, so that a false
    /// length costs nothing.
    pub fn text(&mut self, len: u32, bytes: &mut Vec<u8>) -> Decoded<(), I> {
        let mut left = usize::try_from(len).map_err(|_| Fault::OutOfMemory)?;
        if let Some(text) = self.input.buffered().get(..left) {
            bytes.try_reserve(left).map_err(OutOfMemory::from)?;
            bytes.extend_from_slice(text);
            return self.input.skip(len.into()).map_err(Fault::Read);
        }
        self.room_for(len.into())?;
        while left > 0 {
            let (start, part) = (bytes.len(), left.min(TEXT_PART));
            bytes.try_reserve(part).map_err(OutOfMemory::from)?;
            bytes.resize(start + part, 0);
            self.fill(bytes.get_mut(start..).unwrap_or_default())?;
            left -= part;
        }
        Ok(())
    }

    /// Reads the next item, and returns the texts of an array. Skips anything else.
    pub fn names(&mut self) -> Decoded<Names, I> {
        let mut names = Names::default();
        match self.item()? {
            Item::Array(count) => {
                (0..count).try_for_each(|_| self.append_name(&mut names).map(drop))?;
            }
            other => self.skip_rest_of(other)?,
        }
        Ok(names)
    }

    /// Appends the next item to `names` if it is a text, and tells whether it was. Skips any other item.
    pub fn append_name(&mut self, names: &mut Names) -> Decoded<bool, I> {
        match self.item()? {
            Item::Text(len) => {
                self.text(len, &mut names.bytes)?;
                names.end()?;
                Ok(true)
            }
            other => self.skip_rest_of(other).map(|()| false),
        }
    }

    pub fn skip(&mut self) -> Decoded<(), I> {
        let item = self.item()?;
        self.skip_rest_of(item)
    }

    /// Skips the rest of `item`, whose head was read last.
    #[inline]
    pub fn skip_rest_of(&mut self, item: Item) -> Decoded<(), I> {
        match self.skip_content(item)? {
            0 => Ok(()),
            items => self.skip_items(items),
        }
    }

    fn skip_items(&mut self, mut items: u64) -> Decoded<(), I> {
        while items > 0 {
            // Each item has at least one byte.
            self.room_for(items)?;
            let item = self.item()?;
            items = (items - 1).saturating_add(self.skip_content(item)?);
        }
        Ok(())
    }

    /// Skips the bytes of `item`. Returns the number of items inside it.
    fn skip_content(&mut self, item: Item) -> Decoded<u64, I> {
        let bytes = match item {
            Item::Integer(_) => 0,
            Item::Array(items) => return Ok(items.into()),
            Item::Map(pairs) => return Ok(u64::from(pairs) * 2),
            Item::Text(bytes) | Item::Binary(bytes) => bytes.into(),
            Item::Other(bytes) => bytes,
        };
        if bytes > 0 {
            if bytes > self.input.buffered().len() as u64 {
                self.room_for(bytes)?;
            }
            self.input.skip(bytes).map_err(Fault::Read)?;
        }
        Ok(0)
    }

    /// Reads an integer of 1, 2 or 4 bytes, for a `width` of 0, 1 or 2.
    fn length(&mut self, width: u8) -> Decoded<u32, I> {
        Ok(match width {
            0 => u8::from_be_bytes(self.array()?).into(),
            1 => u16::from_be_bytes(self.array()?).into(),
            _ => u32::from_be_bytes(self.array()?),
        })
    }

    /// Reads the count of an array or map, each of whose values has at least `least` bytes.
    fn count(&mut self, width: u8, least: u64) -> Decoded<u32, I> {
        let count = self.length(width)?;
        self.room_for(u64::from(count) * least)?;
        Ok(count)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Decoded<[u8; N], I> {
        if let Some(bytes) = self.input.buffered().first_chunk() {
            let bytes = *bytes;
            self.input.skip(N as u64).map_err(Fault::Read)?;
            return Ok(bytes);
        }
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    #[inline]
    fn fill(&mut self, buffer: &mut [u8]) -> Decoded<(), I> {
        self.room_for(buffer.len() as u64)?;
        self.input.fill(buffer).map_err(Fault::Read)
    }

    #[inline]
    fn room_for(&self, bytes: u64) -> Decoded<(), I> {
        if bytes > self.input.left() { Err(Fault::Truncated) } else { Ok(()) }
    }
}

/// Bytes of the longest known name.
const LONGEST_NAME: usize = 32;

/// Bytes of a text that are read at once.
const TEXT_PART: usize = 64 << 10;

fn known_text<'k>(known: &[&'k str], text: &[u8]) -> Option<&'k str> {
    known.iter().copied().find(|known| known.as_bytes() == text)
}

/// A buffer as an input: reading moves its start.
impl Input for &[u8] {
    type Error = std::convert::Infallible;

    fn left(&self) -> u64 {
        self.len() as u64
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), Self::Error> {
        if let Some((bytes, rest)) = self.split_at_checked(buffer.len()) {
            buffer.copy_from_slice(bytes);
            *self = rest;
        }
        Ok(())
    }

    fn skip(&mut self, count: u64) -> Result<(), Self::Error> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        *self = self.get(count..).unwrap_or_default();
        Ok(())
    }

    #[inline]
    fn buffered(&self) -> &[u8] {
        self
    }
}

/// The bytes of a source in a range, read in windows.
pub(crate) struct Windows<'a, R: ?Sized> {
    source: &'a R,
    window: Vec<u8>,
    /// The index in the window of the next byte.
    next: usize,
    /// The offset after the window.
    end: u64,
    /// The offset after the range.
    limit: u64,
    /// The bytes of the next window.
    size: usize,
}

impl<'a, R: ReadAt + ?Sized> Windows<'a, R> {
    /// The bytes of `range`, which is within `source`.
    pub(crate) fn new(source: &'a R, range: std::ops::Range<u64>) -> Self {
        let (end, limit) = (range.start, range.end);
        Self { source, window: Vec::new(), next: 0, end, limit, size: FIRST_WINDOW }
    }

    pub(crate) fn at(&self) -> u64 {
        self.end.saturating_sub(self.buffered().len() as u64)
    }

    /// Moves to an offset, with an empty window.
    fn go_to(&mut self, at: u64) {
        self.window.clear();
        (self.next, self.end) = (0, at);
    }

    /// Reads the next window. If memory for it is refused, the window stays empty.
    fn refill(&mut self) -> Result<(), R::Error> {
        let len = usize::try_from(self.left()).unwrap_or(usize::MAX).min(self.size);
        self.size = WINDOW.min(2 * self.size);
        let at = self.at();
        self.go_to(at);
        if self.window.try_reserve_exact(len).is_ok() {
            self.window.resize(len, 0);
            let read = self.source.read_at(at, &mut self.window);
            read.inspect_err(|_| self.window.clear())?;
            self.end = at.saturating_add(len as u64);
        }
        Ok(())
    }

    /// Fills `buffer` from a new window, or from the source if it is longer than half of one.
    fn fill_by_reading(&mut self, buffer: &mut [u8]) -> Result<(), R::Error> {
        if buffer.len() <= WINDOW / 2 {
            self.size = self.size.max(2 * buffer.len());
            self.refill()?;
        }
        if let Some(bytes) = self.window_slice(buffer.len()) {
            buffer.copy_from_slice(bytes);
            return Ok(());
        }
        let at = self.at();
        self.source.read_at(at, buffer)?;
        self.go_to(at.saturating_add(buffer.len() as u64));
        Ok(())
    }

    /// Takes the next `len` bytes, if the window has them.
    #[inline]
    fn window_slice(&mut self, len: usize) -> Option<&[u8]> {
        let end = self.next.checked_add(len)?;
        let bytes = self.window.get(self.next..end)?;
        self.next = end;
        Some(bytes)
    }
}

/// Bytes of the largest window. Each window that continues the last one is twice as long, up to this size. Values far
/// from each other, such as the sizes of large frames, cost one short read each.
const WINDOW: usize = 64 << 10;
const FIRST_WINDOW: usize = 512;

impl<R: ReadAt + ?Sized> Input for Windows<'_, R> {
    type Error = R::Error;

    #[inline]
    fn left(&self) -> u64 {
        self.limit.saturating_sub(self.at())
    }

    #[inline]
    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), R::Error> {
        let Some(bytes) = self.window_slice(buffer.len()) else {
            return self.fill_by_reading(buffer);
        };
        buffer.copy_from_slice(bytes);
        Ok(())
    }

    #[inline]
    fn skip(&mut self, count: u64) -> Result<(), R::Error> {
        if usize::try_from(count).ok().and_then(|count| self.window_slice(count)).is_none() {
            if count > self.size.min(WINDOW / 2) as u64 {
                self.size = FIRST_WINDOW;
            }
            self.go_to(self.at().saturating_add(count));
        }
        Ok(())
    }

    #[inline]
    fn buffered(&self) -> &[u8] {
        self.window.get(self.next..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(bytes: &[u8]) -> Result<Vec<Item>, Fault<std::convert::Infallible>> {
        let mut decoder = Decoder::new(bytes);
        let mut items = Vec::new();
        while decoder.input.left() > 0 {
            let item = decoder.item()?;
            if !matches!(item, Item::Array(_) | Item::Map(_)) {
                decoder.skip_content(item)?;
            }
            items.push(item);
        }
        Ok(items)
    }

    /// The table of the specification.
    #[test]
    fn every_kind_of_item_is_read() {
        use Item::{Array, Binary, Integer, Map, Other, Text};
        let cases: [(&[u8], Item); 31] = [
            (b"\x00", Integer(0)),
            (b"\x7f", Integer(127)),
            (b"\x80", Map(0)),
            (b"\x8f", Map(15)),
            (b"\x92", Array(2)),
            (b"\xa0", Text(0)),
            (b"\xa2ab", Text(2)),
            (b"\xc0", Other(0)),
            (b"\xc3", Other(0)),
            (b"\xc4\x01x", Binary(1)),
            (b"\xc5\x00\x01x", Binary(1)),
            (b"\xc6\x00\x00\x00\x01x", Binary(1)),
            (b"\xc7\x01tx", Other(2)),
            (b"\xc8\x00\x01tx", Other(2)),
            (b"\xc9\x00\x00\x00\x01tx", Other(2)),
            (b"\xca\x00\x00\x00\x00", Other(4)),
            (b"\xcb\x00\x00\x00\x00\x00\x00\x00\x00", Other(8)),
            (b"\xcc\xff", Integer(255)),
            (b"\xcd\x01\x00", Integer(256)),
            (b"\xce\x00\x01\x00\x00", Integer(65536)),
            (b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff", Integer(u64::MAX.into())),
            (b"\xd0\x05", Integer(5)),
            (b"\xd1\xff\xff", Integer(-1)),
            (b"\xd3\x00\x00\x00\x00\x00\x00\x00\x07", Integer(7)),
            (b"\xd4tx", Other(2)),
            (b"\xd8t0123456789abcdef", Other(17)),
            (b"\xd9\x01x", Text(1)),
            (b"\xda\x00\x01x", Text(1)),
            (b"\xdc\x00\x00", Array(0)),
            (b"\xdf\x00\x00\x00\x00", Map(0)),
            (b"\xff", Integer(-1)),
        ];
        for (bytes, item) in cases {
            assert_eq!(items(bytes), Ok(vec![item]), "{bytes:x?}");
            for len in 0..bytes.len() {
                let cut = items(&bytes[..len]);
                assert!(len == 0 || cut == Err(Fault::Truncated), "{bytes:x?} cut at {len}");
            }
        }
        assert_eq!(items(b"\xc1"), Err(Fault::Invalid(0xc1)));
        // Each value has at least one byte, and a pair has two.
        for (bytes, count) in [(&b"\xdc\x00\x03"[..], 3), (b"\xde\x00\x03", 6)] {
            let whole = [bytes, &vec![0xc0; count][..]].concat();
            assert!(Decoder::new(&whole[..]).item().is_ok());
            assert_eq!(Decoder::new(&whole[..whole.len() - 1]).item(), Err(Fault::Truncated));
        }
    }

    #[test]
    fn values_are_skipped_however_deep_they_nest() {
        let deep = [vec![0x91; 1_000_000], vec![0xc0, 0x05]].concat();
        let mut decoder = Decoder::new(&deep[..]);
        decoder.skip().unwrap();
        assert_eq!(decoder.item(), Ok(Item::Integer(5)));
        let claims = [vec![0xdd, 0xff, 0xff, 0xff, 0xff], vec![0xc0; 100]].concat();
        assert_eq!(Decoder::new(&claims[..]).skip(), Err(Fault::Truncated));
    }

    #[test]
    fn windows_give_the_bytes_of_their_source() {
        let source: Vec<u8> =
            (0..200_000_u32).map(|n| n.to_le_bytes()[0] ^ n.to_le_bytes()[1]).collect();
        let end = source.len() - 7;
        let mut windows = Windows::new(&source[..], 5..end as u64);
        let mut at = 5;
        for (read, skipped) in [(1, 0), (65_530, 3), (40_000, 0), (9, 70_000), (1, 0)] {
            let mut buffer = vec![0; read];
            windows.fill(&mut buffer).unwrap();
            assert_eq!(buffer, source[at..at + read]);
            windows.skip(skipped).unwrap();
            at += read + usize::try_from(skipped).unwrap();
            assert_eq!(windows.left(), (end - at) as u64);
        }
    }
}
