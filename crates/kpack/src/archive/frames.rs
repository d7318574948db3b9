//! The frames of a blob with scheme "zstd-per-kernel".

use super::{BLOB_LIMIT, FRAME_LIMIT, Span};
use crate::message_pack::{Input as _, Windows};
use crate::{OutOfMemory, ReadAt, push};

/// Bytes of the frame count at the start of the blob, and of the size before each frame.
const NUMBER: u64 = 4;

/// The reason why the frames of a blob cannot be located.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameFault<E> {
    /// The blob has this many bytes, more than [`BLOB_LIMIT`].
    TooLarge(u64),
    /// The blob has this many frames, more than [`FRAME_LIMIT`].
    TooMany(u32),
    OutOfRange(Span),
    /// The blob ends inside the number at this offset.
    TruncatedSize(u64),
    /// A frame is longer than the rest of the blob.
    FrameTooLong {
        ordinal: u32,
        size: u32,
        offset: u64,
    },
    OutOfMemory,
    Read(E),
}

impl<E> From<OutOfMemory> for FrameFault<E> {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

/// An iterator over the frames of a blob, which reads only their sizes.
pub struct Frames<'a, R: ?Sized> {
    /// The blob from the next size on.
    input: Windows<'a, R>,
    count: u32,
    next: u32,
}

impl<'a, R: ReadAt + ?Sized> Frames<'a, R> {
    pub fn open(source: &'a R, blob: Span) -> Result<Self, FrameFault<R::Error>> {
        if blob.size > BLOB_LIMIT {
            return Err(FrameFault::TooLarge(blob.size));
        }
        let end =
            blob.end().filter(|end| *end <= source.len()).ok_or(FrameFault::OutOfRange(blob))?;
        let input = Windows::new(source, blob.offset..end);
        let mut frames = Self { input, count: 0, next: 0 };
        frames.count = frames.number()?;
        if frames.count > FRAME_LIMIT { Err(FrameFault::TooMany(frames.count)) } else { Ok(frames) }
    }

    /// The bytes of the blob after the frames that were iterated over.
    pub fn rest(&self) -> Span {
        Span { offset: self.input.at(), size: self.input.left() }
    }

    pub(super) fn listed(self) -> Result<Vec<Span>, FrameFault<R::Error>> {
        let mut frames = Vec::new();
        // Each frame has a size field, so this reserves no more than the length of the file.
        let most = self.rest().size / NUMBER;
        let room = usize::try_from(most.min(self.count.into())).unwrap_or(usize::MAX);
        frames.try_reserve_exact(room).map_err(OutOfMemory::from)?;
        for frame in self {
            push(&mut frames, frame?)?;
        }
        Ok(frames)
    }

    fn frame(&mut self) -> Result<Span, FrameFault<R::Error>> {
        let (ordinal, offset) = (self.next, self.input.at());
        let size = self.number()?;
        if u64::from(size) > self.input.left() {
            return Err(FrameFault::FrameTooLong { ordinal, size, offset });
        }
        let frame = Span { offset: self.input.at(), size: size.into() };
        self.input.skip(frame.size).map_err(FrameFault::Read)?;
        Ok(frame)
    }

    fn number(&mut self) -> Result<u32, FrameFault<R::Error>> {
        if self.input.left() < NUMBER {
            return Err(FrameFault::TruncatedSize(self.input.at()));
        }
        let mut bytes = [0; 4];
        self.input.fill(&mut bytes).map_err(FrameFault::Read)?;
        Ok(u32::from_le_bytes(bytes))
    }
}

/// Yields the place of each frame, by ordinal. Ends after a fault.
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
