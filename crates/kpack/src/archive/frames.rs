//! The frames of a blob with scheme "zstd-per-kernel".

use super::{BLOB_LIMIT, FRAME_LIMIT, Span};
use crate::ReadAt;
use crate::result_code::{OutOfMemory, push};

/// Bytes of the count in front of all frames, and of the size in front of each.
const NUMBER: u64 = 4;

/// Why the frames of a blob cannot be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameFault<E> {
    /// The blob has so many bytes, more than [`BLOB_LIMIT`].
    TooLarge(u64),
    /// There are so many frames, more than [`FRAME_LIMIT`].
    TooMany(u32),
    /// The blob does not lie in the file.
    Outside(Span),
    /// The blob ends inside the number at this offset.
    Cut(u64),
    /// A frame is longer than what is left of the blob.
    Leaves {
        /// Its ordinal.
        ordinal: u32,
        /// Its size.
        size: u32,
        /// Where that size stands.
        offset: u64,
    },
    /// Memory was refused.
    OutOfMemory,
    /// The file cannot be read.
    Read(E),
}

impl<E> From<OutOfMemory> for FrameFault<E> {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

/// Goes through the frames of a blob. Only their sizes are read.
pub struct Frames<'a, R: ?Sized> {
    source: &'a R,
    /// Where the next size stands.
    at: u64,
    /// Where the blob ends.
    end: u64,
    count: u32,
    next: u32,
}

impl<'a, R: ReadAt + ?Sized> Frames<'a, R> {
    /// The frames of `blob`, which lies in `source`.
    pub fn open(source: &'a R, blob: Span) -> Result<Self, FrameFault<R::Error>> {
        if blob.size > BLOB_LIMIT {
            return Err(FrameFault::TooLarge(blob.size));
        }
        let end = blob.end().filter(|end| *end <= source.len());
        let end = end.ok_or(FrameFault::Outside(blob))?;
        let mut frames = Self { source, at: blob.offset, end, count: 0, next: 0 };
        frames.count = frames.number()?;
        if frames.count > FRAME_LIMIT { Err(FrameFault::TooMany(frames.count)) } else { Ok(frames) }
    }

    /// Number of frames.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The bytes of the blob behind the frames that were asked for.
    pub fn rest(&self) -> Span {
        Span { offset: self.at, size: self.end.saturating_sub(self.at) }
    }

    /// All that are left.
    pub(super) fn listed(self) -> Result<Vec<Span>, FrameFault<R::Error>> {
        let mut frames = Vec::new();
        // A frame has a size at least, so that no more is reserved than the file is long.
        let most = self.rest().size / NUMBER;
        let room = usize::try_from(most.min(self.count.into())).unwrap_or(usize::MAX);
        frames.try_reserve_exact(room).map_err(OutOfMemory::from)?;
        for frame in self {
            push(&mut frames, frame?)?;
        }
        Ok(frames)
    }

    fn frame(&mut self) -> Result<Span, FrameFault<R::Error>> {
        let (ordinal, offset) = (self.next, self.at);
        let size = self.number()?;
        if u64::from(size) > self.rest().size {
            return Err(FrameFault::Leaves { ordinal, size, offset });
        }
        let frame = Span { offset: self.at, size: size.into() };
        self.at += frame.size;
        Ok(frame)
    }

    fn number(&mut self) -> Result<u32, FrameFault<R::Error>> {
        if self.rest().size < NUMBER {
            return Err(FrameFault::Cut(self.at));
        }
        let mut bytes = [0; 4];
        self.source.read_at(self.at, &mut bytes).map_err(FrameFault::Read)?;
        self.at += NUMBER;
        Ok(u32::from_le_bytes(bytes))
    }
}

/// Where each frame lies, by ordinal. A fault is the last that comes.
impl<R: ReadAt + ?Sized> Iterator for Frames<'_, R> {
    type Item = Result<Span, FrameFault<R::Error>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.count {
            return None;
        }
        let frame = self.frame();
        self.next = if frame.is_ok() { self.next + 1 } else { self.count };
        Some(frame)
    }
}
